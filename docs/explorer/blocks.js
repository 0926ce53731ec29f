/**
 * What is shown for one row of a list: runs of bytes, each with its fields.
 */

import { decompressed } from "./codecs.js";
import { Decoder, FormatProblem, field, shown } from "./decode.js";
import { CodecProblem } from "./output.js";
import { CODECS, HEADERS, HEADER_SIZE, PREFIX_SIZE, entryChecksum, hex32 } from "./scan.js";

/**
 * @typedef {object} Block
 * @property {string} title
 * @property {Uint8Array} bytes
 * @property {number} position where they stand in the file; 0 for what came out of a codec
 * @property {import("./decode.js").Field[]} fields in stored order
 * @property {string} problem why reading stopped; empty otherwise
 * @property {boolean} derived the bytes are no part of the file
 */

const LARGEST_SHOWN = 4 << 20; // bytes of an entry that are shown
const LARGEST_EXPANDED = 16 << 20; // bytes that come out of a codec at most
const SLOTS_SHOWN = 512;
const MESSAGES = { 0: "MessageV0", 1: "MessageV1" };
const CONTROL_TYPES = { 0: "ABORT", 1: "COMMIT", 2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER", 5: "KRAFT_VERSION", 6: "KRAFT_VOTERS" };

/** An instant, in words; empty for what is none. */
export function moment(milliseconds) {
  if (milliseconds === -1n) return "none";
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? "a time that no calendar has" : date.toISOString();
}

function timeNote(name, value) {
  return /timestamp$/i.test(name) ? moment(value) : "";
}

/**
 * The blocks of an entry of a log: what is stored, and what its codec makes of that.
 *
 * @param {import("./source.js").Source} source
 * @param {import("./entries.js").Entry} entry
 * @returns {Promise<Block[]>}
 */
export async function entryBlocks(source, entry) {
  const bytes = await source.read(entry.position, entry.position + Math.min(entry.size, LARGEST_SHOWN));
  const kind = entry.magic === 2 ? "batch" : "message";
  const fields = [field(`${kind} @${entry.position}`, 0, bytes.length, 0, { group: true, failed: !entry.intact, note: offsetsOf(entry) })];
  const block = { title: "stored", bytes, position: entry.position, fields, problem: "", derived: false };
  if (entry.size > LARGEST_SHOWN) block.problem = `The first ${LARGEST_SHOWN} of ${entry.size} bytes are shown.`;
  const decoder = new Decoder(bytes, 0, bytes.length, fields, "SEG-REC-006");
  const header = headerFields(decoder, entry, bytes);
  const inner = entry.magic === 2 ? await batchContent(block, decoder, header) : await wrapperContent(block, decoder, header);
  return inner ? [block, inner] : [block];
}

function offsetsOf(entry) {
  if (entry.count < 0) return `wrapper up to offset ${entry.lastOffset}`;
  return entry.baseOffset === entry.lastOffset ? `offset ${entry.lastOffset}` : `offsets ${entry.baseOffset} to ${entry.lastOffset}`;
}

/** The fixed fields, or the whole of a message. */
function headerFields(decoder, entry, bytes) {
  const isWhole = bytes.length === entry.size;
  const crc = isWhole ? entryChecksum(entry.magic, bytes) : null;
  const note = (name, value, values) => {
    if (name === "crc" && crc !== null) return crc === value ? `${hex32(value)}, right` : `${hex32(value)}, WRONG: computed ${hex32(crc)}`;
    if (name === "attributes") return attributesNote(value, entry.magic);
    if (name === "lastOffsetDelta") return `last offset ${values.baseOffset + BigInt(value)}`;
    return timeNote(name, value);
  };
  const name = entry.magic === 2 || !isWhole ? HEADERS[entry.magic] : MESSAGES[entry.magic];
  const header = guarded(() => decoder.structure(name, 1, note)) || {};
  const row = decoder.fields.find((one) => one.name === "crc");
  if (row && crc !== null && row.value !== crc) row.failed = true;
  return header;
}

function attributesNote(value, magic) {
  const flags = [CODECS[value & 7] ? (value & 7 ? CODECS[value & 7] : "no compression") : `undefined codec ${value & 7}`];
  if (magic > 0 && value & 8) flags.push("LogAppendTime");
  if (magic === 2 && value & 16) flags.push("transactional");
  if (magic === 2 && value & 32) flags.push("control");
  if (magic === 2 && value & 64) flags.push("delete horizon");
  return flags.join(", ");
}

/** Runs something that may meet bytes that a declaration does not allow; the field where it stopped is marked. */
function guarded(read, problem = () => {}) {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FormatProblem)) throw error;
    problem(`${error.message} [${error.requirement}]`);
    return null;
  }
}

async function batchContent(block, decoder, header) {
  if (header.recordsCount === undefined || block.bytes.length <= HEADER_SIZE) return null;
  const codec = header.attributes & 7;
  if (!codec) {
    addRecords(block, decoder, header, 1);
    return null;
  }
  const compressed = compressedRow("records", HEADER_SIZE, block, codec);
  block.fields.push(compressed);
  const inner = await expanded(block, HEADER_SIZE, codec);
  if (inner) addRecords(inner, new Decoder(inner.bytes, 0, inner.bytes.length, inner.fields, "SEG-REC-006"), header, 0);
  return inner;
}

