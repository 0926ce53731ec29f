// Find an offset or a time in a log by a walk from its start: chapter 60.
import { require } from "./codec.mjs";
import { decode } from "./decoder.mjs";

// Base offset and content of each `.log` file, in order.
function segments(files) {
  return Object.entries(files)
    .filter(([name]) => name.endsWith(".log"))
    .map(([name, data]) => [BigInt(name.slice(0, 20)), Buffer.from(data, "hex")])
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

const place = ({ position, baseOffset }) => ({ position, baseOffset });

// The first batch whose last offset is not below an offset; null at the end of the log.
export function findOffset(files, offset) {
  const logs = segments(files);
  require(logs.length && offset >= logs[0][0], "offset out of range");
  let end = logs.at(-1)[0];
  for (const [number, [, data]] of logs.entries()) {
    if (number + 1 < logs.length && logs[number + 1][0] <= offset) continue;
    for (const batch of decode(data)) {
      end = batch.nextOffset;
      if (batch.lastOffset >= offset) return place(batch);
    }
  }
  require(offset <= end, "offset out of range");
  return null;
}

// The first record at or after a time; -1 is the end, -2 the start, -3 the record with the largest timestamp.
export function findTimestamp(files, timestamp) {
  const logs = segments(files);
  if (timestamp === -1n) {
    let [end, data] = logs.at(-1);
    for (const batch of decode(data)) end = batch.nextOffset;
    return { offset: end, timestamp: -1n };
  }
  if (timestamp === -2n) return { offset: logs[0][0], timestamp: -1n };
  let best = null;
  for (const [, data] of logs)
    for (const batch of decode(data))
      for (const record of batch.records) {
        if (record.timestamp < 0n || (timestamp !== -3n && record.timestamp < timestamp)) continue;
        if (best && record.timestamp <= best.timestamp) continue;
        best = { ...place(batch), offset: record.offset, timestamp: record.timestamp };
        if (timestamp !== -3n) return best;
      }
  return best;
}
