/**
 * Indexes, producer snapshots and text files: their rows, and what is wrong with them.
 */

import { checksum } from "./checksum.js";
import { Decoder, field } from "./decode.js";
import { finding } from "./findings.js";
import { SLOTS } from "./kinds.js";
import { hex32 } from "./scan.js";
import { STRUCTURES } from "./tables.js";

const SNAPSHOT_HEADER_SIZE = STRUCTURES.ProducerSnapshotHeader.size;
const PRODUCER_SIZE = STRUCTURES.ProducerStateEntry.size;
const CRC_END = 6;
const NEVER_BELOW_MINUS_ONE = [
  "producerEpoch",
  "lastSequence",
  "lastOffset",
  "offsetDelta",
  "timestamp",
  "coordinatorEpoch",
  "currentTxnFirstOffset",
];

/** The entries of an index file, read when asked for. */
export class Slots {
  /** @param {string} kind of `SLOTS` @param {Uint8Array} bytes the whole file @param {bigint} baseOffset of the segment */
  constructor(kind, bytes, baseOffset) {
    Object.assign(this, { kind, bytes, baseOffset, ...SLOTS[kind] });
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.slotCount = Math.floor(bytes.length / this.size);
    this.length = this.used();
  }

  /** Slots before the zeros at the end; a transaction index has none of these. */
  used() {
    if (!this.zeros) return this.slotCount;
    let end = this.slotCount * this.size;
    while (end > 0 && this.bytes[end - 1] === 0) end--;
    return Math.ceil(end / this.size);
  }

  /** The entry with absolute offsets. */
  entry(index) {
    const at = index * this.size;
    if (this.kind === "offset") {
      return { offset: this.baseOffset + BigInt(this.view.getInt32(at)), position: this.view.getInt32(at + 4) };
    }
    if (this.kind === "time") {
      return { timestamp: this.view.getBigInt64(at), offset: this.baseOffset + BigInt(this.view.getInt32(at + 8)) };
    }
    const values = new Decoder(this.bytes, at, at + this.size).structure(this.structure);
    return { ...values, offset: values.lastOffset };
  }

  /** How many entries a reader uses: up to the first that goes back (SEG-IDX-010, SEG-TIX-009). */
  usable() {
    if (this.usableCount !== undefined) return this.usableCount;
    let count = 0;
    let before = this.kind === "offset" ? { offset: this.baseOffset - 1n } : { timestamp: -1n, offset: this.baseOffset };
    for (; count < this.length; count++) {
      const entry = this.entry(count);
      const goesOn = this.kind === "offset" ? entry.offset > before.offset : entry.timestamp > before.timestamp && entry.offset >= before.offset;
      if (!goesOn) break;
      before = entry;
    }
    this.usableCount = count;
    return count;
  }

