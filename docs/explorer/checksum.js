/**
 * CRC-32 and CRC-32C, eight bytes at a time. Each is its reversed polynomial and nothing else; the tables follow.
 */

const POLYNOMIALS = { crc32: 0xedb88320, crc32c: 0x82f63b78 };

/** Eight tables of 256 numbers, one after the other: what a byte does to the checksum so many bytes later. */
function tables(polynomial) {
  const found = new Uint32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    found[byte] = crc >>> 0;
  }
  for (let at = 256; at < found.length; at++) {
    const before = found[at - 256];
    found[at] = (found[before & 0xff] ^ (before >>> 8)) >>> 0;
  }
  return found;
}

const TABLES = { crc32: tables(POLYNOMIALS.crc32), crc32c: tables(POLYNOMIALS.crc32c) };

/**
 * The checksum of bytes, or of bytes that follow others.
 *
 * @param {"crc32" | "crc32c"} kind
 * @param {Uint8Array} bytes
 * @param {number} before checksum of what stands before; 0 for nothing
 * @returns {number} 32 bits, not negative
 */
export function checksum(kind, bytes, before = 0) {
  const table = TABLES[kind];
  let crc = ~before;
  let at = 0;
  for (const end = bytes.length - 7; at < end; at += 8) {
    crc ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    crc =
      table[1792 + (crc & 0xff)] ^
      table[1536 + ((crc >>> 8) & 0xff)] ^
      table[1280 + ((crc >>> 16) & 0xff)] ^
      table[1024 + (crc >>> 24)] ^
      table[768 + bytes[at + 4]] ^
      table[512 + bytes[at + 5]] ^
      table[256 + bytes[at + 6]] ^
      table[bytes[at + 7]];
  }
  for (; at < bytes.length; at++) crc = table[(crc ^ bytes[at]) & 0xff] ^ (crc >>> 8);
  return ~crc >>> 0;
}
