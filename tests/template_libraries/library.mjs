// An encoder, an index builder and a lookup, with which tests fill in the template: batches of magic 2 alone.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const int32 = (number) => {
  const out = Buffer.alloc(4);
  out.writeInt32BE(Number(number) | 0);
  return out;
};

const int64 = (number) => {
  const out = Buffer.alloc(8);
  out.writeBigInt64BE(BigInt(number));
  return out;
};

const varint = (number) => {
  const out = [];
  let left = BigInt.asUintN(64, (BigInt(number) << 1n) ^ (BigInt(number) >> 63n));
  for (; left > 127n; left >>= 7n) out.push(Number(left & 127n) | 128);
  return Buffer.from([...out, Number(left)]);
};

const field = (text) => {
  if (text === null || text === undefined) return varint(-1);
  const data = Buffer.from(text, "hex");
  return Buffer.concat([varint(data.length), data]);
};

const crc32c = (data) => {
  let sum = 0xffffffff;
  for (const byte of data) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0x82f63b78 : 0);
  }
  return ~sum;
};

export const encode = (Skip) => (batches) => Buffer.concat(batches.map((batch) => encoded(batch, Skip)));

function encoded(batch, Skip) {
  const isUsual = BigInt(batch.producerId) < 0n && batch.deleteHorizonMs === null && !batch.isControl;
  if (batch.magic !== 2 || batch.codec !== "none" || batch.records.length === 0 || !isUsual) {
    throw new Skip("it writes no such batches");
  }
  const [base, first] = [BigInt(batch.baseOffset), BigInt(batch.baseTimestamp)];
  const records = batch.records.map((record) => {
    const headers = record.headers ?? [];
    const [time, offset] = [BigInt(record.timestamp) - first, BigInt(record.offset) - base];
    const pairs = headers.flatMap(([key, value]) => [field(key), field(value)]);
    const start = [Buffer.alloc(1), varint(time), varint(offset), field(record.key), field(record.value)];
    const body = Buffer.concat([...start, varint(headers.length), ...pairs]);
    return Buffer.concat([varint(body.length), body]);
  });
  const attributes = Buffer.from([0, batch.timestampType === "LogAppendTime" ? 8 : 0]);
  const times = [int64(first), int64(batch.maxTimestamp)];
  const counts = [Buffer.alloc(14, 255), int32(records.length)];
  const tail = Buffer.concat([attributes, int32(BigInt(batch.lastOffset) - base), ...times, ...counts, ...records]);
  const head = [int64(base), int32(9 + tail.length), int32(batch.partitionLeaderEpoch), Buffer.from([2])];
  return Buffer.concat([...head, int32(crc32c(tail)), tail]);
}

export const index = (Skip) => (data, baseOffset, intervalBytes) => {
  const [offsets, times] = [[], []];
  let [since, largest, newest, written] = [0, -1n, -1n, -1n];
  for (let at = 0; at < data.length; ) {
    if (data[at + 16] !== 2 || data[at + 22] & 0x27) throw new Skip("it reads no such batches");
    const size = 12 + data.readInt32BE(at + 8);
    const last = data.readBigInt64BE(at) + BigInt(data.readInt32BE(at + 23));
    const stamp = data.readBigInt64BE(at + 35);
    if (stamp > largest) [largest, newest] = [stamp, last];
    if (since > intervalBytes) {
      offsets.push(int32(last - baseOffset), int32(at));
      times.push(int64(largest), int32(newest - baseOffset));
      [since, written] = [0, largest];
    }
    since += size;
    at += size;
  }
  if (largest > written) times.push(int64(largest), int32(newest - baseOffset));
  return { ".index": Buffer.concat(offsets), ".timeindex": Buffer.concat(times) };
};

export function lookup(directory, offset) {
  const names = readdirSync(directory).filter((name) => name.endsWith(".log")).sort();
  for (const [i, name] of names.entries()) {
    if (i + 1 < names.length && BigInt(names[i + 1].slice(0, 20)) <= offset) continue;
    const data = readFileSync(join(directory, name));
    for (let at = 0; at + 17 <= data.length; at += 12 + data.readInt32BE(at + 8)) {
      const first = data.readBigInt64BE(at);
      const last = data[at + 16] === 2 ? first + BigInt(data.readInt32BE(at + 23)) : first;
      if (last >= offset) return { position: at, baseOffset: String(first) };
    }
  }
  return null;
}