  /** The last usable entry for which a condition holds that, once it does not, never holds again; -1 without one. */
  lastWhere(holds) {
    let low = -1;
    let high = this.usable() - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (holds(this.entry(middle))) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/**
 * What is wrong with an index.
 *
 * @param {Slots} slots
 * @param {boolean} named whether the name of the file tells the base offset
 * @param {import("./scan.js").Log | null} log of the same segment
 */
export function indexFindings(slots, named, log) {
  const found = [];
  const rest = slots.bytes.length % slots.size;
  if (rest) found.push(finding(slots.whole, slots.bytes.length - rest, "", `a multiple of ${slots.size} bytes`, slots.bytes.length));
  const zeros = slots.slotCount - slots.length;
  if (zeros) found.push(finding(slots.zeros, slots.length * slots.size, "", "the end of the index", `${zeros} slots of zeros`));
  const rules = { offset: offsetRules, time: timeRules, transaction: transactionRules }[slots.kind];
  let before = null;
  for (let index = 0; index < slots.length; index++) {
    const entry = slots.entry(index);
    const tell = (requirement, name, expected, value) => {
      found.push(finding(requirement, index * slots.size + shiftOf(slots.structure, name), name, expected, value, index));
    };
    rules(entry, before, { slots, named, log }, tell);
    before = entry;
  }
  return found;
}

function shiftOf(structure, name) {
  return STRUCTURES[structure].fields.find((one) => one.field === name).offset;
}

function offsetRules(entry, before, { slots, named, log }, tell) {
  const isNegative = entry.offset < slots.baseOffset;
  if (isNegative) tell("SEG-IDX-002", "relativeOffset", "0 or more", entry.offset - slots.baseOffset);
  if (before && entry.offset <= before.offset) tell("SEG-IDX-004", "relativeOffset", `an offset above ${before.offset}`, entry.offset);
  if (before && entry.position <= before.position) tell("SEG-IDX-005", "position", `a position above ${before.position}`, entry.position);
  if (log && !isNegative && named && entry.position < log.damaged) matchLog(entry, log, tell);
}

/** The one claim that a lookup rests on: position and offset name the same entry of the log. */
function matchLog(entry, log, tell) {
  const index = log.entries.startingAt(entry.position);
  if (index < 0) {
    if (log.tail !== "an entry that is cut short" || entry.position !== log.end) {
      tell("SEG-IDX-003", "position", "where an entry of the log starts", entry.position);
    }
    return;
  }
  const target = log.entries.entry(index);
  const earlier = index ? log.entries.lastOffset(index - 1) : -1n;
  if (index && entry.offset <= earlier) {
    tell("SEG-IDX-006", "relativeOffset", `an offset above ${earlier}, where the entries before the position end`, entry.offset);
  } else if (target.count >= 0 && target.baseOffset > entry.offset) {
    tell("SEG-IDX-006", "relativeOffset", `an offset of ${target.baseOffset} or more, where the entry at the position starts`, entry.offset);
  }
}

function timeRules(entry, before, { slots, named, log }, tell) {
  const last = before ? before.timestamp : -1n;
  if (entry.timestamp <= last) tell("SEG-TIX-002", "timestamp", `a timestamp above ${last}`, entry.timestamp);
  const least = before && before.offset > slots.baseOffset ? before.offset : slots.baseOffset;
  if (entry.offset < least) tell("SEG-TIX-003", "relativeOffset", `an offset of ${least} or more`, entry.offset);
  if (!log || !named) return;
  const reached = log.entries.timestampUpTo(entry.offset, log.damaged);
  if (reached > entry.timestamp) {
    tell("SEG-TIX-004", "timestamp", `a timestamp of ${reached} or more, which the log has reached at offset ${entry.offset}`, entry.timestamp);
  }
  const index = log.entries.endingAtOrAbove(entry.offset, Math.max(0, log.entries.lastWhere((one) => log.entries.lastOffset(one) < entry.offset)));
  const target = index < 0 ? null : log.entries.entry(index);
  if (target && target.position >= log.damaged) return;
  if (!target || (target.count >= 0 && target.baseOffset > entry.offset)) {
    if (log.damaged === Infinity) tell("SEG-TIX-005", "relativeOffset", "an offset that the log holds", entry.offset);
  } else if (target.magic > 0 && target.maxTimestamp !== entry.timestamp) {
    tell("SEG-TIX-005", "timestamp", `${target.maxTimestamp}, the largest of the log entry with offset ${entry.offset}`, entry.timestamp);
  }
}

function transactionRules(entry, before, { slots, named, log }, tell) {
  const { firstOffset: first, lastOffset: last, lastStableOffset: stable } = entry;
  if (entry.version !== 0) tell("SEG-TXN-002", "version", "version 0", entry.version);
  if (named && last < slots.baseOffset) tell("SEG-TXN-003", "lastOffset", `${slots.baseOffset} or more`, last);
  if (before && last <= before.lastOffset) tell("SEG-TXN-004", "lastOffset", `an offset above ${before.lastOffset}`, last);
  if (first < 0n || first > last) tell("SEG-TXN-005", "firstOffset", `0 to ${last}`, first);
  if (log && named && log.damaged === Infinity && log.aborts.get(last) !== entry.producerId) {
    tell("SEG-TXN-006", "lastOffset", `the offset of an ABORT record of producer ${entry.producerId}`, last);
  }
  if (stable < 0n || stable > last + 1n) tell("SEG-TXN-008", "lastStableOffset", `0 to ${last + 1n}`, stable);
}

/**
 * A producer snapshot: header, producers, findings.
 *
 * @param {Uint8Array} bytes the whole file
 * @param {bigint | null} offset in its name
 */
export function readSnapshot(bytes, offset) {
  if (bytes.length < SNAPSHOT_HEADER_SIZE) {
    return { header: null, producers: [], findings: [finding("SEG-PSN-003", 0, "", "10 bytes or more", bytes.length)] };
  }
  const header = new Decoder(bytes).structure("ProducerSnapshotHeader");
  const findings = [];
  const crc = checksum("crc32c", bytes.subarray(CRC_END));
  const wanted = SNAPSHOT_HEADER_SIZE + PRODUCER_SIZE * header.count;
  if (header.version !== 1) findings.push(finding("SEG-PSN-001", 0, "version", "version 1", header.version));
  if (crc !== header.crc) findings.push(finding("SEG-PSN-002", 2, "crc", hex32(crc), hex32(header.crc)));
  if (wanted !== bytes.length) findings.push(finding("SEG-PSN-003", CRC_END, "count", `${wanted} bytes for ${header.count} entries`, bytes.length));
  const whole = Math.max(0, Math.min(header.count, Math.floor((bytes.length - SNAPSHOT_HEADER_SIZE) / PRODUCER_SIZE)));
  const producers = new Decoder(bytes, SNAPSHOT_HEADER_SIZE).array("ProducerStateEntry", whole, 0);
  if (!findings.length) producerRules(producers, offset, findings);
  return { header, producers, findings };
}

function producerRules(producers, offset, findings) {
  const seen = new Set();
  producers.forEach((producer, row) => {
    const tell = (requirement, name, expected) => {
      const position = SNAPSHOT_HEADER_SIZE + row * PRODUCER_SIZE + shiftOf("ProducerStateEntry", name);
      findings.push(finding(requirement, position, name, expected, producer[name], row));
    };
    const id = producer.producerId;
    if (id < 0n || seen.has(id)) tell("SEG-PSN-004", "producerId", "an id of 0 or more that did not occur before");
    seen.add(id);
    for (const name of NEVER_BELOW_MINUS_ONE) if (producer[name] < -1) tell("SEG-PSN-004", name, "-1 or more");
    for (const name of ["lastOffset", "currentTxnFirstOffset"]) {
      if (offset !== null && producer[name] >= offset) tell("SEG-PSN-006", name, `below ${offset}`);
    }
  });
}

const INT32 = [-(2n ** 31n), 2n ** 31n - 1n];
const INT64 = [-(2n ** 63n), 2n ** 63n - 1n];

/**
 * A text file: fields, one row for each line, findings.
 *
 * @param {"offsets" | "epochs" | "metadata"} kind
 * @param {Uint8Array} bytes the whole file
 */
export function readText(kind, bytes) {
  const text = new Text(bytes);
  const found = kind === "metadata" ? metadata(text) : checkpoint(kind, text);
  return { fields: text.fields, rows: found, findings: text.findings };
}

/** Lines of a file, with the places of their words. */
class Text {
  constructor(bytes) {
    this.lines = [];
    this.fields = [];
    this.findings = [];
    let start = 0;
    for (let at = 0; at <= bytes.length; at++) {
      const isEnd = bytes[at] === 10 || bytes[at] === 13;
      if (at < bytes.length && !isEnd) continue;
      const line = bytes.subarray(start, at);
      if (at > start || isEnd) this.lines.push({ start, end: at, bytes: line, text: UTF8.decode(line) });
      if (bytes[at] === 13 && bytes[at + 1] === 10) at++;
      start = at + 1;
    }
    try {
      new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    } catch {
      this.tell("SEG-CKP-013", 0, "", "text in UTF-8", "other bytes");
    }
  }

  tell(requirement, position, name, expected, found, row = -1) {
    this.findings.push(finding(requirement, position, name, expected, found, row));
  }

  /** A decimal number of so many bits, or null with a finding. */
  number(word, bounds, requirement, name, row) {
    const value = /^[+-]?\d+$/.test(word.text) ? BigInt(word.text.replace("+", "")) : null;
    if (value !== null && value >= bounds[0] && value <= bounds[1]) return value;
    this.tell(requirement, word.start, name, `a decimal number of ${bounds === INT32 ? 32 : 64} bits`, word.text || "nothing", row);
    return null;
  }

  add(structure, name, word, depth, value) {
    const declared = STRUCTURES[structure].fields.find((one) => one.field === name);
    const failed = value === null;
    const doc = { doc: declared.doc, requirements: declared.requirements };
    this.fields.push(field(name, word.start, word.end, depth, { ...doc, value: failed ? word.text : value, failed }));
  }
}

const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });
const BYTEWISE = new TextDecoder("latin1"); // a character for each byte, so that places in text are places in bytes

