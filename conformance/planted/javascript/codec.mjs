// Decompress what record batches and wrappers hold: chapter 34 of the specification, without zstd.
import { inflateRawSync } from "node:zlib";

const GZIP_TRAILER = 8;
const BARE_GZIP_MEMBER = 18;
const XERIAL = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]);
const XERIAL_HEADER = 16;

export class Refused extends Error {}

export function require(holds, message) {
  if (!holds) throw new Refused(message);
}

// The content of compressed bytes; `magic` is that of the batch or wrapper.
export function decompress(codec, data, magic, limit) {
  if (codec === 0) return data;
  const readers = [gunzip, snappy, lz4];
  require(codec <= readers.length, `codec ${codec}`);
  const content = readers[codec - 1](data, limit, magic);
  require(content.length <= limit, "more than the limit");
  return content;
}

function reflectedTable(polynomial) {
  return Uint32Array.from({ length: 256 }, (_, value) => {
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? polynomial : 0);
    return value >>> 0;
  });
}

const crcBy = (table) => (data) => {
  let value = 0xffffffff;
  for (const byte of data) value = table[(value ^ byte) & 0xff] ^ (value >>> 8);
  return ~value >>> 0;
};

export const crc32 = crcBy(reflectedTable(0xedb88320));
export const crc32c = crcBy(reflectedTable(0x82f63b78));

// -- gzip

function gunzip(data, limit) {
  const members = [];
  let left = limit;
  let start = gzipHeader(data, 0);
  require(start !== null, "no gzip header");
  while (start !== null) {
    const [member, used] = inflate(data.subarray(start), left + 1);
    const end = start + used;
    require(end + GZIP_TRAILER <= data.length, "no gzip trailer");
    require(data.readUInt32LE(end) === crc32(member), "gzip checksum");
    require(data.readUInt32LE(end + 4) === member.length, "gzip size");
    left -= member.length;
    require(left >= 0, "more than the limit");
    members.push(member);
    const next = end + GZIP_TRAILER;
    start = data.length - next > BARE_GZIP_MEMBER ? gzipHeader(data, next) : null;
  }
  return Buffer.concat(members);
}

function inflate(data, limit) {
  try {
    const { buffer, engine } = inflateRawSync(data, { info: true, maxOutputLength: limit });
    return [buffer, engine.bytesWritten];
  } catch (error) {
    throw new Refused(String(error));
  }
}

// Where the deflated data starts; null where there is no whole header.
function gzipHeader(data, start) {
  if (data.length < start + 10 || data.readUIntBE(start, 3) !== 0x1f8b08) return null;
  const flags = data[start + 3];
  let at = start + 10;
  if (flags & 4) {
    if (data.length < at + 2) return null;
    at += 2 + data.readUInt16LE(at);
  }
  for (const flag of [8, 16]) {
    if (flags & flag) {
      const end = data.indexOf(0, at);
      if (end < 0 || at > data.length) return null;
      at = end + 1;
    }
  }
  if (flags & 2) {
    if (data.length < at + 2 || data.readUInt16LE(at) !== (crc32(data.subarray(start, at)) & 0xffff)) return null;
    at += 2;
  }
  return at <= data.length ? at : null;
}

// -- snappy

function snappy(data, limit) {
  if (!data.subarray(0, 8).equals(XERIAL)) return rawSnappy(data, limit);
  const blocks = [];
  let at = 0;
  while (data.length - at >= 4) {
    if (data.subarray(at, at + 8).equals(XERIAL)) {
      at += XERIAL_HEADER;
      require(at <= data.length, "xerial header is cut");
      continue;
    }
    const size = data.readInt32BE(at);
    at += 4;
    require(size >= 0 && at + size <= data.length, "xerial block size");
    blocks.push(rawSnappy(data.subarray(at, at + size), limit));
    limit -= blocks.at(-1).length;
    at += size;
  }
  return Buffer.concat(blocks);
}

function rawSnappy(data, limit) {
  let [size, at] = snappySize(data);
  require(size <= limit, "more than the limit");
  const out = [];
  while (at < data.length) {
    const tag = data[at++];
    let length = (tag >> 2) + 1;
    if ((tag & 3) === 0) {
      const wide = Math.max(0, length - 60);
      require(at + wide <= data.length, "literal size is cut");
      if (wide) length = data.readUIntLE(at, wide) + 1;
      at += wide;
      require(at + length <= data.length, "literal is cut");
      for (const end = at + length; at < end; ) out.push(data[at++]);
    } else {
      const wide = [1, 2, 4][(tag & 3) - 1];
      require(at + wide <= data.length, "copy is cut");
      let distance = data.readUIntLE(at, wide);
      at += wide;
      if (wide === 1) {
        distance += (tag >> 5) * 256;
        length = ((tag >> 2) & 7) + 4;
      }
      repeat(out, distance, length);
    }
    require(out.length <= size, "more than the snappy block states");
  }
  require(out.length === size, "less than the snappy block states");
  return Buffer.from(out);
}

