// Reads files with the compiled JavaScript parsers: node kaitai_read.cjs PARSER_DIRECTORY
// Standard input: a JSON list of {kind, hex}. Output: a JSON list, for each what was read, or {refused}.
"use strict";

const fs = require("fs");
const path = require("path");
const { KaitaiStream } = require("kaitai-struct");

const directory = path.resolve(process.argv[2]);
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const parser = (name) => require(path.join(directory, `${name}.js`))[name];
const hex = (bytes) => (bytes === undefined ? null : Buffer.from(bytes).toString("hex"));

/** The plain fields of a structure, by their names in the schema. */
function fields(structure) {
  const kept = Object.keys(structure).filter((name) => !name.startsWith("_"));
  return Object.fromEntries(kept.map((name) => [snake(name), structure[name]]));
}

function record(one) {
  return {
    timestamp_delta: one.timestampDelta.value,
    offset_delta: one.offsetDelta.value,
    key: hex(one.key.content),
    value: hex(one.value.content),
    headers: one.headers.map((header) => [hex(header.key.content), hex(header.value.content)]),
  };
}

function controlRecord(one) {
  const value = one.value.v1 || one.value.v0 || one.value;
  return { ...fields(one.key), fields: value instanceof Uint8Array ? {} : message(value) };
}

/** Fields of Kafka's protocol, without counts and what may be skipped. */
function message(value) {
  if (Array.isArray(value)) return value.map(message);
  if (value === null || typeof value !== "object") return value;
  if (value.text !== undefined) return value.text;
  if (value.content instanceof Uint8Array) return hex(value.content);
  const kept = Object.entries(fields(value)).filter(([name]) => !/(_plus_one|tagged_fields)$/.test(name));
  return Object.fromEntries(kept.map(([name, each]) => [name, message(each)]));
}

function entry(one) {
  if (one.batch) {
    const { header, codec, content, isControl } = one.batch;
    if (codec) return { header: fields(header), records: null };
    const control = isControl ? content.controlRecords.map(controlRecord) : null;
    return { header: fields(header), records: content.records.map(record), control };
  }
  const message = one.message.v0 || one.message.v1;
  const { key, value } = message.content.fields;
  return { header: fields(message.header), key: hex(key.content), value: hex(value.content) };
}

const READERS = {
  log_segment: (data) => (data.entries || []).map(entry),
  offset_index: (data) => data.entries.map(fields),
  time_index: (data) => data.entries.map(fields),
  transaction_index: (data) => data.entries.map(fields),
  producer_snapshot: (data) => [fields(data.header), ...data.producers.map(fields)],
};

function read({ kind, hex: digits }) {
  const name = kind.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase());
  const bytes = new Uint8Array(Buffer.from(digits, "hex"));
  try {
    return READERS[kind](new (parser(name))(new KaitaiStream(bytes.buffer)));
  } catch (error) {
    return { refused: String(error.message || error) };
  }
}

process.stdout.write(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(read)));
