// Speaks the adapter protocol for the decoder beside this file.
import { createInterface } from "node:readline";
import { writeSync } from "node:fs";
import { Refused } from "./codec.mjs";
import { decode } from "./decoder.mjs";
import { findOffset, findTimestamp } from "./lookup.mjs";

const BATCH_META = [
  ..."position sizeInBytes magic baseOffset lastOffset nextOffset crc codec timestampType maxTimestamp".split(" "),
  ..."deleteHorizonMs recordsCount producerId producerEpoch baseSequence lastSequence isTransactional".split(" "),
  ..."isControl partitionLeaderEpoch isValid".split(" "),
];

const hello = () => ({
  ok: true,
  protocol: 1,
  implementation: { name: "planted-javascript", version: "1", language: "JavaScript" },
  ops: ["decode", "lookup"],
  features: {
    magic: [0, 1, 2],
    codec: ["none", "gzip", "snappy", "lz4"],
    crc: true,
    control: "surfaced",
    headers: "ordered",
    batchMeta: BATCH_META,
    bytesKeys: true,
    partialTail: true,
    indexEntry: false,
    specialTimestamps: true,
  },
});

function onDecode({ data: text, options = {} }, batches) {
  const data = Buffer.from(text, "hex");
  const walk = decode(data, options.crc, options.limit);
  let step = walk.next();
  for (; !step.done; step = walk.next()) batches.push(step.value);
  return { batches, consumed: step.value, tail: step.value < data.length ? { at: step.value } : null };
}

function onLookup({ files, offset, timestamp }) {
  if (offset !== undefined) return { found: findOffset(files, BigInt(offset)) };
  if (timestamp !== undefined) return { found: findTimestamp(files, BigInt(timestamp)) };
  return null;
}

function answer(request) {
  if (request.op === "hello") return hello();
  const batches = [];
  try {
    const result = request.op === "decode" ? onDecode(request, batches) : onLookup(request);
    return result ? { ok: true, ...result } : { skip: { reason: "offsets and timestamps only" } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const refused = { ok: false, reject: { class: "other", message: error.message } };
    return request.op === "decode" ? { ...refused, batches } : refused;
  }
}

Buffer.prototype.toJSON = function () {
  return this.toString("hex");
};
const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);

// A whole answer, also where the pipe takes it in parts.
function write(text) {
  for (let left = Buffer.from(text); left.length; ) {
    try {
      left = left.subarray(writeSync(1, left));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.op === "stop") break;
  write(JSON.stringify({ seq: request.seq, ...answer(request) }, plain) + "\n");
}
process.exit(0);
