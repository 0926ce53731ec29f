/**
 * The walk over a log: every entry, its checksum, its records where they are not compressed, and what is wrong.
 */

import { checksum } from "./checksum.js";
import { Decoder, FormatProblem } from "./decode.js";
import { EntryTable } from "./entries.js";
import { finding } from "./findings.js";
import { STRUCTURES } from "./tables.js";

export const HEADER_SIZE = STRUCTURES.RecordBatchHeader.size;
export const PREFIX_SIZE = 12;
export const HEADERS = { 0: "MessageV0Header", 1: "MessageV1Header", 2: "RecordBatchHeader" };
export const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"];
const MAGIC_POSITION = 16;
const LEAST_SIZE = 14;
const MOST_TRAILING = 17;
const LARGEST_WHOLE = 8 << 20; // bytes of an entry that is read in one piece; of a larger one only the checksum is
const CHUNK = 1 << 20;
const WORK_MS = 40; // between two breaks
const INT32_MAX = 2147483647n;
const INT64_MAX = 9223372036854775807n;
const BATCH_CRC_START = 21;
const MESSAGE_CRC_START = 16;

/**
 * @typedef {object} Log
 * @property {EntryTable} entries
 * @property {import("./findings.js").Finding[]} findings
 * @property {number} damaged position of the first entry that is not intact; Infinity without one
 * @property {number} end of the last whole entry
 * @property {string} tail what stands behind that; empty for nothing
 * @property {Map<bigint, bigint>} aborts producer by the offset of its ABORT record
 */

/**
 * @param {import("./source.js").Source} source
 * @param {bigint} baseOffset of the segment
 * @param {boolean} named whether the file's name says so
 * @param {(share: number) => void} progress told now and then how much is done, from 0 to 1
 * @returns {Promise<Log>}
 */
export async function scanLog(source, baseOffset, named, progress = () => {}) {
  const scan = new Scan(source, baseOffset, named);
  let rested = performance.now();
  while (await scan.step()) {
    if (performance.now() - rested < WORK_MS) continue;
    progress(scan.position / source.size);
    await new Promise((resolve) => setTimeout(resolve)); // let the page draw and answer
    rested = performance.now();
  }
  const { entries, findings, damaged, position, tail, aborts } = scan;
  return { entries, findings, damaged, end: position, tail, aborts };
}

class Scan {
  constructor(source, baseOffset, named) {
    Object.assign(this, { source, baseOffset, named });
    this.entries = new EntryTable();
    this.findings = [];
    this.aborts = new Map();
    this.position = 0;
    this.damaged = Infinity;
    this.previous = null;
    this.tail = "";
  }

  /** One entry, or the end: false. */
  async step() {
    const { source, position } = this;
    const left = source.size - position;
    if (left <= MOST_TRAILING) return this.ended(await source.ahead(position, source.size));
    const head = source.ready(position, position + HEADER_SIZE) || (await source.ahead(position, position + HEADER_SIZE));
    const prefix = new DataView(head.buffer, head.byteOffset, head.byteLength);
    const size = prefix.getInt32(8);
    if (size === 0 && (await this.isZero())) return this.stop("zeros", "SEG-LOG-005", "the end of the log", `${left} bytes: zeros`);
    if (size < LEAST_SIZE) return this.refuse("size", 8, "SEG-LOG-003", "14 or more", size);
    if (size > left - PREFIX_SIZE) {
      return this.stop("an entry that is cut short", "SEG-LOG-004", "a whole entry", `${left} bytes: partial`);
    }
    const magic = prefix.getInt8(MAGIC_POSITION);
    if (!(magic in HEADERS)) return this.refuse("magic", MAGIC_POSITION, "SEG-BAT-004", "0, 1 or 2", magic);
    if (magic === 2 && size < HEADER_SIZE - PREFIX_SIZE) return this.refuse("batchLength", 8, "SEG-BAT-002", "49 or more", size);
    await this.entry(magic, size + PREFIX_SIZE, head);
    this.position += size + PREFIX_SIZE;
    return true;
  }

  /** What is left is too little for an entry. */
  ended(rest) {
    if (!rest.length) return false;
    if (rest.every((byte) => byte === 0)) return this.stop("zeros", "SEG-LOG-005", "the end of the log", `${rest.length} bytes: zeros`);
    return this.stop("trailing bytes", "SEG-LOG-002", "the end of the log", `${rest.length} bytes: trailing`);
  }

  stop(words, requirement, expected, found) {
    this.tail = words;
    this.findings.push(finding(requirement, this.position, "", expected, found));
    return false;
  }

  refuse(name, shift, requirement, expected, found) {
    this.damaged = Math.min(this.damaged, this.position);
    this.tail = "bytes in which no entry can be found";
    this.findings.push(finding(requirement, this.position + shift, name, expected, found));
    return false;
  }

  async isZero() {
    for (let at = this.position; at < this.source.size; at += CHUNK) {
      const part = await this.source.ahead(at, at + CHUNK);
      if (part.some((byte) => byte !== 0)) return false;
    }
    return true;
  }