/** The words of a line with their places. */
function words(line) {
  return Array.from(BYTEWISE.decode(line.bytes).matchAll(/[^ \t\v\f]+/g), ({ 0: word, index }) => {
    const end = index + word.length;
    return { text: UTF8.decode(line.bytes.subarray(index, end)), start: line.start + index, end: line.start + end };
  });
}

function checkpoint(kind, text) {
  const [structure, names] = kind === "offsets" ? ["OffsetCheckpointEntry", ["topic", "partition", "offset"]] : ["LeaderEpochCheckpointEntry", ["epoch", "startOffset"]];
  const [version, count, ...lines] = text.lines;
  if (!version) return [];
  const stated = text.number(version, INT32, "SEG-CKP-004", "version");
  text.add("CheckpointHeader", "version", version, 0, stated);
  if (stated !== null && stated !== 0n) text.tell("SEG-CKP-001", 0, "version", "version 0", stated);
  if (!count) return [];
  const expected = text.number(count, INT32, "SEG-CKP-004", "entryCount");
  text.add("CheckpointHeader", "entryCount", count, 0, expected);
  if (expected !== null && Number(expected) !== lines.length) {
    text.tell("SEG-CKP-002", count.start, "entryCount", `a count of the ${lines.length} lines that follow`, expected);
  }
  const rows = lines.map((line, row) => checkpointLine(text, structure, names, line, row));
  if (kind === "epochs") epochRules(rows, lines, text);
  else offsetCheckpointRules(rows, lines, text);
  return rows;
}

