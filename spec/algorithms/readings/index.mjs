#!/usr/bin/env node
// Building of offset and time indexes: chapters 40 and 41. Operation `index`: data, baseOffset, indexIntervalBytes.
import {
  Damage, MOST_AHEAD, NO_TIMESTAMP, afterEntry, big, bytes, checkCrc, fileName, markerOf, serve, walk,
} from './plumbing.mjs';

const DEFAULT_INTERVAL = 4096; // chapter 40: index.interval.bytes

/** Chapter 40: adds index entries unit by unit. */
class IndexBuilder {
  constructor(interval) {
    this.interval = interval;
    this.since = 0; // bytes since the last indexed unit began, or since the start of the segment
    this.largest = { timestamp: NO_TIMESTAMP, offset: 0n };
    this.offsets = []; // { offset, position }
    this.times = []; // { timestamp, offset }
  }

  /** Whether index entries are due at the start of the next unit (SEG-ROL-010): more than the interval, not equal. */
  get isDue() {
    return this.since > this.interval;
  }

  add(offset, position, size, largest) {
    // the timestamps of the unit count before an entry is added (chapter 41); of several, the earliest
    if (largest.timestamp > this.largest.timestamp) this.largest = largest;
    if (this.isDue) {
      this.addPoint(offset, position);
      this.since = 0; // the bytes of the indexed unit itself count again
    }
    this.since += size;
  }

  addPoint(offset, position) {
    this.offsets.push({ offset, position }); // SEG-IDX-003: the first byte of the unit
    this.addTime(); // SEG-APP-015: together with each entry of the offset index
  }

  /** SEG-TIX-002: only if it is larger than the last one there; the first is greater than -1. */
  addTime() {
    const last = this.times.at(-1)?.timestamp ?? NO_TIMESTAMP;
    if (this.largest.timestamp > last) this.times.push(this.largest);
  }

  built(base) {
    return {
      offsetIndex: Buffer.concat(this.offsets.map(({ offset, position }) => {
        const slot = Buffer.alloc(8); // SEG-IDX-011: int32 relative offset, int32 position
        slot.writeInt32BE(Number(offset - base), 0);
        slot.writeInt32BE(position, 4);
        return slot;
      })),
      timeIndex: Buffer.concat(this.times.map(({ timestamp, offset }) => {
        const slot = Buffer.alloc(12); // SEG-TIX-010: int64 timestamp, int32 relative offset
        slot.writeBigInt64BE(timestamp, 0);
        slot.writeInt32BE(Number(offset - base), 8);
        return slot;
      })),
    };
  }
}

/**
 * `up_to_damage` of chapter 40, which no chapter at hand defines. Decided: the entries that a recovery would keep, which
 * ends at a wrong size, magic or checksum, or where offsets do not increase. It never refuses.
 */
function* upToDamage(log) {
  let last = null;
  try {
    for (const entry of walk(log)) {
      checkCrc(entry);
      if (last !== null && entry.lastOffset <= last) return; // SEG-LOG-006
      yield entry;
      last = entry.lastOffset;
    }
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
  }
}

/** Chapter 40, `indexes_of`: a recovery's units are the entries of the log (SEG-RCV-025). */
function indexesOf(log, base, interval) {
  const builder = new IndexBuilder(interval);
  let open = new Map();
  const transactions = [];
  for (const entry of upToDamage(log)) {
    const named = entry.lastOffset; // SEG-ROL-011: since 2.0 the last offset of the unit
    const ahead = entry.lastOffset - base;
    if (!(ahead >= 0n && ahead <= MOST_AHEAD && named >= base)) break; // SEG-LOG-009
    builder.add(named, entry.position, entry.data.length, { timestamp: entry.maxTimestamp, offset: entry.lastOffset });
    // the transaction index is chapter 42's; by `after_entry` of chapter 60 and layout.json
    const after = afterEntry(open, entry, markerOrNull(entry));
    open = after.open;
    if (after.aborted) transactions.push(after.aborted);
  }
  builder.addTime(); // SEG-TIX-006: once more at the end
  return { ...builder.built(base), transactionIndex: Buffer.concat(transactions.map(transactionSlot)) };
}

function markerOrNull(entry) {
  try {
    return markerOf(entry);
  } catch (error) {
    if (error instanceof Damage) return null; // decided: a control record that cannot be read ends nothing
    throw error;
  }
}

function transactionSlot({ producerId, firstOffset, lastOffset, lastStableOffset }) {
  const slot = Buffer.alloc(34); // layout.json, TransactionIndexEntry; version 0
  [producerId, firstOffset, lastOffset, lastStableOffset].forEach((value, n) => slot.writeBigInt64BE(value, 2 + 8 * n));
  return slot;
}

function answerTo(request) {
  const base = big(request.baseOffset) ?? 0n;
  const interval = Number(request.indexIntervalBytes ?? request.options?.indexIntervalBytes ?? DEFAULT_INTERVAL);
  const { offsetIndex, timeIndex, transactionIndex } = indexesOf(bytes(request.data), base, interval);
  const files = {
    [fileName(base, '.index')]: offsetIndex.toString('hex'), // an empty index is a file
    [fileName(base, '.timeindex')]: timeIndex.toString('hex'),
  };
  if (transactionIndex.length) files[fileName(base, '.txnindex')] = transactionIndex.toString('hex');
  return { files };
}

await serve('outsider-index', 'index', answerTo, {});