  async entry(magic, size, head) {
    const { source, position } = this;
    const isLarge = size > LARGEST_WHOLE;
    const bytes = isLarge ? head.slice() : source.ready(position, position + size) || (await source.ahead(position, position + size));
    const header = new Decoder(bytes, 0, Math.min(HEADER_SIZE, size)).structure(HEADERS[magic]);
    const entry = magic === 2 ? batchRow(header) : messageRow(header);
    Object.assign(entry, { position, size, magic, attributes: header.attributes, index: this.entries.length });
    const problems = [];
    const tell = (requirement, name, shift, expected, found) => {
      problems.push(finding(requirement, position + shift, name, expected, found, entry.index));
    };
    const crc = isLarge ? await this.checksumOf(magic, size) : entryChecksum(magic, bytes);
    entry.intact = crc === header.crc && this.read(magic, header, isLarge ? null : bytes, tell);
    if (crc !== header.crc) {
      const requirement = magic === 2 ? "SEG-BAT-003" : "SEG-MSG-004";
      tell(requirement, "crc", magic === 2 ? 17 : 12, hex32(crc), hex32(header.crc));
    }
    if (entry.intact) this.order(entry, tell);
    else this.damaged = Math.min(this.damaged, position);
    if (entry.intact && magic === 2) oddHeader(header, tell);
    if (entry.intact && !isLarge && isAbort(magic, header, bytes)) this.aborts.set(entry.lastOffset, header.producerId);
    this.findings.push(...problems);
    this.entries.add(entry);
  }

  /** The checksum of an entry that is too large to be read in one piece. */
  async checksumOf(magic, size) {
    const start = this.position + (magic === 2 ? BATCH_CRC_START : MESSAGE_CRC_START);
    const end = this.position + size;
    let crc = 0;
    for (let at = start; at < end; at += CHUNK) {
      crc = checksum(magic === 2 ? "crc32c" : "crc32", await this.source.ahead(at, Math.min(at + CHUNK, end)), crc);
    }
    return crc;
  }

  /** Whether header and content can be read. */
  read(magic, header, bytes, tell) {
    try {
      if (magic === 2) readBatch(header, bytes, tell);
      else readMessage(magic, header, bytes, tell);
      return true;
    } catch (problem) {
      if (!(problem instanceof FormatProblem)) throw problem;
      tell(problem.requirement, problem.field, problem.position, problem.expected, problem.found);
      return false;
    }
  }

  /** Offsets against those before, and against the name of the file. */
  order(entry, tell) {
    const { baseOffset, lastOffset } = entry;
    const before = this.previous;
    if (before !== null && lastOffset <= before) tell("SEG-LOG-006", "offset", 0, `a last offset above ${before}`, lastOffset);
    else if (before !== null && baseOffset <= before) tell("SEG-LOG-007", "offset", 0, `a base offset above ${before}`, baseOffset);
    if (this.named && baseOffset < this.baseOffset) tell("SEG-LOG-008", "offset", 0, `${this.baseOffset} or more`, baseOffset);
    const span = lastOffset - this.baseOffset;
    if (this.named && span > INT32_MAX) tell("SEG-LOG-009", "offset", 0, `at most ${INT32_MAX} above the segment's base offset`, span);
    this.previous = lastOffset;
  }
}

/** The checksum that an entry should have. */
export function entryChecksum(magic, bytes) {
  return magic === 2
    ? checksum("crc32c", bytes.subarray(BATCH_CRC_START))
    : checksum("crc32", bytes.subarray(MESSAGE_CRC_START));
}

export const hex32 = (value) => value.toString(16).padStart(8, "0");

function batchRow(header) {
  const baseOffset = header.baseOffset;
  const lastOffset = baseOffset + BigInt(header.lastOffsetDelta);
  return { baseOffset, lastOffset, maxTimestamp: header.maxTimestamp, count: header.recordsCount };
}

function messageRow(header) {
  const maxTimestamp = header.timestamp === undefined ? -1n : header.timestamp;
  return { baseOffset: header.offset, lastOffset: header.offset, maxTimestamp, count: header.attributes & 7 ? -1 : 1 };
}

function readBatch(header, bytes, tell) {
  checkHeader(header);
  const codec = header.attributes & 7;
  if (codec >= CODECS.length) throw new FormatProblem("attributes", 21, "SEG-COD-001", "a codec of 0 to 4", codec);
  if (codec === 0 && bytes) checkRecords(header, bytes, HEADER_SIZE, tell);
}

function checkHeader(header) {
  const { baseOffset: base, lastOffsetDelta: delta, recordsCount: count } = header;
  if (base < 0n) throw new FormatProblem("baseOffset", 0, "SEG-BAT-005", "0 or more", base);
  if (delta < 0) throw new FormatProblem("lastOffsetDelta", 23, "SEG-BAT-006", "0 or more", delta);
  if (count < 0) throw new FormatProblem("recordsCount", 57, "SEG-BAT-007", "0 or more", count);
  if (base + BigInt(delta) > INT64_MAX) throw new FormatProblem("lastOffsetDelta", 23, "SEG-BAT-009", "below 2^63", `${base} + ${delta}`);
}

