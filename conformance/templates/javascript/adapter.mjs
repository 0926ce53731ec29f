// An adapter in JavaScript: change hello, and fill in the functions that your library has; leave the rest.
import { createInterface } from "node:readline";
import { mkdtempSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Keeps output of the library apart from the answers.
for (const name of ["log", "info", "debug"]) console[name] = console.error;

// What the library does, each a function: const decode = async (data, records) => {...}. What stays null is not listed,
// and not asked. Any exception is a refusal; throw new Skip("...") where the library cannot be asked for something.
class Skip extends Error {}

// Adds the records delivered before an exception: records.push(record(...)).
const decode = null; // (data, records) =>

// Returns the bytes of batches, which have the fields of the protocol: BigInt(batch.baseOffset), bytes(record.key).
const encode = null; // (batches) =>

// Returns { ".index": bytes, ".timeindex": bytes }, and ".txnindex" if transactions were aborted.
const index = null; // (data, baseOffset, intervalBytes) =>

// Returns the batch that a reader begins at: { position, baseOffset: String(baseOffset) }, or null; a directory holds
// the files of the partition.
const lookup = null; // (directory, offset) =>

const hello = () => ({
  ok: true,
  protocol: 1,
  implementation: { name: "your-library", version: process.argv[2], language: "JavaScript" },
  ops: Object.entries({ decode, encode, index, lookup }).flatMap(([name, operation]) => (operation ? [name] : [])),
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
const bytes = (text) => (text === null || text === undefined ? null : Buffer.from(text, "hex"));

// Absolute offset, milliseconds; both as BigInt or text, never as a number above 2^53.
export const record = (offset, timestamp, key, value, headers) => ({
  offset: String(offset),
  timestamp: String(timestamp),
  key: hex(key),
  value: hex(value),
  headers: headers.map(([name, content]) => [hex(name), hex(content)]),
});

async function lookedUp(request) {
  if (request.offset === undefined) throw new Skip("it finds offsets only");
  const directory = mkdtempSync(join(tmpdir(), "lookup-"));
  try {
    for (const [name, content] of Object.entries(request.files)) writeFileSync(join(directory, name), bytes(content));
    return { found: await lookup(directory, BigInt(request.offset)) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const operations = {
  hello,
  lookup: lookedUp,
  async decode(request, records) {
    await decode(bytes(request.data), records);
    return { batches: [{ records }] };
  },
  async encode(request) {
    return { data: hex(await encode(request.batches)) };
  },
  async index(request) {
    const files = await index(bytes(request.data), BigInt(request.baseOffset ?? 0), Number(request.indexIntervalBytes));
    return { files: Object.fromEntries(Object.entries(files).map(([ending, content]) => [ending, hex(content)])) };
  },
};

async function answer(request) {
  const records = [];
  try {
    return { ok: true, ...(await operations[request.op](request, records)) };
  } catch (error) {
    if (error instanceof Skip) return { skip: { reason: error.message } };
    const delivered = request.op === "decode" ? { batches: [{ records }] } : {};
    return { ok: false, reject: { class: "other", message: String(error), error: error?.constructor?.name ?? "Error" }, ...delivered };
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
