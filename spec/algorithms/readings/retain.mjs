#!/usr/bin/env node
// Retention: chapter 72. Operation `retain`: files of a log that no process has open, config, now, options.
import {
  Damage, HIGH_WATERMARKS, LOG_STARTS, NO_TIMESTAMP, beforeDamage, big, checkpointEntries, checkpointed, crc32c, fileName,
  filesOf, hexOf, inOrder, markerOf, parseName, segmentsOf, serve,
} from './plumbing.mjs';

const HOUR_MS = 3_600_000n;
const DEFAULT_MS = 168n * HOUR_MS; // 7 days (SEG-RET-013, table)
const UNLIMITED = -1n;
const AS_WHOLE = -2n; // SEG-RET-015
const PARTITION = ['topic', '0'];
const EPOCHS = 'leader-epoch-checkpoint'; // guess: the chapters at hand do not name the file
const DELETED = '.deleted';

const max = (a, b) => (a > b ? a : b);
const min = (a, b) => (a < b ? a : b);

// ---- settings ---------------------------------------------------------------------------------------------------

/** `retention.ms`: the topic's own, then the smallest unit of the broker's (SEG-RET-013). */
function retentionMsOf(settings) {
  const units = { 'retention.ms': 1n, 'log.retention.ms': 1n, 'log.retention.minutes': 60_000n, 'log.retention.hours': HOUR_MS };
  for (const [name, unit] of Object.entries(units)) {
    if (settings.has(name)) {
      const value = integerOf(settings, name);
      return value >= 0n ? value * unit : UNLIMITED;
    }
  }
  return DEFAULT_MS;
}

function integerOf(settings, name) {
  const text = String(settings.get(name)).trim();
  if (!/^[+-]?\d+$/.test(text)) throw new Damage('SEG-RET-013', null, `${name}=${text}`);
  return BigInt(text.replace(/^\+/, ''));
}

const firstOf = (settings, names, otherwise) => {
  const name = names.find((each) => settings.has(each));
  return name === undefined ? otherwise : integerOf(settings, name);
};
const isSet = (settings, name, value) => String(settings.get(name)).trim().toLowerCase() === value;

/** Settings of a log, by Kafka's names and with its defaults (chapter 72, `Options`). */
class Options {
  constructor(settings) {
    const policy = settings.get('cleanup.policy') ?? settings.get('log.cleanup.policy') ?? 'delete';
    this.policies = (Array.isArray(policy) ? policy : String(policy).split(',')).map((each) => each.trim());
    this.retentionMs = retentionMsOf(settings);
    this.retentionBytes = firstOf(settings, ['retention.bytes', 'log.retention.bytes'], UNLIMITED);
    this.localRetentionMs = firstOf(settings, ['local.retention.ms', 'log.local.retention.ms'], AS_WHOLE);
    this.localRetentionBytes = firstOf(settings, ['local.retention.bytes', 'log.local.retention.bytes'], AS_WHOLE);
    // tiered: the topic's setting and the broker's; compacted logs never are
    const system = 'remote.log.storage.system.enable';
    this.remoteStorageEnable = isSet(settings, 'remote.storage.enable', 'true') && isSet(settings, system, 'true')
      && !this.policies.includes('compact');
    this.remoteLogCopyDisable = isSet(settings, 'remote.log.copy.disable', 'true');
    this.isKnownAsNotTiered = isSet(settings, 'remote.storage.enable', 'false') || isSet(settings, system, 'false')
      || this.policies.includes('compact');
    this.namesRemoteStorage = [...settings.keys()].some((name) => /^remote\.|local\.retention/.test(name));
  }

  /** Whether brokers copy the segments of the log. */
  get isCopied() {
    return this.remoteStorageEnable && !this.remoteLogCopyDisable;
  }

