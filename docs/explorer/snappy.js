/**
 * Snappy as Kafka stores it: blocks behind a xerial header, or one raw block (chapter 34).
 */

import { Output } from "./output.js";

const XERIAL = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00];
const XERIAL_SIZE = 16;

/** @returns {Uint8Array} what the data decompress to */
export function snappyContent(bytes, limit) {
  const output = new Output(limit, "SEG-COD-003");
  if (!isXerial(bytes, 0)) {
    output.requirement = "SEG-COD-004";
    snappyBlock(bytes, output);
    return output.whole();
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = XERIAL_SIZE; at + 4 <= bytes.length; ) {
    if (isXerial(bytes, at)) {
      at += XERIAL_SIZE;
      continue;
    }
    const size = view.getInt32(at);
    if (size < 0 || at + 4 + size > bytes.length) output.fail(`a block of ${size} bytes, ${bytes.length - at - 4} are there`);
    snappyBlock(bytes.subarray(at + 4, at + 4 + size), output);
    at += 4 + size;
  }
  return output.whole();
}

function isXerial(bytes, at) {
  return at + XERIAL_SIZE <= bytes.length && XERIAL.every((byte, index) => bytes[at + index] === byte);
}

/** One raw block: its decompressed size, then literals and copies. */
function snappyBlock(bytes, output) {
  const reader = { bytes, at: 0, output };
  const floor = output.size;
  const size = snappySize(reader);
  output.grow(size);
  while (reader.at < bytes.length) {
    const tag = bytes[reader.at++];
    if (tag & 3) snappyCopy(reader, tag, floor);
    else snappyLiteral(reader, tag >> 2);
    if (output.size - floor > size) output.fail(`more than the ${size} bytes that the block announces`);
  }
  if (output.size - floor !== size) output.fail(`a block of ${size} bytes decompresses to ${output.size - floor}`);
}

function snappySize(reader) {
  let size = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = snappyNumber(reader, 1);
    size += (byte & 127) * 2 ** shift;
    if (byte < 128) return size;
  }
  return reader.output.fail("a size of more than five bytes");
}

function snappyLiteral(reader, code) {
  const size = (code < 60 ? code : snappyNumber(reader, code - 59)) + 1;
  if (reader.at + size > reader.bytes.length) reader.output.fail(`a literal of ${size} bytes is cut short`);
  reader.output.append(reader.bytes.subarray(reader.at, reader.at + size));
  reader.at += size;
}

function snappyCopy(reader, tag, floor) {
  const kind = tag & 3;
  const size = kind === 1 ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
  const high = kind === 1 ? (tag >> 5) << 8 : 0;
  reader.output.copy(high + snappyNumber(reader, kind === 3 ? 4 : kind), size, floor);
}

/** A little-endian number of so many bytes. */
function snappyNumber(reader, count) {
  if (reader.at + count > reader.bytes.length) reader.output.fail("the block is cut short");
  let value = 0;
  for (let index = 0; index < count; index++) value += reader.bytes[reader.at++] * 256 ** index;
  return value;
}
