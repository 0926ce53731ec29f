#!/usr/bin/env node
// Lookup: chapter 60, with the offset index of chapter 40 where a caller trusts it. Operation `lookup`.
import {
  Damage, LOG_STARTS, NO_TIMESTAMP, NotHandled, beforeDamage, big, checkCrc, checkpointed, crcOf, filesOf,
  firstOffsetOf, inOrder, nextOffset, recordsOf, segmentsOf, serve, walk,
} from './plumbing.mjs';

const LATEST = -1n; // SEG-LKP-009
const EARLIEST = -2n; // SEG-LKP-009
const MAX_TIMESTAMP = -3n; // SEG-LKP-013
const EARLIEST_LOCAL = -4n; // as -2 without tiered storage (chapter 60, what brokers do)
const OF_REMOTE = [-5n, -6n];

const greater = (a, b) => (a > b ? a : b);

/** The log end offset (SEG-LKP-015): after the last entry of the last segment, or that segment's base offset. */
function logEndOffset(log) {
  return log.segments.length ? greater(nextOffset(log.segments.at(-1)), log.startOffset) : log.startOffset;
}

// ---- from an offset to an entry ---------------------------------------------------------------------------------

/** The segment with the greatest base offset that is not greater (SEG-LKP-001), and those after it; or all. */
function segmentsFrom(log, offset) {
  const notAbove = log.segments.filter((segment) => segment.baseOffset <= offset);
  return notAbove.length ? log.segments.slice(notAbove.length - 1) : log.segments;
}

/** Chapter 40, `entries_of`: whole slots while relative offsets grow (SEG-IDX-001, -007, -010, -011). */
function entriesOfOffsetIndex(index, base) {
  const found = [];
  let last = -1;
  for (let at = 0; at + 8 <= index.length; at += 8) {
    const relative = index.readInt32BE(at);
    if (relative <= last) break;
    found.push({ offset: base + BigInt(relative), position: index.readInt32BE(at + 4) });
    last = relative;
  }
  return found;
}

/** The last index entry that is not above an offset; else the base offset and position 0 (SEG-IDX-008). */
function floorEntry(index, base, offset) {
  return entriesOfOffsetIndex(index, base).filter((entry) => entry.offset <= offset).at(-1) ?? { offset: base, position: 0 };
}

/** The entry for an offset by the offset index; null in any doubt (SEG-IDX-009). */
function trustedEntry(segment, offset) {
  const start = floorEntry(segment.offsetIndex, segment.baseOffset, offset).position;
  if (start <= 0) return null;
  try {
    const first = walk(segment.log, start).next().value;
    if (first === undefined || first.crc !== crcOf(first)) return null;
    const least = firstOffsetOf(first);
    if (!(segment.baseOffset <= least && least <= offset)) return null;
    for (const entry of inOrder(segment, start)) {
      if (entry.lastOffset >= offset) return firstOffsetOf(entry) <= offset ? entry : null;
    }
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
  }
  return null;
}

/** The first entry of a segment whose last offset is not below an offset (SEG-LKP-002). */
function findEntry(log, segment, offset) {
  if (log.trustsIndexes) {
    const trusted = trustedEntry(segment, offset);
    if (trusted !== null) return trusted;
  }
  for (const entry of inOrder(segment)) if (entry.lastOffset >= offset) return entry; // damage before it is raised
  return null;
}

/** The first entry of a log whose last offset is not below an offset; null also if no segment is so low. */
function findOffset(log, offset) {
  if (!log.segments.length || offset < log.segments[0].baseOffset) return null;
  for (const segment of segmentsFrom(log, offset)) { // SEG-LKP-002: if the segment has none, the next
    const entry = findEntry(log, segment, offset);
    if (entry !== null) return entry;
  }
  return null;
}

/** Verify the checksum of the entry before a missing offset (SEG-LKP-017). */
function checkGap(log, offset) {
  let before = null;
  for (const entry of inOrder(segmentsFrom(log, offset)[0])) {
    if (entry.lastOffset >= offset) break;
    before = entry;
  }
  if (before !== null) checkCrc(before);
}

/** Of `check_range` what shows where the log ends: checksum of the last entry, and damage after it (SEG-LKP-017). */
function checkEnd(log) {
  const { entries, damage } = beforeDamage(log.segments.at(-1));
  if (entries.length) checkCrc(entries.at(-1));
  if (damage !== null) throw damage;
}

