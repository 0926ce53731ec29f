// Plumbing that the three adapters share: checksums, entries of a `.log` file, records, names, the loop of the protocol.
// Layouts from layout.json (EntryPrefix, RecordBatchHeader, Record, MessageV0/V1), terms from 00-terms.md.
// Offsets and timestamps are BigInt; positions and sizes are Number.
import { gunzipSync } from 'node:zlib';
import { createInterface } from 'node:readline';

export const NO_TIMESTAMP = -1n;
export const LAST_OFFSET = 2n ** 63n - 2n; // guess: the last offset that leaves one for the next entry (SEG-LOG-013)
export const MOST_AHEAD = 2147483647n; // guess: the largest relative offset in four signed bytes (SEG-LOG-009)

/** Bytes break a rule. */
export class Damage extends Error {
  constructor(requirement, at = null, text = '') {
    super(`${requirement}${at === null ? '' : ` at ${at}`}${text && `: ${text}`}`);
    Object.assign(this, { requirement, at });
  }
}
/** What these programs do not handle. */
export class NotHandled extends Error {}

// ---- checksums -------------------------------------------------------------------------------------------------
const tableOf = (polynomial) => Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ polynomial : n >>> 1;
  return n >>> 0;
});
const CRC32 = tableOf(0xedb88320);
const CRC32C = tableOf(0x82f63b78);
function crc(table, bytes) {
  let value = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) value = table[(value ^ bytes[i]) & 0xff] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
export const crc32c = (bytes) => crc(CRC32C, bytes);

// ---- entries ---------------------------------------------------------------------------------------------------
/** One entry of a log, by its header alone. */
export class Entry {
  constructor(data, position) {
    this.data = data;
    this.position = position;
    this.end = position + data.length;
    this.magic = data.readInt8(16);
    const offset = data.readBigInt64BE(0);
    if (this.magic === 2) {
      this.attributes = data.readInt16BE(21);
      this.crc = data.readUInt32BE(17);
      this.firstOffset = offset; // base offset of the batch, whatever compaction has removed
      this.lastOffset = offset + BigInt(data.readInt32BE(23));
      this.baseTimestamp = data.readBigInt64BE(27);
      this.maxTimestamp = data.readBigInt64BE(35);
      this.producerId = data.readBigInt64BE(43);
      this.producerEpoch = data.readInt16BE(51);
      this.baseSequence = data.readInt32BE(53);
      this.recordsCount = data.readInt32BE(57);
      this.isTransactional = (this.attributes & 16) !== 0;
      this.isControl = (this.attributes & 32) !== 0;
    } else {
      this.attributes = data.readInt8(17);
      this.crc = data.readUInt32BE(12);
      this.isWrapper = (this.attributes & 7) !== 0;
      this.firstOffset = this.isWrapper ? null : offset; // "the first offset is not stored" (chapter 40)
      this.lastOffset = offset; // of a wrapper: of the last message inside
      this.maxTimestamp = this.magic === 1 ? data.readBigInt64BE(18) : NO_TIMESTAMP;
      this.producerId = -1n;
      this.isTransactional = this.isControl = false;
    }
    this.codec = this.attributes & 7;
    this.isAppendTime = this.magic > 0 && (this.attributes & 8) !== 0;
  }
}

export const crcOf = (entry) =>
  entry.magic === 2 ? crc(CRC32C, entry.data.subarray(21)) : crc(CRC32, entry.data.subarray(16));

export function checkCrc(entry) {
  if (entry.crc !== crcOf(entry)) {
    throw new Damage(entry.magic === 2 ? 'SEG-BAT-003' : 'SEG-MSG-004', entry.position, 'wrong checksum');
  }
}

/**
 * Yield the entries of a log from a position on. The chapters that define this walk are not at hand. Decided: it ends
 * without an error at the end of the file, at an entry that the end of the file cuts short, and where only zeros
 * follow (SEG-LOG-002, -004, -005); an impossible size, an unknown magic or a negative last offset delta is damage.
 */