function snappySize(data) {
  let size = 0;
  for (let at = 0; at < 5 && at < data.length; at++) {
    size += (data[at] & 127) * 2 ** (7 * at);
    if (data[at] < 128) {
      require(size <= 0xffffffff, "snappy size");
      return [size, at + 1];
    }
  }
  throw new Refused("snappy size");
}

// Repeats earlier bytes, which may reach into those that are being written.
function repeat(out, distance, length) {
  require(distance > 0 && distance <= out.length, "copy from before the start");
  for (; length > 0; length--) out.push(out[out.length - distance]);
}

// -- lz4

function lz4(data, limit, magic) {
  require(data.length >= 7 && data.readUInt32LE(0) === 0x184d2204, "lz4 magic");
  const flags = data[4];
  const descriptor = data[5];
  require(flags >> 6 === 1 && flags & 0x20 && !(flags & 3), "lz4 flags");
  require(!(descriptor & 0x8f) && descriptor >> 4 >= 4, "lz4 block size code");
  const largest = 2 ** (8 + 2 * (descriptor >> 4));
  const end = flags & 8 ? 14 : 6;
  require(data.length > end, "lz4 header is cut");
  const checksum = (xxhash32(data.subarray(4, end)) >>> 8) & 0xff;
  require(magic === 0 || data[end] === checksum, "lz4 header checksum");
  const blocks = [];
  let at = end + 1;
  for (;;) {
    require(at + 4 <= data.length, "no end mark");
    const word = data.readUInt32LE(at);
    const size = word & 0x7fffffff;
    at += 4;
    if (size === 0) break;
    require(size <= largest && at + size <= data.length, "lz4 block size");
    const block = data.subarray(at, at + size);
    at += size;
    if (flags & 0x10) {
      require(at + 4 <= data.length && data.readUInt32LE(at) === xxhash32(block), "lz4 block checksum");
      at += 4;
    }
    blocks.push(word >>> 31 ? block : rawLz4(block, largest));
    limit -= blocks.at(-1).length;
    require(limit >= 0, "more than the limit");
  }
  require(!(flags & 4) || at + 4 <= data.length, "no content checksum");
  return Buffer.concat(blocks);
}

function rawLz4(block, largest) {
  const out = [];
  let at = 0;
  const extended = (length) => {
    for (let more = length === 15 ? 255 : 0; more === 255; length += more) {
      require(at < block.length, "lz4 length is cut");
      more = block[at++];
    }
    return length;
  };
  for (;;) {
    require(at < block.length, "lz4 block is cut");
    const token = block[at++];
    const end = extended(token >> 4) + at;
    require(end <= block.length, "lz4 literals are cut");
    while (at < end) out.push(block[at++]);
    require(out.length <= largest, "more than the lz4 block size");
    if (at === block.length) return Buffer.from(out);
    require(at + 2 <= block.length, "lz4 distance is cut");
    const distance = block.readUInt16LE(at);
    at += 2;
    const length = extended(token & 15) + 4;
    require(out.length + length <= largest, "more than the lz4 block size");
    repeat(out, distance, length);
  }
}

export function xxhash32(data) {
  const [one, two, three, four, five] = [0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1];
  const rotate = (value, bits) => (value << bits) | (value >>> (32 - bits));
  let at = 0;
  let sum = five;
  if (data.length >= 16) {
    const lanes = [one + two, two, 0, -one];
    for (; at + 16 <= data.length; at += 16)
      for (let lane = 0; lane < 4; lane++) {
        const word = data.readUInt32LE(at + 4 * lane);
        lanes[lane] = Math.imul(rotate((lanes[lane] + Math.imul(word, two)) | 0, 13), one);
      }
    sum = [1, 7, 12, 18].reduce((total, bits, lane) => (total + rotate(lanes[lane], bits)) | 0, 0);
  }
  sum = (sum + data.length) | 0;
  for (; at + 4 <= data.length; at += 4)
    sum = Math.imul(rotate((sum + Math.imul(data.readUInt32LE(at), three)) | 0, 17), four);
  for (; at < data.length; at++) sum = Math.imul(rotate((sum + Math.imul(data[at], five)) | 0, 11), one);
  sum = Math.imul(sum ^ (sum >>> 15), two);
  sum = Math.imul(sum ^ (sum >>> 13), three);
  return (sum ^ (sum >>> 16)) >>> 0;
}