function compressedRow(name, start, block, codec) {
  const value = `${block.bytes.length - start} bytes`;
  const doc = "Compressed together; the header tells how.";
  return field(name, start, block.bytes.length, 1, { value, note: CODECS[codec] || `codec ${codec}`, doc, requirements: ["SEG-COD-001"] });
}

function addRecords(block, decoder, header, depth) {
  const group = field("records", decoder.position, block.bytes.length, depth, { group: true, doc: "The records, one after the other.", requirements: ["SEG-BAT-008"] });
  block.fields.push(group);
  guarded(() => decoder.array("Record", header.recordsCount, depth + 1, recordNote(header)), (problem) => {
    block.problem ||= problem;
  });
  for (const one of block.fields) if (one.group && one.end <= one.start) one.end = decoder.position;
  const left = block.bytes.length - decoder.position;
  if (left && !block.problem) block.fields.push(field("left over", decoder.position, block.bytes.length, depth, { value: `${left} bytes`, failed: true }));
}

function recordNote(header) {
  const isControl = Boolean(header.attributes & 32);
  return (name, value) => {
    if (name === "offsetDelta") return `offset ${header.baseOffset + BigInt(value)}`;
    if (name === "timestampDelta") return moment(header.attributes & 8 ? header.maxTimestamp : BigInt.asIntN(64, header.baseTimestamp + value));
    if (name === "key" && isControl && value && value.length >= 4) return CONTROL_TYPES[(value[2] << 8) | value[3]] || "";
    return "";
  };
}

/** The messages in a compressed wrapper. */
async function wrapperContent(block, decoder, header) {
  const codec = (header.attributes || 0) & 7;
  if (!codec || !(header.value instanceof Uint8Array)) return null;
  const inner = await expanded(block, block.bytes.length - header.value.length, codec);
  if (!inner) return null;
  const reader = new Decoder(inner.bytes, 0, inner.bytes.length, inner.fields, "SEG-MSG-005");
  for (let index = 0; reader.position + 17 < inner.bytes.length; index++) {
    const magic = inner.bytes[reader.position + 16];
    const size = reader.view.getInt32(reader.position + 8);
    const end = reader.position + PREFIX_SIZE + size;
    if (!(magic in MESSAGES) || size < 14 || end > inner.bytes.length) break;
    inner.fields.push(field(`[${index}]`, reader.position, end, 0, { group: true }));
    if (!guarded(() => reader.structure(MESSAGES[magic], 1, timeNote), (problem) => (inner.problem = problem))) break;
    reader.position = end;
  }
  return inner;
}

/** What a codec makes of the bytes from a position on. */
async function expanded(block, start, codec) {
  try {
    const bytes = await decompressed(CODECS[codec], block.bytes.subarray(start), LARGEST_EXPANDED);
    return { title: `decompressed (${bytes.length} bytes)`, bytes, position: 0, fields: [], problem: "", derived: true };
  } catch (error) {
    if (!(error instanceof CodecProblem)) throw error;
    block.problem ||= `${CODECS[codec] || `Codec ${codec}`}: ${error.message} [${error.requirement}]`;
    return null;
  }
}

/** Some slots of an index, around the one wanted. */
export function slotsBlock(slots, index) {
  const first = index - (index % SLOTS_SHOWN);
  const count = Math.max(0, Math.min(SLOTS_SHOWN, slots.length - first));
  const start = first * slots.size;
  const isLast = first + count >= slots.length;
  const end = isLast ? Math.min(slots.bytes.length, start + (count + 16) * slots.size) : start + count * slots.size;
  const bytes = slots.bytes.subarray(start, end);
  const fields = [];
  const decoder = new Decoder(bytes, 0, bytes.length, fields);
  decoder.array(slots.structure, count, 0, (name, value) => (name === "relativeOffset" ? `offset ${slots.baseOffset + BigInt(value)}` : timeNote(name, value)));
  fields.filter((one) => one.group).forEach((one, row) => (one.name = `[${first + row}]`));
  if (decoder.position < bytes.length) {
    const rest = slots.bytes.length - start - decoder.position;
    fields.push(field("tail", decoder.position, bytes.length, 0, { value: `${rest} bytes`, note: "behind the last entry" }));
  }
  return { title: "stored", bytes, position: start, fields, problem: "", derived: false };
}

/** A producer snapshot, whole. */
export function snapshotBlock(bytes, crcIsRight) {
  const fields = [];
  const decoder = new Decoder(bytes, 0, bytes.length, fields);
  const note = (name, value) => (name === "crc" ? `${hex32(value)}, ${crcIsRight ? "right" : "WRONG"}` : timeNote(name, value));
  const block = { title: "stored", bytes, position: 0, fields, problem: "", derived: false };
  guarded(() => decoder.structure("ProducerSnapshot", 0, note), (problem) => (block.problem = problem));
  const crc = fields.find((one) => one.name === "crc");
  if (crc && !crcIsRight) crc.failed = true;
  return block;
}

/** A text file, whole. */
export function textBlock(bytes, fields) {
  return { title: "stored", bytes, position: 0, fields, problem: "", derived: false };
}

/** Bytes in which no entry could be found. */
export async function tailBlock(source, position, words) {
  const bytes = await source.read(position, position + LARGEST_SHOWN / 4);
  const fields = [field("tail", 0, bytes.length, 0, { value: `${source.size - position} bytes`, note: words })];
  return { title: "stored", bytes, position, fields, problem: "", derived: false };
}

/** The value of a field in words, and its note. */
export function fieldText(one) {
  const value = one.value === undefined ? "" : shown(one.value);
  return { value, note: one.note };
}