function checkpointLine(text, structure, names, line, row) {
  const found = words(line);
  const values = {};
  text.fields.push(field(`[${row}]`, line.start, line.end, 0, { group: true }));
  if (found.length !== names.length) {
    const extra = found[names.length] || { start: line.end };
    text.tell("SEG-CKP-003", extra.start, "", `${names.length} fields`, found.length, row);
    return values;
  }
  names.forEach((name, index) => {
    const bounds = ["partition", "epoch"].includes(name) ? INT32 : INT64;
    values[name] = name === "topic" ? found[index].text : text.number(found[index], bounds, "SEG-CKP-004", name, row);
    text.add(structure, name, found[index], 1, values[name]);
  });
  return values;
}

function epochRules(rows, lines, text) {
  rows.forEach((one, row) => {
    const before = rows[row - 1];
    const tell = (name, expected) => text.tell("SEG-CKP-007", lines[row].start, name, expected, one[name], row);
    if (one.epoch < 0n) tell("epoch", "0 or more");
    if (one.startOffset < 0n) tell("startOffset", "0 or more");
    if (before && one.epoch <= before.epoch) tell("epoch", `more than ${before.epoch}`);
    if (before && one.startOffset <= before.startOffset) tell("startOffset", `more than ${before.startOffset}`);
  });
}

function offsetCheckpointRules(rows, lines, text) {
  const seen = new Set();
  rows.forEach((one, row) => {
    const name = `${one.topic}-${one.partition}`;
    const tell = (expected, found) => text.tell("SEG-CKP-008", lines[row].start, "", expected, found, row);
    if (seen.has(name)) tell("one entry for a partition", `another one for ${name}`);
    if (one.offset < 0n) tell("an offset of 0 or more", one.offset);
    seen.add(name);
  });
}

const NO_LINE = { text: "", start: 0, end: 0 };

function metadata(text) {
  const patterns = { version: /^version:[ \t]+(\d+)$/, topic_id: /^topic_id:[ \t]+(?!A{21}[A-P]$)([\w-]{22})$/ };
  return Object.entries(patterns).map(([name, pattern], index) => {
    const line = text.lines[index] || NO_LINE;
    const match = pattern.exec(line.text);
    text.add("PartitionMetadata", name, line, 0, match && match[1]);
    if (!match) text.tell("SEG-CKP-009", line.start, name, `'${name}: ' and its value`, line.text || "nothing");
    return { [name]: match && match[1] };
  });
}