/** Records one after the other, without keeping them. */
export function checkRecords(header, bytes, start, tell) {
  const decoder = new Decoder(bytes, start, bytes.length, null, "SEG-REC-006");
  let delta = -1;
  let largest = null;
  for (let index = 0; index < header.recordsCount; index++) {
    const at = decoder.position;
    if (at === bytes.length) throw new FormatProblem("records", at, "SEG-BAT-008", `${header.recordsCount} records`, `the end after ${index}`);
    const record = decoder.structure("Record");
    const used = decoder.position - at - varintSize(bytes, at);
    if (used !== record.length) throw new FormatProblem(`records[${index}]`, at, "SEG-REC-001", `fields of ${record.length} bytes`, used);
    if (record.offsetDelta <= delta) tell("SEG-REC-013", `records[${index}].offsetDelta`, at, `above ${delta}`, record.offsetDelta);
    if (record.offsetDelta < 0 || record.offsetDelta > header.lastOffsetDelta) {
      tell("SEG-REC-014", `records[${index}].offsetDelta`, at, `0 to ${header.lastOffsetDelta}`, record.offsetDelta);
    }
    delta = record.offsetDelta;
    const timestamp = BigInt.asIntN(64, header.baseTimestamp + record.timestampDelta);
    if (largest === null || timestamp > largest) largest = timestamp;
  }
  const left = bytes.length - decoder.position;
  if (left) throw new FormatProblem("records", decoder.position, "SEG-BAT-008", `the end after ${header.recordsCount} records`, `${left} bytes`);
  const isCreateTime = !(header.attributes & 8);
  if (isCreateTime && largest !== null && largest !== header.maxTimestamp) {
    tell("SEG-BAT-015", "maxTimestamp", 35, largest, header.maxTimestamp);
  }
}

function varintSize(bytes, at) {
  let size = 1;
  while (bytes[at + size - 1] & 0x80) size++;
  return size;
}

function oddHeader(header, tell) {
  const { attributes, producerId: producer, producerEpoch: epoch } = header;
  const isControl = Boolean(attributes & 32);
  if (attributes & 0xff80) tell("SEG-BAT-014", "attributes", 21, "bits 7 to 15 clear", `0x${(attributes & 0xff80).toString(16)}`);
  if (producer !== -1n && epoch < 0) tell("SEG-BAT-020", "producerEpoch", 51, "0 or more with a producer id", epoch);
  if (producer === -1n && epoch !== -1) tell("SEG-BAT-020", "producerEpoch", 51, "-1 without a producer id", epoch);
  if (header.partitionLeaderEpoch < -1) tell("SEG-BAT-021", "partitionLeaderEpoch", 12, "-1 or greater", header.partitionLeaderEpoch);
  if (attributes & 16 && producer < 0n) tell("SEG-BAT-022", "producerId", 43, "0 or more in a transaction", producer);
  if (isControl && attributes & 7) tell("SEG-BAT-023", "attributes", 21, "codec none in a control batch", attributes & 7);
  if (producer >= 0n && !isControl && header.baseSequence < 0) {
    tell("SEG-BAT-024", "baseSequence", 53, "0 or more with a producer id", header.baseSequence);
  }
}

/** Whether a control batch says that a transaction was aborted, or was emptied by compaction and may have said so. */
function isAbort(magic, header, bytes) {
  if (magic !== 2 || !(header.attributes & 32) || header.attributes & 7) return false;
  if (header.recordsCount === 0) return true;
  const { key } = new Decoder(bytes, HEADER_SIZE).structure("Record");
  return key !== null && key.length >= 4 && key[2] === 0 && key[3] === 0;
}

function readMessage(magic, header, bytes, tell) {
  const codec = header.attributes & 7;
  if (codec > 4) throw new FormatProblem("attributes", 17, "SEG-COD-001", "a codec of 0 to 4", codec);
  if (codec === 4) throw new FormatProblem("attributes", 17, "SEG-MSG-018", "another codec than zstd", codec);
  const least = magic === 0 ? 14 : 22;
  if (header.messageSize < least) throw new FormatProblem("messageSize", 8, "SEG-MSG-003", `${least} or more`, header.messageSize);
  if (header.offset < 0n) throw new FormatProblem("offset", 0, "SEG-MSG-025", "0 or more", header.offset);
  if (!bytes) return;
  const decoder = new Decoder(bytes, 0, bytes.length, null, "SEG-MSG-005");
  const { key, value } = decoder.structure(magic === 0 ? "MessageV0" : "MessageV1");
  const left = bytes.length - decoder.position;
  if (codec && value === null) throw new FormatProblem("value", 0, "SEG-MSG-009", "compressed messages", "null");
  if (left) tell("SEG-MSG-006", "value", decoder.position, "the end of the message", `${left} bytes`);
  if (codec && key !== null) tell("SEG-MSG-023", "key", 0, "null in a wrapper", `${key.length} bytes`);
}
