/**
 * Where an offset or a timestamp is found, step by step, as a broker goes about it.
 */

import { counted, grouped } from "./dom.js";
import { moment } from "./blocks.js";

/**
 * @typedef {object} Step
 * @property {string} text
 * @property {{file: "log" | "offset" | "time", row: number} | null} target to go to
 */

/**
 * @param {{log: import("./scan.js").Log, size: number, baseOffset: bigint, offset: import("./sidefiles.js").Slots | null, time: import("./sidefiles.js").Slots | null}} segment
 * @param {bigint} offset
 * @returns {{steps: Step[], entry: number}} the number of the entry of the log, -1 for none
 */
export function lookUpOffset(segment, offset) {
  const steps = [];
  const entry = findOffset(segment, offset, steps);
  return { steps, entry };
}

function findOffset({ log, baseOffset, offset: index }, offset, steps) {
  if (offset < baseOffset) {
    steps.push(step(`Offset ${offset} is below the base offset ${baseOffset} of this segment: an earlier segment has to be asked.`));
    return -1;
  }
  const start = startOfScan(log, index, offset, steps);
  const entry = log.entries.endingAtOrAbove(offset, start);
  if (entry < 0) {
    steps.push(step(`No entry of the log ends at ${offset} or above: the next segment would be asked.`));
    return -1;
  }
  const { position, baseOffset: first, lastOffset: last, count } = log.entries.entry(entry);
  const passed = entry - start;
  const bytes = position - (start < log.entries.length ? log.entries.position(start) : 0);
  const walked = passed ? `From there ${counted(passed, "entry", "entries")} (${grouped(bytes)} bytes) ${passed === 1 ? "is" : "are"} passed by header.` : "The entry there is the one.";
  const range = count < 0 ? `up to offset ${last}` : first === last ? `offset ${first}` : `offsets ${first} to ${last}`;
  steps.push(step(`${walked} The first whose last offset is not below ${offset} starts at position ${grouped(position)} and holds ${range}.`, "log", entry));
  if (count >= 0 && first > offset) steps.push(step(`Offset ${offset} itself is not in the log; reading goes on at ${first}.`));
  return entry;
}

/** The entry of the log at which the walk begins: what the index says, or the first where it cannot be believed. */
function startOfScan(log, index, offset, steps) {
  if (!index) {
    steps.push(step("There is no offset index here: the log is walked from its start."));
    return 0;
  }
  const row = index.lastWhere((slot) => slot.offset <= offset);
  if (row < 0) {
    steps.push(step("No entry of the offset index is at or below it: the log is walked from position 0."));
    return 0;
  }
  const slot = index.entry(row);
  const start = log.entries.startingAt(slot.position);
  const believed = start >= 0 && (start === 0 || log.entries.lastOffset(start - 1) < offset);
  steps.push(step(`In the offset index, entry ${row} is the last at or below ${offset}: (${slot.offset}, position ${grouped(slot.position)}).`, "offset", row));
  if (believed) return start;
  steps.push(step(`The log has no fitting entry at position ${grouped(slot.position)}: the index is wrong, and the log is walked from its start.`));
  return 0;
}

/**
 * The first entry of the log that may hold a record not older than a timestamp.
 *
 * @param {bigint} timestamp milliseconds
 */
export function lookUpTimestamp(segment, timestamp) {
  const steps = [];
  const { log, time } = segment;
  let start = 0;
  const row = time ? time.lastWhere((slot) => slot.timestamp <= timestamp) : -1;
  if (row >= 0) {
    const slot = time.entry(row);
    steps.push(step(`In the time index, entry ${row} is the last that is not younger: (${moment(slot.timestamp)}, offset ${slot.offset}).`, "time", row));
    start = Math.max(0, findOffset(segment, slot.offset, steps));
  } else {
    steps.push(step(time ? "Every entry of the time index is younger: the log is walked from its start." : "There is no time index here: the log is walked from its start."));
  }
  for (let entry = start; entry < log.entries.length; entry++) {
    const { maxTimestamp, position } = log.entries.entry(entry);
    if (maxTimestamp < timestamp) continue;
    steps.push(step(`The first entry from there with a record at ${moment(timestamp)} or later starts at position ${grouped(position)}.`, "log", entry));
    return { steps, entry };
  }
  steps.push(step(`No entry has a record at ${moment(timestamp)} or later.`));
  return { steps, entry: -1 };
}

function step(text, file = "", row = -1) {
  return { text, target: file ? { file, row } : null };
}
