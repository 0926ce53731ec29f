/**
 * From bytes to fields, by the generated tables: nothing in here knows any structure.
 */

import { STRUCTURES } from "./tables.js";

/**
 * @typedef {object} Field
 * @property {string} name within its group
 * @property {number} start first byte, counted from the start of the block
 * @property {number} end byte after the last one
 * @property {number} depth 0 for the outermost
 * @property {number | bigint | Uint8Array | string | null | undefined} value undefined for a group
 * @property {string} note what the value means
 * @property {string} doc one sentence
 * @property {string[]} requirements ids
 * @property {boolean} group whether fields of greater depth follow that lie inside
 * @property {boolean} failed reading stopped here, or the value is wrong
 */

/** Bytes that a declaration does not allow. */
export class FormatProblem extends Error {
  constructor(field, position, requirement, expected, found) {
    super(`${field}: expected ${expected}, found ${found}`);
    Object.assign(this, { field, position, requirement, expected, found });
  }
}

const WIDTHS = { int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, uint32: 4, int64: 8, uint64: 8 };
const GETTERS = {
  int8: "getInt8",
  uint8: "getUint8",
  int16: "getInt16",
  uint16: "getUint16",
  int32: "getInt32",
  uint32: "getUint32",
  int64: "getBigInt64",
  uint64: "getBigUint64",
};
const VARINT_SIZES = { 32: 5, 64: 10 };

/** @returns {Field} */
export function field(name, start, end, depth, more = {}) {
  return { name, start, end, depth, value: undefined, note: "", doc: "", requirements: [], group: false, failed: false, ...more };
}

/** Reads one structure after the other from a run of bytes. */
export class Decoder {
  /**
   * @param {Uint8Array} bytes
   * @param {number} start where to begin
   * @param {number} end where the structure has to have ended
   * @param {Field[] | null} fields where to put what is read; null where only the values are wanted
   * @param {string} short requirement that bytes break which end too early; by default that of the field
   */
  constructor(bytes, start = 0, end = bytes.length, fields = null, short = "") {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = start;
    this.end = end;
    this.fields = fields;
    this.short = short;
  }

  /**
   * The values of a structure by name; arrays as lists.
   *
   * @param {string} name of the structure
   * @param {number} depth of its fields
   * @param {(name: string, value: any, values: object) => string} note on a field
   */
  structure(name, depth = 0, note = () => "") {
    const values = {};
    for (const declared of STRUCTURES[name].fields) this.one(declared, values, depth, note);
    return values;
  }

  /** So many structures in a row; each is a group. */
  array(name, count, depth, note) {
    const found = [];
    for (let index = 0; index < count; index++) {
      const group = this.fields && field(`[${index}]`, this.position, this.position, depth, { group: true });
      if (group) this.fields.push(group);
      try {
        found.push(this.structure(name, depth + 1, note));
      } finally {
        if (group) group.end = this.position;
      }
    }
    return found;
  }

  one(declared, values, depth, note) {
    const start = this.position;
    const row = this.fields && field(declared.field, start, start, depth, { ...describe(declared), failed: true });
    if (row) this.fields.push(row);
    const value = this.value(declared, values, depth, note);
    this.checkField(declared, value, start);
    values[declared.field] = value;
    if (!row) return;
    row.failed = false;
    row.end = this.position;
    if (declared.of) {
      if (value.length) row.group = true;
      else this.fields.pop();
    } else {
      row.value = value;
      row.note = note(declared.field, value, values);
    }
  }

  value(declared, values, depth, note) {
    if (declared.of) return this.array(declared.of, Number(values[declared.count]), depth + 1, note);
    if (declared.type === "nullable bytes") return this.nullable(declared);
    return this.number(declared.type, declared);
  }

  nullable(declared) {
    const size = this.number(declared.length, declared);
    if (size < 0) return null;
    const at = this.advance(size, declared);
    return this.bytes.subarray(at, this.position);
  }

  number(type, declared) {
    if (!(type in WIDTHS)) return this.varint(type, declared);
    const at = this.advance(WIDTHS[type], declared);
    return this.view[GETTERS[type]](at, declared.endian === "little");
  }

  /** A number in groups of seven bits; small ones, which nearly all are, need no big integers. */
  varint(type, declared) {
    const bits = type.endsWith("32") ? 32 : 64;
    const start = this.position;
    let low = 0;
    let wide = 0n;
    for (let group = 0; group < VARINT_SIZES[bits]; group++) {
      const byte = this.bytes[this.advance(1, declared)];
      if (group < 4) low |= (byte & 0x7f) << (7 * group);
      else wide |= BigInt(byte & 0x7f) << BigInt(7 * group);
      if (byte < 0x80) return signed(type, bits, group < 4 ? low : BigInt.asUintN(bits, wide | BigInt(low)));
    }
    throw new FormatProblem(declared.field, start, "SEG-REC-004", `a varint of at most ${VARINT_SIZES[bits]} bytes`, "a longer one");
  }

  /** Go on by so many bytes, which have to be there; answers where they start. */
  advance(size, declared) {
    const start = this.position;
    if (start + size > this.end) {
      const left = `${this.end - start} bytes`;
      throw new FormatProblem(declared.field, start, this.short || declared.requirements[0], `${size} bytes`, left);
    }
    this.position = start + size;
    return start;
  }

  checkField(declared, value, position) {
    const tooSmall = declared.minimum !== undefined && value < declared.minimum;
    const isNull = declared.nullable === false && value === null;
    if (tooSmall || isNull) {
      throw new FormatProblem(declared.field, position, declared.refusedBy, declared.expected, shown(value));
    }
  }
}

function describe(declared) {
  return { doc: declared.doc, requirements: declared.requirements };
}

/** A varint as it is meant: zig-zag unless its type is unsigned, and a plain number where 32 bits are enough. */
function signed(type, bits, raw) {
  if (type.startsWith("u")) return Number(raw);
  if (typeof raw === "number") return bits === 32 ? unzigzag(raw) : BigInt(unzigzag(raw));
  const value = raw & 1n ? -(raw >> 1n) - 1n : raw >> 1n;
  return bits === 32 ? Number(value) : value;
}

function unzigzag(raw) {
  return raw & 1 ? -(raw >>> 1) - 1 : raw >>> 1;
}

const TEXT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]*$/u;
const SHOWN_BYTES = 48;

/** A value in a few characters: numbers, text in quotes, other bytes in hex. */
export function shown(value) {
  if (value === undefined) return "";
  if (value === null) return "null";
  if (!(value instanceof Uint8Array)) return String(value);
  const part = value.subarray(0, SHOWN_BYTES);
  const more = value.length > SHOWN_BYTES ? `… (${value.length} bytes)` : "";
  try {
    const text = TEXT.decode(more ? trimmed(part) : part);
    const quote = text.includes('"') ? "'" : '"';
    if (PRINTABLE.test(text)) return quote + text + quote + more;
  } catch {
    // Not UTF-8: shown in hex.
  }
  return hex(part) + more;
}

/** Without the beginning of a character at the end. */
function trimmed(bytes) {
  let end = bytes.length;
  while (end && (bytes[end - 1] & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end && bytes[end - 1] >= 0xc0 ? end - 1 : bytes.length);
}

/** Bytes as hexadecimal digits. */
export function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
