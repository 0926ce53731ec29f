/**
 * An opened file of any kind: the rows of its list, its findings, and the blocks of a row.
 */

import { entryBlocks, moment, slotsBlock, snapshotBlock, tailBlock, textBlock } from "./blocks.js";
import { counted, grouped } from "./dom.js";
import { SLOTS, WORDS, kindOf } from "./kinds.js";
import { CODECS, scanLog } from "./scan.js";
import { Slots, indexFindings, readSnapshot, readText } from "./sidefiles.js";
import { Source } from "./source.js";

const LARGEST_SIDE_FILE = 256 << 20;

/** What the explorer needs of a file; subclasses know the kinds. */
class OpenFile {
  constructor(source, { kind, baseOffset, named }) {
    Object.assign(this, { source, kind, baseOffset, named, name: source.name, size: source.size });
    this.findings = [];
    this.words = WORDS[kind];
  }

  /** Rows of the list. */
  get length() {
    return 0;
  }

  /** Columns of a row. */
  columns() {
    return [];
  }

  /** Files that say something about this one came or went. */
  relate() {}
}

class LogFile extends OpenFile {
  async load(progress) {
    this.log = await scanLog(this.source, this.baseOffset, this.named, progress);
    this.findings = this.isForeign ? [] : this.log.findings;
    return this;
  }

  /** Neither its name nor any of its bytes speak for a file of Kafka's. */
  get isForeign() {
    return !this.named && !this.log.entries.length && this.size > 0;
  }

  get length() {
    return this.log.entries.length + (this.hasTail ? 1 : 0);
  }

  get hasTail() {
    return this.log.end < this.size;
  }

  get headings() {
    return ["offsets", "position", "size", "what"];
  }

  columns(index) {
    if (index === this.log.entries.length) return ["", grouped(this.log.end), grouped(this.size - this.log.end), this.log.tail];
    const { baseOffset, lastOffset, position, size, magic, attributes, count, intact } = this.log.entries.entry(index);
    const offsets = count < 0 ? `…${lastOffset}` : baseOffset === lastOffset ? `${lastOffset}` : `${baseOffset}–${lastOffset}`;
    const codec = attributes & 7;
    const words = [magic === 2 ? `${grouped(count)} rec` : `magic ${magic}`];
    if (codec) words.push(CODECS[codec] || `codec ${codec}`);
    if (magic === 2 && attributes & 32) words.push("control");
    else if (magic === 2 && attributes & 16) words.push("txn");
    if (!intact) words.push("damaged");
    return [offsets, grouped(position), grouped(size), words.join(" ")];
  }

  isWrong(index) {
    return index < this.log.entries.length ? !this.log.entries.entry(index).intact : this.log.damaged <= this.log.end;
  }

  blocks(index) {
    const { entries, end, tail } = this.log;
    return index < entries.length ? entryBlocks(this.source, entries.entry(index)) : Promise.all([tailBlock(this.source, end, tail)]);
  }

  rowAt(position) {
    if (position >= this.log.end && this.hasTail) return this.log.entries.length;
    return this.log.entries.atOrBefore(position);
  }

  get summary() {
    const { entries, damaged } = this.log;
    if (this.isForeign) return "this is not one of Kafka's files: no entry of a log begins here";
    if (!entries.length) return "no entry";
    const [first, last] = [entries.entry(0).baseOffset, entries.lastOffset(entries.length - 1)];
    const checked = damaged === Infinity ? "every checksum is right" : "there is damage";
    return `${counted(entries.length, "entry", "entries")}, offsets ${first} to ${last}, ${checked}`;
  }
}

class IndexFile extends OpenFile {
  async load() {
    this.slots = new Slots(this.kind, await this.source.read(0, LARGEST_SIDE_FILE), this.baseOffset);
    this.relate([]);
    return this;
  }

  relate(files) {
    const log = logOf(this, files);
    this.findings = indexFindings(this.slots, this.named, log ? log.log : null);
    this.wrongRows = new Set(this.findings.filter((one) => one.severity !== "note").map((one) => one.row));
  }

  get length() {
    return this.slots.length;
  }

