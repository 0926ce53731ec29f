// A decoder of magic 0, 1 and 2, written from spec/ alone: chapters 20, 30 to 34. Numbers of 64 bits are BigInts.
import { crc32, crc32c, decompress, require } from "./codec.mjs";

const LONGEST_TAIL = 17;
const SMALLEST_SIZE = 14;
const BATCH_HEADER = 61;
const LARGEST = 2n ** 63n - 1n;
const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"];

// Takes fields from the front of bytes, and nothing from behind their end.
class Cursor {
  constructor(data) {
    this.data = data;
    this.at = 0;
  }

  take(size) {
    require(size >= 0 && size <= this.data.length - this.at, "bytes end in a field");
    this.at += size;
    return this.data.subarray(this.at - size, this.at);
  }

  int8() {
    return this.take(1).readInt8();
  }

  int16() {
    return this.take(2).readInt16BE();
  }

  int32() {
    return this.take(4).readInt32BE();
  }

  uint32() {
    return this.take(4).readUInt32BE();
  }

  int64() {
    return this.take(8).readBigInt64BE();
  }

  varint(bits) {
    let value = 0n;
    for (let shift = 0; shift < bits; shift += 7) {
      const byte = this.take(1)[0];
      value |= BigInt(byte & 127) << BigInt(shift);
      if (byte < 128) {
        value = BigInt.asUintN(bits, value);
        return (value >> 1n) ^ -(value & 1n);
      }
    }
    return require(false, "varint is too long");
  }

  varint32() {
    return Number(this.varint(32));
  }

  // Bytes; a negative size is null, and 0 is empty.
  nullable(size) {
    return size < 0 ? null : this.take(size);
  }
}

// Yields each whole entry, and returns where they end.
export function* decode(data, isChecked = true, limit = 2 ** 24) {
  let at = 0;
  while (data.length - at > LONGEST_TAIL) {
    const size = data.readInt32BE(at + 8);
    const magic = data.readInt8(at + 16);
    if (size === 0 && data.subarray(at).every((byte) => byte === 0)) break;
    require(size >= SMALLEST_SIZE, `size ${size}`);
    if (at + 12 + size > data.length) break;
    require(magic >= 0 && magic <= 2, `magic ${magic}`);
    const entry = data.subarray(at, at + 12 + size);
    const found = magic === 2 ? recordBatch(entry, isChecked, limit) : messageEntry(entry, isChecked, limit);
    yield { position: at, sizeInBytes: entry.length, magic, ...found };
    at += entry.length;
  }
  return at;
}

// -- magic 2

function recordBatch(entry, isChecked, limit) {
  require(entry.length >= BATCH_HEADER, "batch length");
  const fields = new Cursor(entry);
  const baseOffset = fields.int64();
  fields.take(4);
  const partitionLeaderEpoch = fields.int32();
  fields.take(1);
  const crc = fields.uint32();
  const attributes = fields.int16();
  const lastOffsetDelta = fields.int32();
  const baseTimestamp = fields.int64();
  const maxTimestamp = fields.int64();
  const producerId = fields.int64();
  const producerEpoch = fields.int16();
  const baseSequence = fields.int32();
  const recordsCount = fields.int32();
  const isValid = crc === crc32c(entry.subarray(21));
  const lastOffset = baseOffset + BigInt(lastOffsetDelta);
  require(isValid || !isChecked, "checksum");
  require(baseOffset >= 0n, "negative base offset");
  require(lastOffsetDelta >= 0 && lastOffset <= LARGEST, "last offset");
  require(recordsCount >= 0, "negative records count");
  const isAppendTime = (attributes & 8) !== 0;
  const isControl = (attributes & 32) !== 0;
  const content = new Cursor(decompress(attributes & 7, entry.subarray(BATCH_HEADER), 2, limit));
  const records = [];
  for (let number = 0; number < recordsCount; number++) {
    const record = batchRecord(content, baseOffset, baseTimestamp);
    if (isAppendTime) record.timestamp = maxTimestamp;
    if (isControl) checkControl(record);
    records.push(record);
  }
  require(content.at === content.data.length, "bytes after the last record");
  return {
    baseOffset,
    lastOffset,
    nextOffset: lastOffset + 1n,
    crc,
    codec: CODECS[attributes & 7],
    timestampType: isAppendTime ? "LogAppendTime" : "CreateTime",
    maxTimestamp,
    deleteHorizonMs: attributes & 64 ? baseTimestamp : null,
    recordsCount,
    producerId,
    producerEpoch,
    baseSequence,
    lastSequence: baseSequence === -1 ? -1 : (baseSequence + lastOffsetDelta) & 0x7fffffff,
    isTransactional: (attributes & 16) !== 0,
    isControl,
    partitionLeaderEpoch,
    isValid,
    records,
  };
}