  /** Age and size that count on the disk (SEG-RET-015). */
  get limits() {
    if (!this.isCopied) return [this.retentionMs, this.retentionBytes];
    return [
      this.localRetentionMs === AS_WHOLE ? this.retentionMs : this.localRetentionMs,
      this.localRetentionBytes === AS_WHOLE ? this.retentionBytes : this.localRetentionBytes,
    ];
  }
}

// ---- what retention knows of a log --------------------------------------------------------------------------------

/** The time from which the age of a segment counts (SEG-RET-004). */
const ageFromMs = (segment) => (segment.largestTimestampMs >= 0n ? segment.largestTimestampMs : segment.modifiedMs);

class Log {
  constructor({ segments, nowMs, logStartOffset, highWatermark, highestCopiedOffset }) {
    Object.assign(this, { segments, nowMs, logStartOffset, highWatermark, highestCopiedOffset });
  }
  get endOffset() {
    return this.segments.at(-1).nextOffset;
  }
  isActive(number) {
    return number === this.segments.length - 1;
  }
  /** The offset at which the segment after another begins, or would begin. */
  endOf(number) {
    return this.isActive(number) ? this.endOffset : this.segments[number + 1].baseOffset;
  }
}

/** Segments from the logs alone, not from the time indexes. */
function retentionSegments(files, modifiedMsOf) {
  return segmentsOf(files).map((segment) => {
    const { entries } = beforeDamage(segment);
    return {
      baseOffset: segment.baseOffset,
      nextOffset: entries.length ? entries.at(-1).lastOffset + 1n : segment.baseOffset,
      size: segment.log.length,
      largestTimestampMs: entries.reduce((largest, entry) => max(largest, entry.maxTimestamp), NO_TIMESTAMP),
      modifiedMs: modifiedMsOf(segment.name),
    };
  });
}

// ---- the rules ----------------------------------------------------------------------------------------------------

/** All of a segment is below the high watermark, and it is not active and empty (SEG-RET-002). */
function mayGo(log, number) {
  const isEmpty = log.isActive(number) && log.segments[number].size === 0;
  return log.endOf(number) <= log.highWatermark && !isEmpty;
}

/** All of a segment is below the log start offset; never the active one (SEG-RET-008). */
function byLogStartOffset(log, options, number) {
  return !log.isActive(number) && log.endOf(number) <= log.logStartOffset;
}

/** Enough bytes remain without a segment: exactly the limit is enough (SEG-RET-005). */
function bySize(log, options, number) {
  const [, limit] = options.limits;
  const after = log.segments.slice(number + 1).reduce((sum, segment) => sum + segment.size, 0);
  return limit >= 0n && limit <= BigInt(after);
}

/** A segment is too old: more than the limit, not equal (SEG-RET-003). */
function byTime(log, options, number) {
  const [limit] = options.limits;
  return limit >= 0n && log.nowMs - ageFromMs(log.segments[number]) > limit;
}

/** A segment must stay until it is copied (SEG-RET-014). */
function isWaiting(log, options, number) {
  const isCopiedOrBelow = log.endOf(number) - 1n <= log.highestCopiedOffset || byLogStartOffset(log, options, number);
  return options.isCopied && !isCopiedOrBelow;
}

/** The log start offset after the first `count` segments are removed (SEG-RET-007). */
function logStartAfter(log, options, count) {
  if (count === 0 || options.isCopied) return log.logStartOffset; // SEG-RET-016
  return max(log.endOf(count - 1), log.logStartOffset);
}