export function* walk(log, start = 0) {
  let position = start;
  while (position < log.length) {
    const rest = log.length - position;
    if (rest < 12) return;
    const size = log.readInt32BE(position + 8);
    if (size < 14) {
      if (log.subarray(position).every((byte) => byte === 0)) return;
      throw new Damage('SEG-LOG-003', position, `size ${size}`);
    }
    if (size + 12 > rest) return;
    const magic = log.readInt8(position + 16);
    if (magic < 0 || magic > 2) throw new Damage('SEG-BAT-004', position, `magic ${magic}`);
    if (magic === 1 && size < 22) throw new Damage('SEG-MSG-003', position, `size ${size}`);
    if (magic === 2 && size < 49) throw new Damage('SEG-BAT-002', position, `size ${size}`);
    const entry = new Entry(log.subarray(position, position + 12 + size), position);
    if (magic === 2 && entry.lastOffset < entry.firstOffset) throw new Damage('SEG-BAT-006', position);
    yield entry;
    position = entry.end;
  }
}

// ---- records ---------------------------------------------------------------------------------------------------
const GZIP = 1;
const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
function decompress(entry, bytes) {
  if (entry.codec === 0) return bytes;
  if (entry.codec !== GZIP) {
    if (CODECS[entry.codec] === undefined) throw new Damage('SEG-COD-001', entry.position, `codec ${entry.codec}`);
    throw new NotHandled(`codec ${CODECS[entry.codec]}: only gzip is handled`);
  }
  try {
    return gunzipSync(bytes);
  } catch (error) {
    throw new Damage('SEG-COD-002', entry.position, error.message);
  }
}