/** Answer for an offset. Decided: out of range (SEG-LKP-004) and at the end (SEG-LKP-005) are both null here. */
function lookupOffset(log, offset) {
  if (offset < log.startOffset) return null; // SEG-LKP-004, SEG-LKP-010
  const entry = findOffset(log, offset);
  if (entry === null) {
    if (log.segments.length && offset >= log.segments[0].baseOffset) {
      checkGap(log, offset); // SEG-LKP-017: before it reports the offset as missing
      checkEnd(log); // SEG-LKP-017: or the log as ended
    }
    return null;
  }
  checkCrc(entry); // decided: a lookup that finds a damaged entry reports it (SEG-LKP-014)
  if (firstOffsetOf(entry) > offset) checkGap(log, offset); // SEG-LKP-017
  return found(entry);
}

const found = (entry) => ({ position: entry.position, baseOffset: String(firstOffsetOf(entry)) });
const foundRecord = (entry, record) => ({ ...found(entry), offset: String(record.offset), timestamp: String(record.timestamp) });

// ---- from a timestamp to an offset ------------------------------------------------------------------------------

/** The records of an entry that count: from the log start offset on; control records too (SEG-LKP-018, SEG-LKP-010). */
function countingRecords(log, entry) {
  if (entry.magic === 0) return []; // "Messages of magic 0 have no timestamp and are never a result."
  return recordsOf(entry).filter((record) => record.offset >= log.startOffset);
}

/** The first record, in offset order, whose timestamp is not less (SEG-LKP-008). */
function firstNotEarlier(log, timestamp) {
  for (const segment of segmentsFrom(log, log.startOffset)) {
    for (const entry of inOrder(segment)) { // always proven: no time index is consulted (SEG-IDX-009)
      if (entry.lastOffset < log.startOffset) continue;
      checkCrc(entry); // the header may hide a result
      if (entry.maxTimestamp < timestamp) continue; // SEG-BAT-015, SEG-MSG-021
      for (const record of countingRecords(log, entry)) {
        if (record.timestamp >= timestamp) return foundRecord(entry, record);
      }
    }
  }
  return null;
}

/** The first record with the largest timestamp of the log (SEG-LKP-013); null if none has a timestamp. */
function latest(log) {
  const entries = segmentsFrom(log, log.startOffset)
    .flatMap((segment) => [...inOrder(segment)])
    .filter((entry) => entry.lastOffset >= log.startOffset);
  entries.forEach(checkCrc);
  // a stable sort: of equal maxima the lower position first
  entries.sort((a, b) => (a.maxTimestamp === b.maxTimestamp ? 0 : a.maxTimestamp > b.maxTimestamp ? -1 : 1));
  let best = null;
  for (const entry of entries) {
    if (best !== null && entry.maxTimestamp < best.record.timestamp) break;
    for (const record of countingRecords(log, entry)) {
      if (record.timestamp === NO_TIMESTAMP) continue;
      const isBetter = best === null || record.timestamp > best.record.timestamp
        || (record.timestamp === best.record.timestamp && record.offset < best.record.offset);
      if (isBetter) best = { entry, record };
    }
  }
  return best && foundRecord(best.entry, best.record);
}

function lookupTimestamp(log, timestamp) {
  const special = (offset) => ({ offset: String(offset), timestamp: String(NO_TIMESTAMP) }); // decided: no batch beside it
  if (timestamp === LATEST) return special(logEndOffset(log)); // SEG-LKP-009
  if (timestamp === EARLIEST || timestamp === EARLIEST_LOCAL) return special(log.startOffset); // SEG-LKP-009
  if (OF_REMOTE.includes(timestamp)) return null; // no segment is in remote storage
  return timestamp === MAX_TIMESTAMP ? latest(log) : firstNotEarlier(log, timestamp);
}

// ---- the operation ----------------------------------------------------------------------------------------------

function answerTo(request) {
  if (request.fromOffset !== undefined || request.newest !== undefined) {
    throw new NotHandled('aborted transactions and producer snapshots are of chapters 42 and 50');
  }
  const options = request.options ?? {};
  const segments = segmentsOf(filesOf(request.files));
  const given = big(options.logStartOffset) ?? checkpointed(filesOf(options.checkpoints), LOG_STARTS);
  const base = segments[0]?.baseOffset ?? 0n;
  const startOffset = given === null ? base : greater(given, base); // 00-terms: at least the first base offset
  const log = { segments, startOffset, trustsIndexes: options.trustIndexes === true };
  const { timestamp, offset } = request;
  return { found: timestamp !== undefined && timestamp !== null ? lookupTimestamp(log, BigInt(timestamp)) : lookupOffset(log, BigInt(offset)) };
}

await serve('outsider-lookup', 'lookup', answerTo, {
  indexEntry: false, provesIndexes: true, trustIndexes: true, specialTimestamps: true, earliestLocal: true, logStartOffset: true, verifiedRead: true,
});