function batchRecord(content, baseOffset, baseTimestamp) {
  const body = new Cursor(content.take(content.varint32()));
  body.take(1);
  const timestamp = BigInt.asIntN(64, baseTimestamp + body.varint(64));
  const offset = baseOffset + body.varint(32);
  require(offset >= 0n && offset <= LARGEST, "offset of a record");
  const key = body.nullable(body.varint32());
  const value = body.nullable(body.varint32());
  const count = body.varint32();
  require(count >= 0, "negative header count");
  const headers = [];
  for (let number = 0; number < count; number++) {
    const name = body.take(body.varint32());
    headers.push([name, body.nullable(body.varint32())]);
  }
  require(body.at === body.data.length, "fields do not fill the record");
  return { offset, timestamp, key, value, headers };
}

// A control record has a type, and an end marker an epoch.
function checkControl({ key, value }) {
  require(key !== null && key.length >= 4 && key.readInt16BE(0) >= 0, "control key");
  if (key.readInt16BE(2) === 0 || key.readInt16BE(2) === 1)
    require(value !== null && value.length >= 6 && value.readInt16BE(0) >= 0, "end marker");
}

// -- magic 0 and 1

function messageEntry(entry, isChecked, limit) {
  const outer = message(entry, isChecked);
  require(outer.offset >= 0n, "offset of a wrapper");
  const codec = outer.attributes & 7;
  const isAppendTime = outer.magic === 1 && (outer.attributes & 8) !== 0;
  let messages = [outer];
  if (codec !== 0) {
    require(codec < 4, `codec ${codec} in a wrapper`);
    require(outer.value !== null, "null value of a wrapper");
    messages = inside(outer, decompress(codec, outer.value, outer.magic, limit), isChecked);
  }
  const records = messages.map(({ magic, offset, timestamp, key, value }) => {
    require(offset >= 0n && offset <= LARGEST, "offset of a message");
    if (isAppendTime && magic === 1) timestamp = outer.timestamp;
    return { offset, timestamp, key, value, headers: [] };
  });
  return {
    baseOffset: records[0].offset,
    lastOffset: outer.offset,
    nextOffset: outer.offset + 1n,
    crc: outer.crc,
    codec: CODECS[codec],
    timestampType: outer.magic === 0 ? "NoTimestampType" : isAppendTime ? "LogAppendTime" : "CreateTime",
    maxTimestamp: outer.timestamp,
    deleteHorizonMs: null,
    recordsCount: null,
    producerId: -1n,
    producerEpoch: -1,
    baseSequence: -1,
    lastSequence: -1,
    isTransactional: false,
    isControl: false,
    partitionLeaderEpoch: -1,
    isValid: outer.isValid,
    records,
  };
}

// The fields of one message, as they are stored.
function message(entry, isChecked) {
  const fields = new Cursor(entry);
  const offset = fields.int64();
  fields.take(4);
  const crc = fields.uint32();
  const isValid = crc === crc32(entry.subarray(16));
  require(isValid || !isChecked, "checksum of a message");
  const magic = fields.int8();
  const attributes = fields.int8();
  require(magic === 0 || magic === 1, `magic ${magic} inside a wrapper`);
  const timestamp = magic === 1 ? fields.int64() : -1n;
  const key = fields.nullable(fields.int32());
  const value = fields.nullable(fields.int32());
  return { offset, crc, isValid, magic, attributes, timestamp, key, value };
}

// The messages of a wrapper, with absolute offsets.
function inside(outer, content, isChecked) {
  const messages = [];
  for (let at = 0; content.length - at >= 12; ) {
    const size = content.readInt32BE(at + 8);
    require(size >= SMALLEST_SIZE, `size ${size} inside a wrapper`);
    if (at + 12 + size > content.length) break;
    const one = message(content.subarray(at, at + 12 + size), isChecked);
    require((one.attributes & 7) === 0, "a wrapper inside a wrapper");
    messages.push(one);
    at += 12 + size;
  }
  require(messages.length > 0, "a wrapper without messages");
  if (outer.magic === 1 && outer.offset !== 0n) {
    const shift = outer.offset - messages.at(-1).offset;
    require(shift >= 0n, "offset of a wrapper below the last one inside");
    for (const one of messages) one.offset += shift;
  }
  return messages;
}
