// An adapter in JavaScript: change hello, decode and lookup; leave the rest.
import { createInterface } from "node:readline";
import { mkdtempSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Keeps output of the library apart from the answers.
for (const name of ["log", "info", "debug"]) console[name] = console.error;

const hello = () => ({
  ok: true,
  protocol: 1,
  implementation: { name: "your-library", version: process.argv[2], language: "JavaScript" },
  ops: ["decode", "lookup"], // leave out what it cannot do
  features: {
    magic: [2],
    codec: ["none", "gzip"],
    crc: false,
    control: "hidden",
    headers: "unordered",
    batchMeta: false,
    bytesKeys: false,
    partialTail: false,
    indexEntry: false,
  },
});

const hex = (data) => (data === null || data === undefined ? null : Buffer.from(data).toString("hex"));

// Absolute offset, milliseconds; both as BigInt or text, never as a number above 2^53.
export const record = (offset, timestamp, key, value, headers) => ({
  offset: String(offset),
  timestamp: String(timestamp),
  key: hex(key),
  value: hex(value),
  headers: headers.map(([name, content]) => [hex(name), hex(content)]),
});

// Adds the records delivered before an exception; any exception is a refusal.
async function decode(data, records) {
  // for each record of your library: records.push(record(...))
  throw new Error(`call your library here, with ${data.length} bytes`);
}

// The batch that a reader begins at, or null; a directory holds the files of the partition.
async function lookup(directory, offset) {
  // return { position, baseOffset: String(baseOffset) };
  throw new Error(`call your library here, with ${directory} and ${offset}`);
}

async function lookedUp(request) {
  if (request.offset === undefined) return { skip: { reason: "it finds offsets only" } };
  const directory = mkdtempSync(join(tmpdir(), "lookup-"));
  try {
    for (const [name, content] of Object.entries(request.files)) {
      writeFileSync(join(directory, name), Buffer.from(content, "hex"));
    }
    return { ok: true, found: await lookup(directory, BigInt(request.offset)) };
  } catch (error) {
    return { ok: false, reject: { class: "other", message: String(error) } };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function answer(request) {
  if (request.op === "hello") return hello();
  if (request.op === "lookup") return lookedUp(request);
  const records = [];
  try {
    await decode(Buffer.from(request.data, "hex"), records);
    return { ok: true, batches: [{ records }] };
  } catch (error) {
    return { ok: false, reject: { class: "other", message: String(error) }, batches: [{ records }] };
  }
}

// Writes the whole answer, even if the pipe takes it in parts.
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
  write(JSON.stringify({ seq: request.seq, ...(await answer(request)) }) + "\n");
}
process.exit(0);
