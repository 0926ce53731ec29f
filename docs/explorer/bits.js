/**
 * Bits of zstd: read forwards for tables, and backwards from a mark for everything else.
 */

/** Up to 32 bits from a bit position on, the lowest first; bits outside of the bytes are 0. */
function bitsAt(bytes, position, count) {
  let value = 0;
  const first = position >> 3;
  for (let index = 0; index < 5; index++) value += (bytes[first + index] || 0) * 256 ** index;
  return Math.floor(value / 2 ** (position & 7)) % 2 ** count;
}

export class ForwardBits {
  constructor(bytes) {
    this.bytes = bytes;
    this.position = 0;
  }

  peek(count) {
    return bitsAt(this.bytes, this.position, count);
  }

  read(count) {
    const value = this.peek(count);
    this.position += count;
    return value;
  }

  /** The bytes that were begun. */
  get size() {
    return (this.position + 7) >> 3;
  }
}

export class BackwardBits {
  /**
   * @param {Uint8Array} bytes the last one holds the mark: its highest bit that is set
   * @param {(message: string) => never} fail
   */
  constructor(bytes, fail) {
    const last = bytes[bytes.length - 1];
    if (!last) fail("a stream of bits has no mark at its end");
    this.bytes = bytes;
    this.left = 8 * bytes.length - 8 + (31 - Math.clz32(last));
    this.fail = fail;
  }

  /** The next bits; those beyond the start are 0. */
  peek(count) {
    if (this.left >= count) return bitsAt(this.bytes, this.left - count, count);
    return this.left <= 0 ? 0 : bitsAt(this.bytes, 0, this.left) * 2 ** (count - this.left);
  }

  skip(count) {
    this.left -= count;
  }

  read(count) {
    if (!count) return 0;
    if (this.left < count) this.fail("a stream of bits is cut short");
    this.left -= count;
    return bitsAt(this.bytes, this.left, count);
  }
}