/** Decide which segments a pass removes (SEG-RET-001). */
function planRetention(log, options) {
  if (!log.segments.length) throw new Damage('SEG-RET-001', null, 'no segment');
  const rules = [byLogStartOffset];
  if (options.policies.includes('delete')) rules.push(bySize, byTime); // SEG-RET-001
  const total = log.segments.length;
  let count = 0;
  let rollsFirst = false;
  for (const rule of rules) {
    while (count < log.segments.length && mayGo(log, count) && rule(log, options, count)) {
      const waits = isWaiting(log, options, count); // SEG-RET-014
      if (options.remoteStorageEnable && log.isActive(count)) { // SEG-RET-017: the empty segment is the active one then
        const end = log.endOffset;
        const empty = { baseOffset: end, nextOffset: end, size: 0, largestTimestampMs: NO_TIMESTAMP, modifiedMs: log.nowMs };
        log = new Log({ ...log, segments: [...log.segments, empty] });
        rollsFirst = true;
      }
      if (waits) break; // the next rule goes on from this segment
      count += 1;
    }
  }
  const isAll = count === total; // SEG-RET-006
  return {
    removed: log.segments.slice(0, count).map((segment) => segment.baseOffset),
    rollsFirst: rollsFirst || isAll,
    logStartOffset: logStartAfter(log, options, count),
  };
}

/** Refuse to remove where a log may be tiered and nothing tells (SEG-RET-018). */
function checkTiered(options, logStartOffset, firstBaseOffset, hasRemoteMetadata) {
  if (options.remoteStorageEnable || options.isKnownAsNotTiered) return;
  const beginsBelow = logStartOffset !== null && logStartOffset < firstBaseOffset; // SEG-PDR-028
  if (beginsBelow || options.namesRemoteStorage || hasRemoteMetadata) {
    throw new Damage('SEG-RET-018', null, 'the log may be tiered');
  }
}

// ---- removal ------------------------------------------------------------------------------------------------------

/** The files of a segment end in `.deleted`, its producer snapshot too (SEG-RET-009, SEG-RET-010). */
function withoutSegment(files, baseOffset) {
  return new Map([...files].map(([name, data]) => {
    const parts = parseName(name);
    const isGone = parts !== null && parts.baseOffset === baseOffset && parts.state === '';
    return [isGone ? name + DELETED : name, data];
  }));
}

/** Of the epochs that begin at or below the log start, only the last stays, with that offset as its start (SEG-RET-011). */
function truncatedFromStart(known, start) {
  const atOrBelow = known.filter(([, offset]) => offset <= start);
  const above = known.filter(([, offset]) => offset > start);
  return atOrBelow.length ? [[atOrBelow.at(-1)[0], start], ...above] : above;
}

function changeEpochs(files, change) {
  if (!files.has(EPOCHS)) return;
  const [version, , ...lines] = files.get(EPOCHS).toString('utf8').split('\n');
  const known = lines.filter((line) => line.trim() !== '').map((line) => line.trim().split(/\s+/));
  if (version.trim() !== '0' || known.some((pair) => pair.length !== 2 || pair.some((each) => !/^[+-]?\d+$/.test(each)))) {
    return; // decided: a file that cannot be read stays as it is
  }
  const changed = change(known.map(([epoch, offset]) => [BigInt(epoch), BigInt(offset)]));
  files.set(EPOCHS, Buffer.from(`0\n${changed.length}\n${changed.map((pair) => `${pair.join(' ')}\n`).join('')}`));
}

/** `with_offset` of chapter 51, which is not at hand: replace the line of the partition, or add one at the end. */
function withOffset(logStarts, start) {
  const entries = checkpointEntries(logStarts);
  const own = entries.find(([topic, partition]) => topic === PARTITION[0] && Number(partition) === Number(PARTITION[1]));
  if (own) own[2] = String(start);
  else entries.push([...PARTITION, String(start)]);
  return Buffer.from(`0\n${entries.length}\n${entries.map((each) => `${each.join(' ')}\n`).join('')}`);
}

/**
 * The producers at the end of the log as a snapshot (SEG-ROL-015). Chapter 50 is not at hand: fields by layout.json;
 * what changes them is a reading of their descriptions. Starts from the newest snapshot, if there is one.
 */
