/**
 * Fields and bytes side by side: pointing at one marks the other.
 */

import { fieldText } from "./blocks.js";
import { make } from "./dom.js";
import { VirtualList } from "./virtual.js";

const COLOURS = 7;
const FIELD_HEIGHT = 22;
const BYTES_HEIGHT = 20;
const NARROW = 540; // pixels of the pane below which a row has eight bytes

export class FieldView {
  /**
   * @param {HTMLElement} fieldBox
   * @param {HTMLElement} byteBox
   * @param {(block: import("./blocks.js").Block, field: import("./decode.js").Field | null) => void} chosen told what is pointed at
   */
  constructor(fieldBox, byteBox, chosen) {
    Object.assign(this, { fieldBox, byteBox, chosen });
    this.block = { bytes: new Uint8Array(0), fields: [], position: 0 };
    this.leaves = [];
    this.marked = -1;
    this.kept = -1;
    this.perRow = 16;
    this.fields = new VirtualList(fieldBox, FIELD_HEIGHT, (index) => this.fieldRow(index));
    this.bytes = new VirtualList(byteBox, BYTES_HEIGHT, (index) => this.byteRow(index));
    this.listen();
  }

  /** @param {import("./blocks.js").Block} block */
  open(block) {
    this.block = block;
    this.leaves = [];
    this.colours = new Map();
    block.fields.forEach((one, index) => {
      if (one.group || one.end <= one.start) return;
      this.colours.set(index, this.leaves.length % COLOURS);
      this.leaves.push(index);
    });
    this.marked = this.kept = -1;
    this.fields.reset(block.fields.length);
    this.measure();
    this.fieldBox.removeAttribute("aria-activedescendant");
  }

  measure() {
    this.perRow = this.byteBox.clientWidth < NARROW ? 8 : 16;
    this.bytes.reset(Math.ceil(this.block.bytes.length / this.perRow));
  }

  listen() {
    this.fieldBox.addEventListener("mouseover", (event) => this.point(this.fieldAt(event), "field"));
    this.byteBox.addEventListener("mouseover", (event) => this.point(this.byteAt(event), "byte"));
    for (const box of [this.fieldBox, this.byteBox]) {
      box.addEventListener("mouseleave", () => this.mark(this.kept));
      box.addEventListener("click", (event) => {
        const index = box === this.fieldBox ? this.fieldAt(event) : this.byteAt(event);
        if (index >= 0) this.keep(index);
      });
    }
    this.fieldBox.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15 }[event.key];
      if (!step || !this.block.fields.length) return;
      event.preventDefault();
      this.keep(Math.max(0, Math.min(this.block.fields.length - 1, this.kept + step)));
    });
    let width = this.byteBox.clientWidth;
    new ResizeObserver(() => {
      if ((width < NARROW) !== (this.byteBox.clientWidth < NARROW)) this.measure();
      width = this.byteBox.clientWidth;
    }).observe(this.byteBox);
  }

  fieldAt(event) {
    const row = event.target.closest("[data-field]");
    return row ? Number(row.dataset.field) : -1;
  }

  byteAt(event) {
    const cell = event.target.closest("[data-at]");
    return cell ? this.leafAt(Number(cell.dataset.at)) : -1;
  }

  /** The field that a byte belongs to, or -1. */
  leafAt(position) {
    let low = 0;
    let high = this.leaves.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const { start, end } = this.block.fields[this.leaves[middle]];
      if (position < start) high = middle - 1;
      else if (position >= end) low = middle + 1;
      else return this.leaves[middle];
    }
    return -1;
  }

  point(index, side) {
    if (index < 0) return;
    this.mark(index);
    if (side === "byte") this.fields.show(index);
    else this.bytes.show(Math.floor(this.block.fields[index].start / this.perRow));
  }

  /** Mark a field and go on marking it. */
  keep(index) {
    this.kept = index;
    this.fields.show(index);
    this.bytes.show(Math.floor(this.block.fields[index].start / this.perRow));
    this.mark(index);
  }

  mark(index) {
    this.marked = index;
    for (const [at, row] of this.fields.rows) this.paintField(at, row);
    for (const row of this.bytes.rows.values()) this.paintBytes(row);
    this.chosen(this.block, index < 0 ? null : this.block.fields[index]);
  }

  fieldRow(index) {
    const one = this.block.fields[index];
    const { value, note } = fieldText(one);
    const colour = this.colours.get(index);
    const name = make("b", colour === undefined ? "" : `c${colour}`, one.name);
    const row = make("div", one.failed ? "field wrong" : "field", name);
    if (value) row.append(" ", make("span", "value", value));
    if (note) row.append(" ", make("span", "note", note));
    row.style.paddingLeft = `${one.depth * 16 + 6}px`;
    row.dataset.field = index;
    row.id = `field-${index}`;
    row.setAttribute("role", "treeitem");
    row.setAttribute("aria-level", one.depth + 1);
    row.title = value;
    this.paintField(index, row);
    return row;
  }

  paintField(index, row) {
    const isOn = index === this.marked;
    row.classList.toggle("on", isOn);
    row.setAttribute("aria-selected", isOn);
    if (isOn) this.fieldBox.setAttribute("aria-activedescendant", row.id);
  }

  byteRow(index) {
    const start = index * this.perRow;
    const row = make("div", "bytes", make("span", "address", (this.block.position + start).toString(16).padStart(8, "0")));
    const text = make("span", "text");
    for (let at = start; at < start + this.perRow; at++) {
      const byte = this.block.bytes[at];
      if (byte === undefined) {
        row.append(make("i", "", "  "));
        continue;
      }
      const colour = this.colours.get(this.leafAt(at));
      const className = colour === undefined ? "" : `c${colour}`;
      const cells = [make("i", className, byte.toString(16).padStart(2, "0")), make("u", className, byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")];
      for (const cell of cells) cell.dataset.at = at;
      if (at % 8 === 0 && at > start) cells[0].classList.add("gap");
      row.append(cells[0]);
      text.append(cells[1]);
    }
    row.append(text);
    this.paintBytes(row);
    return row;
  }

  paintBytes(row) {
    const one = this.block.fields[this.marked];
    for (const cell of row.querySelectorAll("[data-at]")) {
      const at = Number(cell.dataset.at);
      cell.classList.toggle("on", Boolean(one) && at >= one.start && at < one.end);
    }
  }
}
