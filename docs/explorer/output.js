/**
 * Bytes that come out of a codec, one after the other. They never grow above a limit.
 */

/** Data that its codec does not allow, and the rule that says so. */
export class CodecProblem extends Error {
  constructor(message, requirement) {
    super(message);
    this.requirement = requirement;
  }
}

export class Output {
  /**
   * @param {number} limit bytes at most
   * @param {string} requirement the rule that damaged data break
   */
  constructor(limit, requirement) {
    this.limit = limit;
    this.requirement = requirement;
    this.bytes = new Uint8Array(Math.min(limit, 1 << 16));
    this.size = 0;
  }

  fail(message) {
    throw new CodecProblem(message, this.requirement);
  }

  /** Makes room for more bytes. */
  grow(count) {
    const needed = this.size + count;
    if (needed > this.limit) throw new CodecProblem(`more than ${this.limit} bytes come out`, "SEG-COD-016");
    if (needed <= this.bytes.length) return;
    const larger = new Uint8Array(Math.min(this.limit, Math.max(needed, 2 * this.bytes.length)));
    larger.set(this.bytes.subarray(0, this.size));
    this.bytes = larger;
  }

  append(bytes) {
    this.grow(bytes.length);
    this.bytes.set(bytes, this.size);
    this.size += bytes.length;
  }

  repeat(byte, count) {
    this.grow(count);
    this.bytes.fill(byte, this.size, this.size + count);
    this.size += count;
  }

  /** Copies bytes from some way back; they may overlap with what is written. */
  copy(distance, count, floor = 0) {
    if (distance <= 0 || distance > this.size - floor) this.fail(`a match ${distance} bytes back, ${this.size - floor} are there`);
    this.grow(count);
    for (let at = 0; at < count; at++) this.bytes[this.size + at] = this.bytes[this.size + at - distance];
    this.size += count;
  }

  whole() {
    return this.bytes.slice(0, this.size);
  }
}