class Cursor {
  constructor(bytes, entry) {
    Object.assign(this, { bytes, entry, at: 0 });
  }
  take(size) {
    if (size < 0 || size > this.bytes.length - this.at) {
      throw new Damage('SEG-REC-001', this.entry.position, `${size} bytes needed, ${this.bytes.length - this.at} left`);
    }
    this.at += size;
    return this.bytes.subarray(this.at - size, this.at);
  }
  varint(bits) { // zig-zag, groups of seven bits, the low group first (00-terms)
    let raw = 0n;
    for (let shift = 0n; ; shift += 7n) {
      if (shift >= BigInt(bits)) throw new Damage('SEG-REC-001', this.entry.position, 'varint too long');
      const byte = this.take(1)[0];
      raw |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    raw = BigInt.asUintN(bits, raw);
    return BigInt.asIntN(bits, (raw >> 1n) ^ -(raw & 1n));
  }
  length() { return Number(this.varint(32)); }
  nullableBytes(length) { return length < 0 ? null : this.take(length); }
}

/** Return the records of an entry (offset, timestamp, key, value), after its checksum. */
export function recordsOf(entry) {
  checkCrc(entry);
  return entry.magic === 2 ? recordsOfBatch(entry) : recordsOfMessage(entry);
}

function recordsOfBatch(entry) {
  const cursor = new Cursor(decompress(entry, entry.data.subarray(61)), entry);
  if (entry.recordsCount < 0) throw new Damage('SEG-BAT-007', entry.position, `count ${entry.recordsCount}`);
  const records = [];
  for (let n = 0; n < entry.recordsCount; n++) {
    const length = cursor.length();
    if (length < 0) throw new Damage('SEG-REC-002', entry.position, `length ${length}`);
    const one = new Cursor(cursor.take(length), entry);
    one.take(1); // attributes
    const timestampDelta = one.varint(64);
    const offsetDelta = one.varint(32);
    if (offsetDelta < 0n || entry.firstOffset + offsetDelta > entry.lastOffset) {
      throw new Damage('SEG-REC-012', entry.position, `offset delta ${offsetDelta}`);
    }
    const key = one.nullableBytes(one.length());
    const value = one.nullableBytes(one.length());
    const headers = one.length();
    if (headers < 0) throw new Damage('SEG-REC-008', entry.position, `${headers} headers`);
    for (let h = 0; h < headers; h++) {
      const keySize = one.length();
      if (keySize < 0) throw new Damage('SEG-REC-009', entry.position);
      one.take(keySize);
      one.nullableBytes(one.length());
    }
    if (one.at !== length) throw new Damage('SEG-REC-002', entry.position, 'bytes left in a record');
    records.push({
      offset: entry.firstOffset + offsetDelta,
      timestamp: entry.isAppendTime ? entry.maxTimestamp : entry.baseTimestamp + timestampDelta,
      key,
      value,
    });
  }
  if (cursor.at !== cursor.bytes.length) throw new Damage('SEG-BAT-007', entry.position, 'bytes left after the records');
  return records;
}

function keyAndValue(message) {
  const cursor = new Cursor(message.data, message);
  cursor.take(message.magic === 1 ? 26 : 18);
  const key = cursor.nullableBytes(cursor.take(4).readInt32BE(0));
  const value = cursor.nullableBytes(cursor.take(4).readInt32BE(0));
  if (cursor.at !== message.data.length) throw new Damage('SEG-MSG-005', message.position, 'bytes left in a message');
  return { key, value };
}

function recordsOfMessage(entry) {
  const outer = keyAndValue(entry);
  if (!entry.isWrapper) return [{ offset: entry.lastOffset, timestamp: entry.maxTimestamp, ...outer }];
  if (outer.value === null) throw new Damage('SEG-MSG-009', entry.position, 'a wrapper without a value');
  const bytes = decompress(entry, outer.value);
  const inner = [...walk(bytes)];
  if (!inner.length || inner.at(-1).end !== bytes.length || inner.some((one) => one.magic !== entry.magic || one.isWrapper)) {
    throw new Damage('SEG-MSG-009', entry.position, 'content of a wrapper');
  }
  // chapter 33 is not at hand: magic 1 counts inner offsets back from the wrapper's, magic 0 stores them as they are
  const shift = entry.magic === 1 ? entry.lastOffset - inner.at(-1).lastOffset : 0n;
  return inner.map((one) => ({
    offset: one.lastOffset + shift,
    timestamp: entry.isAppendTime ? entry.maxTimestamp : one.maxTimestamp,
    ...keyAndValue(one),
  }));
}

/** The first offset of an entry; of a wrapper, that of the first message inside. */
export const firstOffsetOf = (entry) => entry.firstOffset ?? recordsOf(entry)[0].offset;

/** The end marker in an entry, or null: control batch with a record of type ABORT (0) or COMMIT (1) (SEG-LKP-016). */
export const ABORT = 0;
export const COMMIT = 1;
export function markerOf(entry) {
  if (!entry.isControl || entry.producerId < 0n || entry.recordsCount <= 0) return null;
  const [record] = recordsOf(entry); // decided: only the first control record of a batch counts
  if (record.key === null || record.key.length < 4) throw new Damage('SEG-CTL-001', entry.position, 'control key');
  const type = record.key.readInt16BE(2);
  if (type !== ABORT && type !== COMMIT) return null;
  const coordinatorEpoch = record.value?.length >= 6 ? record.value.readInt32BE(2) : -1;
  return { type, coordinatorEpoch, timestamp: record.timestamp };
}

/** The open transactions after an entry, and the one that it aborts (chapter 60, `after_entry`; SEG-LKP-016). */
export function afterEntry(open, entry, marker) {
  const [id, offset] = [entry.producerId, entry.firstOffset];
  if (marker === null || offset === null) {
    if (!entry.isTransactional || entry.isControl || offset === null) return { open, aborted: null };
    return { open: open.has(id) ? open : new Map([...open, [id, offset]]), aborted: null };
  }
  const others = new Map([...open].filter(([each]) => each !== id));
  if (marker.type !== ABORT || !open.has(id)) return { open: others, aborted: null }; // SEG-TXN-006
  const firsts = [...others.values()];
  const lastStableOffset = firsts.length ? firsts.reduce((a, b) => (a < b ? a : b)) : offset + 1n; // SEG-TXN-008
  return { open: others, aborted: { producerId: id, firstOffset: open.get(id), lastOffset: offset, lastStableOffset } };
}

// ---- segments and checkpoints ------------------------------------------------------------------------------------
export const fileName = (baseOffset, kind) => `${String(baseOffset).padStart(20, '0')}${kind}`;
export function parseName(name) {
  const parts = /^(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?$/.exec(name);
  return parts && { baseOffset: BigInt(parts[1]), kind: parts[2], state: parts[3] ?? '' };
}

/** The segments of a partition directory, by base offset; `end` is the base offset of the next one, or null. */
export function segmentsOf(files) {
  const segments = [];
  for (const [name, data] of files) {
    const parts = parseName(name);
    if (parts?.kind === '.log' && parts.state === '') {
      segments.push({ name, baseOffset: parts.baseOffset, log: data, offsetIndex: files.get(fileName(parts.baseOffset, '.index')) ?? Buffer.alloc(0) });
    }
  }
  segments.sort((a, b) => (a.baseOffset < b.baseOffset ? -1 : 1));
  segments.forEach((segment, n) => { segment.end = segments[n + 1]?.baseOffset ?? null; });
  return segments;
}

/** Chapter 60, `logs.in_order`: entries as long as their offsets are possible (SEG-LKP-014). */
export function* inOrder(segment, start = 0) {
  let last = segment.baseOffset - 1n;
  for (const entry of walk(segment.log, start)) {
    if (entry.firstOffset !== null && entry.firstOffset < segment.baseOffset) {
      throw new Damage('SEG-LOG-008', entry.position, `offset ${entry.firstOffset}`);
    }
    if (entry.lastOffset <= last) throw new Damage('SEG-LOG-006', entry.position, `last offset ${entry.lastOffset}`);
    if (entry.lastOffset > LAST_OFFSET) throw new Damage('SEG-LOG-013', entry.position, `last offset ${entry.lastOffset}`);
    if (segment.end !== null && entry.lastOffset >= segment.end) {
      throw new Damage('SEG-PDR-013', entry.position, `last offset ${entry.lastOffset}`);
    }
    yield entry;
    last = entry.lastOffset;
  }
}

/** The entries before the first damage, and the damage or null. Decided: as `in_order`, so without checksums. */
export function beforeDamage(segment) {
  const entries = [];
  try {
    for (const entry of inOrder(segment)) entries.push(entry);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return { entries, damage: error };
  }
  return { entries, damage: null };
}

/** Chapter 60, `logs.next_offset`. */
export function nextOffset(segment) {
  const { entries } = beforeDamage(segment);
  return entries.length ? entries.at(-1).lastOffset + 1n : segment.baseOffset;
}

// The names of checkpoints are not in the chapters at hand: found by the words "log-start" and "replication".
export const LOG_STARTS = 'log-start-offset-checkpoint';
export const HIGH_WATERMARKS = 'replication-offset-checkpoint';
/** Lines `topic partition offset` after a version and a count (layout.json, OffsetCheckpoint). */
export function checkpointEntries(bytes) {
  if (!bytes || bytes.length === 0) return [];
  const [version, count, ...lines] = bytes.toString('utf8').split('\n');
  const entries = lines.filter((line) => line.trim() !== '').map((line) => line.trim().split(/\s+/));
  if (version.trim() !== '0' || Number(count) !== entries.length || entries.some((each) => each.length !== 3)) {
    throw new Damage('SEG-CKP-002', null, 'checkpoint');
  }
  return entries;
}
export function checkpointed(checkpoints, name) {
  const entry = checkpointEntries(checkpoints.get(name)).find(([topic, partition]) => topic === 'topic' && Number(partition) === 0);
  return entry ? BigInt(entry[2]) : null;
}

// ---- the protocol --------------------------------------------------------------------------------------------------
export const big = (value) => (value === undefined || value === null ? null : BigInt(value));
export const bytes = (hex) => Buffer.from(hex ?? '', 'hex');
export const filesOf = (object) => new Map(Object.entries(object ?? {}).map(([name, hex]) => [name, bytes(hex)]));
export const hexOf = (files) => Object.fromEntries([...files].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, data]) => [name, data.toString('hex')]));