  get headings() {
    return { offset: ["#", "offset", "position"], time: ["#", "timestamp", "offset"], transaction: ["#", "producer", "aborted offsets"] }[this.kind];
  }

  columns(index) {
    const one = this.slots.entry(index);
    if (this.kind === "offset") return [`${index}`, `${one.offset}`, grouped(one.position)];
    if (this.kind === "time") return [`${index}`, moment(one.timestamp), `${one.offset}`];
    return [`${index}`, `${one.producerId}`, `${one.firstOffset}–${one.lastOffset}`];
  }

  isWrong(index) {
    return this.wrongRows.has(index);
  }

  async blocks(index) {
    return [slotsBlock(this.slots, index)];
  }

  rowAt(position) {
    return Math.min(this.length - 1, Math.floor(position / this.slots.size));
  }

  /** The field group of a row in its block. */
  groupName(index) {
    return `[${index}]`;
  }

  get summary() {
    const zeros = this.slots.slotCount - this.slots.length;
    return `${counted(this.length, "entry", "entries")} of ${this.slots.size} bytes${zeros ? `, then ${counted(zeros, "slot")} of zeros` : ""}`;
  }
}

/** Files that are shown whole, whatever row is chosen. */
class WholeFile extends OpenFile {
  async load() {
    this.bytes = await this.source.read(0, LARGEST_SIDE_FILE);
    this.read();
    this.wrongRows = new Set(this.findings.map((one) => one.row));
    return this;
  }

  isWrong(index) {
    return this.wrongRows.has(index);
  }

  rowAt(position) {
    const row = this.findings.find((one) => one.position === position);
    return row ? Math.max(0, row.row) : 0;
  }
}

class SnapshotFile extends WholeFile {
  read() {
    Object.assign(this, readSnapshot(this.bytes, this.named ? this.baseOffset : null));
  }

  get length() {
    return this.producers.length;
  }

  get headings() {
    return ["producer", "epoch", "sequence", "last offset"];
  }

  columns(index) {
    const one = this.producers[index];
    return [`${one.producerId}`, `${one.producerEpoch}`, `${one.lastSequence}`, `${one.lastOffset}`];
  }

  async blocks() {
    return [snapshotBlock(this.bytes, !this.findings.some((one) => one.requirement === "SEG-PSN-002"))];
  }

  groupName(index) {
    return `[${index}]`;
  }

  get summary() {
    return this.header ? `version ${this.header.version}, ${counted(this.length, "producer")}` : "too short for a header";
  }
}

class TextFile extends WholeFile {
  read() {
    Object.assign(this, readText(this.kind, this.bytes));
  }

  get length() {
    return this.rows.length;
  }

  get headings() {
    return { offsets: ["topic", "partition", "offset"], epochs: ["epoch", "start offset"], metadata: ["name", "value"] }[this.kind];
  }

  columns(index) {
    const row = this.rows[index];
    return this.kind === "metadata" ? Object.entries(row)[0].map(String) : Object.values(row).map(String);
  }

  async blocks() {
    return [textBlock(this.bytes, this.fields)];
  }

  groupName(index) {
    return this.kind === "metadata" ? Object.keys(this.rows[index])[0] : `[${index}]`;
  }

  get summary() {
    return counted(this.length, "line");
  }
}

/** The log of the same segment among some files. */
export function logOf(file, files) {
  return files.find((one) => one.kind === "log" && one.baseOffset === file.baseOffset && one.named === file.named) || null;
}

/** The index of that kind of the same segment. */
export function indexOf(kind, log, files) {
  return files.find((one) => one.kind === kind && one.baseOffset === log.baseOffset && one.named === log.named) || null;
}

/**
 * Open a file and read what its list needs.
 *
 * @param {string} name
 * @param {Blob} blob
 * @param {(share: number) => void} progress
 */
export async function openFile(name, blob, progress) {
  const source = new Source(name, blob);
  const found = kindOf(name, await source.read(0, 4096));
  const Kind = found.kind === "log" ? LogFile : found.kind in SLOTS ? IndexFile : found.kind === "snapshot" ? SnapshotFile : TextFile;
  return new Kind(source, found).load(progress);
}
