/**
 * The entries of a log, as columns: a log of 50 MB may have half a million of them.
 */

/** A column that grows. */
class Column {
  constructor(Type) {
    this.values = new Type(1024);
  }

  set(index, value) {
    if (index >= this.values.length) {
      const grown = new this.values.constructor(this.values.length * 2);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[index] = value;
  }

  at(index) {
    return this.values[index];
  }
}

/**
 * @typedef {object} Entry
 * @property {number} index
 * @property {number} position byte of the file at which it starts
 * @property {number} size bytes, its first twelve included
 * @property {number} magic
 * @property {number} attributes
 * @property {bigint} baseOffset that of the last message inside, where it is a wrapper
 * @property {bigint} lastOffset
 * @property {bigint} maxTimestamp milliseconds; -1 none
 * @property {number} count records; -1 where only decompression tells
 * @property {boolean} intact
 */

/** Every whole entry of a log, in file order. */
export class EntryTable {
  constructor() {
    this.length = 0;
    this.columns = {
      position: new Column(Float64Array),
      size: new Column(Float64Array),
      magic: new Column(Int8Array),
      attributes: new Column(Int16Array),
      baseOffset: new Column(BigInt64Array),
      lastOffset: new Column(BigInt64Array),
      maxTimestamp: new Column(BigInt64Array),
      count: new Column(Int32Array),
      intact: new Column(Uint8Array),
    };
  }

  /** @param {Omit<Entry, "index">} entry */
  add(entry) {
    for (const name in this.columns) this.columns[name].set(this.length, entry[name]);
    this.length++;
  }

  /** @returns {Entry} */
  entry(index) {
    const found = { index };
    for (const name in this.columns) found[name] = this.columns[name].at(index);
    found.intact = Boolean(found.intact);
    return found;
  }

  position(index) {
    return this.columns.position.at(index);
  }

  lastOffset(index) {
    return this.columns.lastOffset.at(index);
  }

  /** The entry that starts at a position, or the last one before it; -1 without one. */
  atOrBefore(position) {
    return this.lastWhere((index) => this.position(index) <= position);
  }

  /** The entry that starts exactly there, or -1. */
  startingAt(position) {
    const index = this.atOrBefore(position);
    return index >= 0 && this.position(index) === position ? index : -1;
  }

  /** The first entry from `first` on whose last offset is not below; -1 without one. */
  endingAtOrAbove(offset, first = 0) {
    for (let index = first; index < this.length; index++) if (this.lastOffset(index) >= offset) return index;
    return -1;
  }

  /** The largest timestamp of the entries before a position that end at or below an offset; -1 without any. */
  timestampUpTo(offset, before) {
    this.largest ||= this.runningMaximum();
    const index = this.lastWhere((one) => this.lastOffset(one) <= offset && this.position(one) < before);
    return index < 0 ? -1n : this.largest[index];
  }

  /** The largest timestamp up to each entry; that of an entry which compaction has emptied stands for no record. */
  runningMaximum() {
    const found = new BigInt64Array(this.length);
    let largest = -1n;
    for (let index = 0; index < this.length; index++) {
      const timestamp = this.columns.count.at(index) === 0 ? -1n : this.columns.maxTimestamp.at(index);
      if (timestamp > largest) largest = timestamp;
      found[index] = largest;
    }
    return found;
  }

  /** The last index for which a condition holds that, once it does not, never holds again. */
  lastWhere(holds) {
    let low = -1;
    let high = this.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (holds(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