function snapshotAtEnd(files, endOffset, nowMs, expirationMs) {
  const producers = new Map();
  let from = null;
  for (const name of files.keys()) {
    const parts = parseName(name);
    if (parts?.kind === '.snapshot' && parts.state === '' && parts.baseOffset <= endOffset) from = from === null ? parts.baseOffset : max(from, parts.baseOffset);
  }
  if (from !== null) {
    const data = files.get(fileName(from, '.snapshot'));
    const isRight = data.length >= 10 && data.readInt16BE(0) === 1 && data.readUInt32BE(2) === crc32c(data.subarray(6))
      && data.length === 10 + 46 * data.readInt32BE(6);
    if (!isRight) from = null;
    for (let at = 10; from !== null && at < data.length; at += 46) {
      producers.set(data.readBigInt64BE(at), {
        epoch: data.readInt16BE(at + 8), lastSequence: data.readInt32BE(at + 10), lastOffset: data.readBigInt64BE(at + 14),
        offsetDelta: data.readInt32BE(at + 22), timestamp: data.readBigInt64BE(at + 26),
        coordinatorEpoch: data.readInt32BE(at + 34), firstOffset: data.readBigInt64BE(at + 38),
      });
    }
  }
  try {
    for (const segment of segmentsOf(files)) {
      for (const entry of inOrder(segment)) {
        if (entry.producerId >= 0n && (from === null || entry.firstOffset >= from)) afterProducerEntry(producers, entry);
      }
    }
  } catch (error) {
    if (!(error instanceof Damage)) throw error; // the producers up to the damage
  }
  const slots = [];
  for (const [id, one] of producers) {
    if (one.firstOffset < 0n && nowMs - one.timestamp >= expirationMs) continue;
    const slot = Buffer.alloc(46);
    slot.writeBigInt64BE(id, 0);
    slot.writeInt16BE(one.epoch, 8);
    slot.writeInt32BE(one.lastSequence, 10);
    slot.writeBigInt64BE(one.lastOffset, 14);
    slot.writeInt32BE(one.offsetDelta, 22);
    slot.writeBigInt64BE(one.timestamp, 26);
    slot.writeInt32BE(one.coordinatorEpoch, 34);
    slot.writeBigInt64BE(one.firstOffset, 38);
    slots.push(slot);
  }
  const count = Buffer.alloc(4);
  count.writeInt32BE(slots.length, 0);
  const body = Buffer.concat([count, ...slots]);
  const head = Buffer.alloc(6);
  head.writeInt16BE(1, 0);
  head.writeUInt32BE(crc32c(body), 2);
  return Buffer.concat([head, body]);
}

function afterProducerEntry(producers, entry) {
  const marker = markerOf(entry);
  if (entry.isControl && marker === null) return;
  const fresh = { lastSequence: -1, lastOffset: -1n, offsetDelta: 0, timestamp: NO_TIMESTAMP, coordinatorEpoch: -1, firstOffset: -1n };
  const before = producers.get(entry.producerId) ?? fresh;
  const one = before.epoch === entry.producerEpoch ? { ...before }
    : { ...fresh, coordinatorEpoch: before.coordinatorEpoch, firstOffset: before.firstOffset };
  one.epoch = entry.producerEpoch;
  if (marker !== null) {
    Object.assign(one, { timestamp: marker.timestamp, coordinatorEpoch: marker.coordinatorEpoch, firstOffset: -1n });
  } else {
    const delta = Number(entry.lastOffset - entry.firstOffset);
    Object.assign(one, { lastSequence: (entry.baseSequence + delta) % 2 ** 31, lastOffset: entry.lastOffset, offsetDelta: delta, timestamp: entry.maxTimestamp });
    if (entry.isTransactional && one.firstOffset < 0n) one.firstOffset = entry.firstOffset;
  }
  producers.set(entry.producerId, one);
}

