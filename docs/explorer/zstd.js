/**
 * zstd frames, RFC 8878 and chapter 34. Content checksums are not verified here: `seglog verify` does that.
 */

import { BackwardBits } from "./bits.js";
import { FseState, fseTable, huffmanSymbols, readFseTable, readHuffman, singleTable } from "./entropy.js";
import { Output } from "./output.js";

const ZSTD_MAGIC = 0xfd2fb528;
const SKIPPABLE = 0x184d2a5; // followed by any four bits
const LARGEST_BLOCK = 1 << 17;
const LARGEST_WINDOW = 2 ** 27;

/** Kinds of numbers in a sequence: how many bits a table may have, the greatest code, and the default distribution. */
const LITERAL_LENGTH = {
  maxLog: 9,
  maxCode: 35,
  table: fseTable([4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1], 6),
};
const OFFSET = { maxLog: 8, maxCode: 31, table: fseTable([1, 1, 1, 1, 1, 1, 2, 2, 2, ...Array(15).fill(1), ...Array(5).fill(-1)], 5) };
const MATCH_LENGTH = {
  maxLog: 9,
  maxCode: 52,
  table: fseTable([1, 4, 3, 2, 2, 2, 2, 2, 2, ...Array(37).fill(1), ...Array(7).fill(-1)], 6),
};
const LITERAL_BITS = [...Array(16).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BITS = [...Array(32).fill(0), 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const LITERAL_BASES = bases(LITERAL_BITS, 0);
const MATCH_BASES = bases(MATCH_BITS, 3);

/** Where the numbers of each code begin, the first at a number, each behind those of the code before. */
function bases(bits, first) {
  let base = first;
  return bits.map((count) => {
    const found = base;
    base += 2 ** count;
    return found;
  });
}

/** @returns {Uint8Array} what all frames decompress to */
export function zstdContent(bytes, limit) {
  const output = new Output(limit, "SEG-COD-014");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  do {
    if (at + 8 > bytes.length) output.fail("a frame is cut short");
    const magic = view.getUint32(at, true);
    if (magic >>> 4 === SKIPPABLE) at = skipped(view, at, output);
    else if (magic === ZSTD_MAGIC) at = zstdFrame(bytes, view, at + 4, output);
    else output.fail("no frame begins here");
  } while (at < bytes.length);
  return output.whole();
}

function skipped(view, at, output) {
  const end = at + 8 + view.getUint32(at + 4, true);
  output.requirement = "SEG-COD-023";
  if (end > view.byteLength) output.fail("a skippable frame is cut short");
  output.requirement = "SEG-COD-014";
  return end;
}

function zstdFrame(bytes, view, start, output) {
  const descriptor = bytes[start];
  const isSingle = Boolean(descriptor & 32);
  const sizes = { dictionary: [0, 1, 2, 4][descriptor & 3], content: [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6] };
  if (descriptor & 8) output.fail("a reserved bit of a frame is set");
  let at = start + (isSingle ? 1 : 2);
  if (at + sizes.dictionary + sizes.content > bytes.length) output.fail("a frame is cut short");
  if (littleEndian(bytes, at, sizes.dictionary)) broken(output, "a dictionary is needed", "SEG-COD-021");
  const content = littleEndian(bytes, at + sizes.dictionary, sizes.content) + (sizes.content === 2 ? 256 : 0);
  const window = isSingle ? content : windowSize(bytes[start + 1]);
  if (!isSingle && window > LARGEST_WINDOW) broken(output, `a window of ${window} bytes`, "SEG-COD-022");
  at += sizes.dictionary + sizes.content;
  const floor = output.size;
  at = zstdBlocks(bytes, at, { output, floor, maxSize: Math.min(window, LARGEST_BLOCK) });
  if (sizes.content && output.size - floor !== content) output.fail(`${content} bytes announced, ${output.size - floor} found`);
  if (descriptor & 4) at += 4;
  if (at > bytes.length) output.fail("the checksum of a frame is cut short");
  return at;
}

function broken(output, message, requirement) {
  output.requirement = requirement;
  output.fail(message);
}

function windowSize(byte) {
  const base = 2 ** (10 + (byte >> 3));
  return base + (base / 8) * (byte & 7);
}

function littleEndian(bytes, at, count) {
  let value = 0;
  for (let index = 0; index < count; index++) value += (bytes[at + index] || 0) * 256 ** index;
  return value;
}

/** Blocks up to the last one of a frame; tables and the last three offsets live on from block to block. */
function zstdBlocks(bytes, start, frame) {
  const { output } = frame;
  Object.assign(frame, { huffman: null, tables: [null, null, null], offsets: [1, 4, 8] });
  for (let at = start; ; ) {
    if (at + 3 > bytes.length) output.fail("a block is cut short");
    const head = littleEndian(bytes, at, 3);
    const kind = (head >> 1) & 3;
    const size = head >> 3;
    at += 3;
    const stored = kind === 1 ? 1 : size;
    if (at + stored > bytes.length) output.fail("a block is cut short");
    if (kind === 3 || size > frame.maxSize) output.fail(kind === 3 ? "a block of a reserved type" : `a block of ${size} bytes`);
    const block = bytes.subarray(at, at + stored);
    const before = output.size;
    if (kind === 0) output.append(block);
    else if (kind === 1) output.repeat(block[0], size);
    else zstdBlock(block, frame);
    if (output.size - before > frame.maxSize) output.fail(`a block decompresses to ${output.size - before} bytes`);
    at += stored;
    if (head & 1) return at;
  }
}

function zstdBlock(bytes, frame) {
  const fail = (message) => frame.output.fail(message);
  const { literals, size } = readLiterals(bytes, frame, fail);
  const rest = bytes.subarray(size);
  if (!rest.length) fail("a block has no sequences");
  const { count, at } = sequenceCount(rest, fail);
  if (!count) {
    if (at !== rest.length) fail("bytes follow the literals of a block");
    frame.output.append(literals);
    return;
  }
  const start = readTables(rest, at, frame, fail);
  runSequences(new BackwardBits(rest.subarray(start), fail), count, literals, frame, fail);
}

/** The literals of a block: stored, repeated, or coded by Huffman in one or four streams. */
function readLiterals(bytes, frame, fail) {
  const kind = bytes[0] & 3;
  const format = (bytes[0] >> 2) & 3;
  const isCoded = kind > 1;
  const headSize = isCoded ? [3, 3, 4, 5][format] : [1, 2, 1, 3][format];
  if (headSize > bytes.length) fail("the literals of a block are cut short");
  const head = littleEndian(bytes, 0, headSize);
  if (isCoded) return codedLiterals(bytes, head, headSize, frame, fail);
  const count = Math.floor(head / (format & 1 ? 16 : 8));
  const stored = kind === 1 ? 1 : count;
  if (count > frame.maxSize || headSize + stored > bytes.length) fail("the literals of a block are cut short");
  const body = bytes.subarray(headSize, headSize + stored);
  return { literals: kind === 1 ? new Uint8Array(count).fill(body[0]) : body, size: headSize + stored };
}

function codedLiterals(bytes, head, headSize, frame, fail) {
  const format = (bytes[0] >> 2) & 3;
  const width = [10, 10, 14, 18][format];
  const count = Math.floor(head / 16) % 2 ** width;
  const stored = Math.floor(head / 2 ** (4 + width)) % 2 ** width;
  const end = headSize + stored;
  if (count > frame.maxSize || end > bytes.length) fail("the literals of a block are cut short");
  let start = headSize;
  if ((bytes[0] & 3) === 2) {
    const { table, size } = readHuffman(bytes.subarray(start, end), fail);
    frame.huffman = table;
    start += size;
  }
  if (!frame.huffman) fail("literals use a Huffman code that no block has given");
  const literals = new Uint8Array(count);
  for (const [part, target] of streams(bytes.subarray(start, end), literals, format > 0, fail)) huffmanSymbols(frame.huffman, part, target, fail);
  return { literals, size: end };
}

/** The streams of literals, each with the part of them that it holds. */
function streams(bytes, literals, areFour, fail) {
  if (!areFour) return [[bytes, literals]];
  if (bytes.length < 6) fail("the literals of a block are cut short");
  const quarter = (literals.length + 3) >> 2;
  const found = [];
  let at = 6;
  for (let index = 0; index < 4; index++) {
    const size = index < 3 ? littleEndian(bytes, 2 * index, 2) : bytes.length - at;
    if (size < 0 || at + size > bytes.length || quarter * 3 > literals.length) fail("a stream of literals is cut short");
    found.push([bytes.subarray(at, at + size), literals.subarray(quarter * index, index < 3 ? quarter * (index + 1) : literals.length)]);
    at += size;
  }
  return found;
}

function sequenceCount(bytes, fail) {
  const first = bytes[0];
  const at = first < 128 ? 1 : first < 255 ? 2 : 3;
  if (at > bytes.length) fail("the sequences of a block are cut short");
  if (first < 128) return { count: first, at };
  return { count: first < 255 ? ((first - 128) << 8) + bytes[1] : littleEndian(bytes, 1, 2) + 0x7f00, at };
}

/** The three tables of a block; returns where its bits begin. */
function readTables(bytes, start, frame, fail) {
  const modes = bytes[start];
  if (modes === undefined || modes & 3) fail("the tables of a block are damaged");
  let at = start + 1;
  [LITERAL_LENGTH, OFFSET, MATCH_LENGTH].forEach((kind, index) => {
    const mode = (modes >> (6 - 2 * index)) & 3;
    if (mode === 0) frame.tables[index] = kind.table;
    if (mode === 1) {
      if (at >= bytes.length || bytes[at] > kind.maxCode) fail("the tables of a block are damaged");
      frame.tables[index] = singleTable(bytes[at++]);
    }
    if (mode === 2) {
      const { table, size } = readFseTable(bytes.subarray(at), kind.maxLog, kind.maxCode, fail);
      frame.tables[index] = table;
      at += size;
    }
    if (!frame.tables[index]) fail("a block repeats a table that no block has given");
  });
  return at;
}

function runSequences(reader, count, literals, frame, fail) {
  const [lengths, offsets, matches] = frame.tables.map((table) => new FseState(table, reader));
  let at = 0;
  for (let left = count; left > 0; left--) {
    const distance = 2 ** offsets.symbol + reader.read(offsets.symbol);
    const match = MATCH_BASES[matches.symbol] + reader.read(MATCH_BITS[matches.symbol]);
    const length = LITERAL_BASES[lengths.symbol] + reader.read(LITERAL_BITS[lengths.symbol]);
    if (left > 1) for (const state of [lengths, matches, offsets]) state.move(reader);
    if (at + length > literals.length) fail("a sequence takes more literals than there are");
    frame.output.append(literals.subarray(at, at + length));
    at += length;
    frame.output.copy(offsetOf(distance, length, frame.offsets, fail), match, frame.floor);
  }
  if (reader.left) fail("bits follow the last sequence");
  frame.output.append(literals.subarray(at));
}

/** How far back a match lies: the numbers 1 to 3 stand for one of the last three offsets. */
function offsetOf(number, literalLength, recent, fail) {
  if (number > 3) {
    recent.unshift(number - 3);
    recent.pop();
    return recent[0];
  }
  const index = number - 1 + (literalLength ? 0 : 1);
  const found = index < 3 ? recent[index] : recent[0] - 1;
  if (found < 1) fail("a match at no distance");
  if (index) {
    recent.splice(index < 3 ? index : 2, 1);
    recent.unshift(found);
  }
  return found;
}