/** Answer requests, one JSON object a line, until `stop` or the end of the input. */
export async function serve(name, operation, answerTo, features) {
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
  for await (const line of lines) {
    if (line.trim() === '') continue;
    let seq = null;
    let answer;
    try {
      const request = JSON.parse(line);
      seq = request.seq;
      if (request.op === 'stop') break;
      if (request.op === 'hello') {
        answer = {
          ok: true,
          protocol: 1,
          implementation: { name, version: '1.0.0', language: 'JavaScript', homepage: 'https://example.org/', issues: 'https://example.org/' },
          ops: [operation],
          features: { magic: [0, 1, 2], codec: ['none', 'gzip'], crc: true, errors: ['reading.Damage'], ...features },
        };
      } else if (request.op !== operation) {
        answer = { skip: { reason: `only ${operation} is implemented` } };
      } else {
        answer = { ok: true, ...answerTo(request) };
      }
    } catch (error) {
      if (error instanceof NotHandled) answer = { skip: { reason: error.message } };
      else if (error instanceof Damage) {
        answer = { ok: false, reject: { class: 'other', message: error.message, error: 'reading.Damage', requirement: error.requirement } };
        if (error.at !== null) answer.reject.at = error.at;
      } else {
        console.error(error);
        answer = { error: { message: String(error) } };
      }
    }
    process.stdout.write(`${JSON.stringify({ seq, ...answer })}\n`);
  }
  process.stdin.destroy();
}