/** Remove the segments that a pass does not keep (chapter 72, `retain`). */
function retain(directory, log, options, checkpoints, snapshot) {
  const plan = planRetention(log, options);
  let files = new Map(directory);
  if (plan.rollsFirst) { // SEG-RET-006, SEG-RET-017: before anything is renamed
    const name = fileName(log.endOffset, '.snapshot');
    if (!files.has(name)) files.set(name, snapshot()); // SEG-ROL-015
    files.set(fileName(log.endOffset, '.log'), Buffer.alloc(0));
  }
  const after = new Map(checkpoints);
  if (plan.removed.length && !options.isCopied) { // SEG-RET-016
    if (checkpoints.size) after.set(LOG_STARTS, withOffset(checkpoints.get(LOG_STARTS), plan.logStartOffset)); // SEG-RET-012
    changeEpochs(files, (known) => truncatedFromStart(known, plan.logStartOffset)); // SEG-RET-011
  }
  for (const base of plan.removed) files = withoutSegment(files, base); // SEG-RET-009, SEG-RET-010
  return { files, plan, checkpoints: after };
}

// ---- the operation ------------------------------------------------------------------------------------------------

/** `config`: an object by Kafka's names; lines `name=value` are taken too. */
function settingsOf(config) {
  const lines = typeof config === 'string' ? config.split('\n') : Array.isArray(config) ? config : null;
  if (lines === null) return new Map(Object.entries(config ?? {}).filter(([, value]) => value !== null));
  return new Map(lines.filter((line) => line.includes('=')).map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

function answerTo(request) {
  const given = request.options ?? {};
  const directory = filesOf(request.files);
  const checkpoints = filesOf(given.checkpoints);
  const options = new Options(settingsOf(request.config));
  const nowMs = big(request.now) ?? BigInt(Date.now());
  const modified = given.modified ?? nowMs; // decided: unknown is now
  const modifiedMsOf = (name) => BigInt(typeof modified === 'object' ? modified[name] ?? nowMs : modified);
  const segments = retentionSegments(directory, modifiedMsOf);
  if (!segments.length) throw new Damage('SEG-RET-001', null, 'no segment');

  const known = big(given.logStartOffset) ?? checkpointed(checkpoints, LOG_STARTS);
  const firstBaseOffset = segments[0].baseOffset;
  const hasRemoteMetadata = [...Object.keys(given.beside ?? {})].some((name) => name.startsWith('__remote_log_metadata-'));
  checkTiered(options, known, firstBaseOffset, hasRemoteMetadata); // SEG-RET-018

  // at least the base offset of the first segment; a tiered log keeps the checkpointed one (SEG-RET-016)
  const logStartOffset = known === null ? firstBaseOffset : options.remoteStorageEnable ? known : max(known, firstBaseOffset);
  // SEG-RET-002: from its checkpoint, not above the log end offset and not below the log start offset; else the end
  const endOffset = segments.at(-1).nextOffset;
  const watermark = big(given.highWatermark) ?? checkpointed(checkpoints, HIGH_WATERMARKS) ?? endOffset;
  const highWatermark = max(min(watermark, endOffset), logStartOffset);
  const highestCopiedOffset = big(given.highestCopiedOffset) ?? -1n; // SEG-RLM-010 is of chapter 46

  const log = new Log({ segments, nowMs, logStartOffset, highWatermark, highestCopiedOffset });
  const expirationMs = big(given.producerExpirationMs) ?? 86_400_000n;
  const after = retain(directory, log, options, checkpoints, () => snapshotAtEnd(directory, endOffset, nowMs, expirationMs));
  const answer = {
    segments: after.plan.removed.map(String),
    logStartOffset: String(after.plan.logStartOffset),
    nextOffset: String(max(endOffset, after.plan.logStartOffset)), // SEG-LKP-015
    // decided: `files` are those of the log; what ends in `.deleted` is not part of it (SEG-PDR-009)
    files: hexOf([...after.files].filter(([name]) => !name.endsWith(DELETED))),
  };
  if (checkpoints.size) answer.checkpoints = hexOf(after.checkpoints);
  return answer;
}

await serve('outsider-retain', 'retain', answerTo, { checkpoints: true });
