/**
 * What kind of file it is, by its name, or by its first bytes where the name says nothing.
 */

import { STRUCTURES } from "./tables.js";

/** @typedef {"log" | "offset" | "time" | "transaction" | "snapshot" | "offsets" | "epochs" | "metadata"} Kind */

const SUFFIXES = {
  log: "log",
  index: "offset",
  timeindex: "time",
  txnindex: "transaction",
  snapshot: "snapshot",
};

const NAMES = {
  "leader-epoch-checkpoint": "epochs",
  "recovery-point-offset-checkpoint": "offsets",
  "replication-offset-checkpoint": "offsets",
  "log-start-offset-checkpoint": "offsets",
  "cleaner-offset-checkpoint": "offsets",
  "partition.metadata": "metadata",
};

/** The words for a kind, for people. */
export const WORDS = {
  log: "log",
  offset: "offset index",
  time: "time index",
  transaction: "transaction index",
  snapshot: "producer snapshot",
  offsets: "offset checkpoint",
  epochs: "leader epoch checkpoint",
  metadata: "partition metadata",
};

/** Kinds that are arrays of entries of one size. */
export const SLOTS = {
  offset: { structure: "OffsetIndexEntry", size: STRUCTURES.OffsetIndexEntry.size, whole: "SEG-IDX-001", zeros: "SEG-IDX-007" },
  time: { structure: "TimeIndexEntry", size: STRUCTURES.TimeIndexEntry.size, whole: "SEG-TIX-001", zeros: "SEG-TIX-007" },
  transaction: { structure: "TransactionIndexEntry", size: STRUCTURES.TransactionIndexEntry.size, whole: "SEG-TXN-001", zeros: null },
};

const SEGMENT_FILE = /^(\d{20})\.(log|index|timeindex|txnindex|snapshot)(?:\.(?:deleted|cleaned|swap))?$/;
const ANY_SUFFIX = /\.(log|index|timeindex|txnindex|snapshot)(?:\.\w+)?$/;

/**
 * @param {string} name of the file
 * @param {Uint8Array} head its first bytes
 * @returns {{kind: Kind, baseOffset: bigint, named: boolean}} the base offset is 0 where the name has none
 */
export function kindOf(name, head) {
  const segment = SEGMENT_FILE.exec(name);
  if (segment) return { kind: SUFFIXES[segment[2]], baseOffset: BigInt(segment[1]), named: true };
  const plain = NAMES[name] || (ANY_SUFFIX.exec(name) ? SUFFIXES[ANY_SUFFIX.exec(name)[1]] : guessed(head));
  return { kind: plain, baseOffset: 0n, named: false };
}

/** Text that opens with a digit is a checkpoint; anything else is taken for a log. */
function guessed(head) {
  const text = new TextDecoder("latin1").decode(head.subarray(0, 4096));
  if (/^version:/.test(text)) return "metadata";
  if (!/^\d+\r?\n\d+(\r?\n|$)/.test(text)) return "log";
  const line = text.split(/\r?\n/)[2] || "";
  return line.trim().split(/\s+/).length === 3 ? "offsets" : "epochs";
}
