/**
 * The two entropy codes of zstd, RFC 8878: finite state entropy (FSE), and Huffman codes whose lengths FSE packs.
 */

import { BackwardBits, ForwardBits } from "./bits.js";

const MAX_WEIGHT_LOG = 6;
const MAX_HUFFMAN_BITS = 11;

/**
 * @typedef {object} FseTable
 * @property {number} log bits of a state
 * @property {Uint8Array} symbols by state
 * @property {Uint8Array} bits to read for the next state
 * @property {Uint16Array} bases of the next state
 */

/** A table that has one symbol only. */
export function singleTable(symbol) {
  return { log: 0, symbols: Uint8Array.of(symbol), bits: Uint8Array.of(0), bases: Uint16Array.of(0) };
}

/**
 * The table of a distribution: how many states of 2^log each symbol has; -1 is one state with all bits.
 *
 * @returns {FseTable}
 */
export function fseTable(counts, log) {
  const size = 1 << log;
  const symbols = new Uint8Array(size);
  const next = counts.map((count) => Math.abs(count));
  let high = size;
  counts.forEach((count, symbol) => {
    if (count === -1) symbols[--high] = symbol;
  });
  spread(symbols, counts, high);
  const bits = new Uint8Array(size);
  const bases = new Uint16Array(size);
  for (let state = 0; state < size; state++) {
    const number = next[symbols[state]]++;
    bits[state] = log - (31 - Math.clz32(number));
    bases[state] = (number << bits[state]) - size;
  }
  return { log, symbols, bits, bases };
}

/** Gives each symbol its states, far from each other. */
function spread(symbols, counts, high) {
  const mask = symbols.length - 1;
  const step = (symbols.length >> 1) + (symbols.length >> 3) + 3;
  let position = 0;
  counts.forEach((count, symbol) => {
    for (let left = count; left > 0; left--) {
      symbols[position] = symbol;
      do position = (position + step) & mask;
      while (position >= high);
    }
  });
}

/** Reads the description of a distribution; returns its table, and the bytes that it takes. */
export function readFseTable(bytes, maxLog, maxSymbol, fail) {
  const reader = new ForwardBits(bytes);
  const log = reader.read(4) + 5;
  if (log > maxLog) fail(`a table of ${log} bits, ${maxLog} are allowed`);
  const counts = [];
  for (let left = 1 << log; left > 0; ) {
    const count = readCount(reader, left);
    left -= Math.abs(count);
    counts.push(count);
    for (let zeros = count ? 0 : 3; zeros === 3; ) {
      zeros = reader.read(2);
      for (let each = 0; each < zeros; each++) counts.push(0);
    }
    if (left < 0 || counts.length > maxSymbol + 1 || reader.size > bytes.length) fail("a distribution is damaged");
  }
  return { table: fseTable(counts, log), size: reader.size };
}

/** A number up to one more than what is left, in as few bits as possible, less one. */
function readCount(reader, left) {
  const width = 32 - Math.clz32(left + 1);
  const short = (1 << width) - 2 - left;
  const low = reader.peek(width - 1);
  if (low < short) return reader.read(width - 1) - 1;
  const value = reader.read(width);
  return (value >= 1 << (width - 1) ? value - short : value) - 1;
}

/** A state of a table that moves as symbols are taken. */
export class FseState {
  constructor(table, reader) {
    this.table = table;
    this.state = reader.read(table.log);
  }

  get symbol() {
    return this.table.symbols[this.state];
  }

  move(reader) {
    this.state = this.table.bases[this.state] + reader.read(this.table.bits[this.state]);
  }
}

/** Reads a Huffman code; returns its table, and the bytes that it takes. */
export function readHuffman(bytes, fail) {
  if (!bytes.length) fail("a Huffman code is cut short");
  const head = bytes[0];
  const size = 1 + (head < 128 ? head : (head - 126) >> 1);
  if (size > bytes.length) fail("a Huffman code is cut short");
  const body = bytes.subarray(1, size);
  const weights = head < 128 ? packedWeights(body, fail) : plainWeights(body, head - 127);
  return { table: huffmanTable(weights, fail), size };
}

function plainWeights(bytes, count) {
  return Array.from({ length: count }, (_, index) => (index % 2 ? bytes[index >> 1] & 15 : bytes[index >> 1] >> 4));
}

/** Weights in two FSE states that take turns, until the bits are used up. */
function packedWeights(bytes, fail) {
  const { table, size } = readFseTable(bytes, MAX_WEIGHT_LOG, 15, fail);
  const reader = new BackwardBits(bytes.subarray(size), fail);
  const states = [new FseState(table, reader), new FseState(table, reader)];
  const weights = [];
  for (let turn = 0; ; turn ^= 1) {
    weights.push(states[turn].symbol);
    if (weights.length > 255) fail("a Huffman code has too many symbols");
    if (reader.left < table.bits[states[turn].state]) break;
    states[turn].move(reader);
  }
  weights.push(states[weights.length % 2].symbol);
  return weights;
}

/** By the bits that come next: a symbol, and how many of them are its code. The last weight follows from the others. */
function huffmanTable(weights, fail) {
  const total = weights.reduce((sum, weight) => sum + (weight ? 1 << (weight - 1) : 0), 0);
  const bits = 32 - Math.clz32(total);
  const rest = (1 << bits) - total;
  if (!total || bits > MAX_HUFFMAN_BITS || rest & (rest - 1) || weights.length > 255) fail("a Huffman code is damaged");
  const all = [...weights, 32 - Math.clz32(rest)];
  const symbols = new Uint8Array(1 << bits);
  const lengths = new Uint8Array(1 << bits);
  let position = 0;
  for (let weight = 1; weight <= bits; weight++) {
    all.forEach((one, symbol) => {
      if (one !== weight) return;
      const end = position + (1 << (weight - 1));
      symbols.fill(symbol, position, end);
      lengths.fill(bits + 1 - weight, position, end);
      position = end;
    });
  }
  return { bits, symbols, lengths };
}

/** Decodes so many symbols; the stream has to end with them. */
export function huffmanSymbols(table, bytes, target, fail) {
  const reader = new BackwardBits(bytes, fail);
  for (let at = 0; at < target.length; at++) {
    const next = reader.peek(table.bits);
    target[at] = table.symbols[next];
    reader.skip(table.lengths[next]);
    if (reader.left < 0) fail("a Huffman stream is cut short");
  }
  if (reader.left) fail("a Huffman stream goes on after its last symbol");
}
