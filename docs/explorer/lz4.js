/**
 * An lz4 frame (chapter 34). Checksums are not verified here: `seglog verify` does that.
 */

import { Output } from "./output.js";

const LZ4_MAGIC = 0x184d2204;

/** @returns {Uint8Array} what the first frame decompresses to */
export function lz4Content(bytes, limit) {
  const output = new Output(limit, "SEG-COD-006");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 7 || view.getUint32(0, true) !== LZ4_MAGIC) output.fail("no lz4 frame begins here");
  const flags = bytes[4];
  if (flags >> 6 !== 1) output.fail(`version ${flags >> 6} of a frame`);
  if (!(flags & 32)) output.fail("blocks that depend on each other");
  const blockSize = 1 << (8 + 2 * ((bytes[5] >> 4) & 7));
  if ((bytes[5] >> 4 & 7) < 4) output.fail("a block size that is reserved");
  let at = 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0);
  for (;;) {
    if (at + 4 > bytes.length) missing(output, "the end mark is missing", "SEG-COD-010");
    const word = view.getUint32(at, true);
    const size = word % 2 ** 31;
    at += 4;
    if (!size) return output.whole();
    if (size > blockSize || at + size > bytes.length) missing(output, `a block of ${size} bytes, ${bytes.length - at} are there`, "SEG-COD-009");
    const block = bytes.subarray(at, at + size);
    const before = output.size;
    if (word >= 2 ** 31) output.append(block);
    else lz4Block(block, output, before);
    if (output.size - before > blockSize) missing(output, `a block decompresses to more than ${blockSize} bytes`, "SEG-COD-009");
    at += size + (flags & 16 ? 4 : 0);
  }
}

function missing(output, message, requirement) {
  output.requirement = requirement;
  output.fail(message);
}

/** Sequences of literals and matches; the last has no match. */
function lz4Block(bytes, output, floor) {
  const reader = { bytes, at: 0, output };
  while (reader.at < bytes.length) {
    const token = bytes[reader.at++];
    const literals = lz4Length(reader, token >> 4);
    if (reader.at + literals > bytes.length) output.fail(`a literal of ${literals} bytes is cut short`);
    output.append(bytes.subarray(reader.at, reader.at + literals));
    reader.at += literals;
    if (reader.at === bytes.length) return;
    if (reader.at + 2 > bytes.length) output.fail("a match is cut short");
    const distance = bytes[reader.at] | (bytes[reader.at + 1] << 8);
    reader.at += 2;
    output.copy(distance, lz4Length(reader, token & 15) + 4, floor);
  }
}

function lz4Length(reader, start) {
  let length = start;
  if (start < 15) return length;
  for (;;) {
    if (reader.at >= reader.bytes.length) reader.output.fail("a length is cut short");
    const byte = reader.bytes[reader.at++];
    length += byte;
    if (byte < 255) return length;
  }
}
