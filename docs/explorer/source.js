/**
 * A file that is read in slices, so that one of any size takes a few megabytes of memory.
 */

const WINDOW = 1 << 20;

/** Bytes of a file by position. One window of the file is kept; what lies in it comes without waiting. */
export class Source {
  /** @param {string} name @param {Blob} blob */
  constructor(name, blob) {
    this.name = name;
    this.blob = blob;
    this.size = blob.size;
    this.start = 0;
    this.window = new Uint8Array(0);
  }

  /** Bytes of the window, or null where they have to be read first. */
  ready(start, end) {
    if (start < this.start || end > this.start + this.window.length) return null;
    return this.window.subarray(start - this.start, end - this.start);
  }

  /** Bytes of the file, cut at its end; for a walk from front to back. */
  async ahead(start, end) {
    const last = Math.min(end, this.size);
    const found = this.ready(start, last);
    if (found) return found;
    this.window = await this.read(start, Math.max(last, start + WINDOW));
    this.start = start;
    return this.window.subarray(0, last - start);
  }

  /** Bytes of the file, cut at its end; the window stays. */
  async read(start, end) {
    const slice = this.blob.slice(start, Math.min(end, this.size));
    return new Uint8Array(await slice.arrayBuffer());
  }
}
