/**
 * A list of which only the rows in view exist.
 */

const EXTRA = 6;

export class VirtualList {
  /**
   * @param {HTMLElement} box that scrolls
   * @param {number} height of a row in pixels
   * @param {(index: number) => HTMLElement} draw makes a row
   */
  constructor(box, height, draw) {
    Object.assign(this, { box, height, draw, count: 0 });
    this.rows = new Map();
    this.space = document.createElement("div");
    this.space.className = "space";
    this.space.setAttribute("role", "presentation");
    box.replaceChildren(this.space);
    box.addEventListener("scroll", () => this.fill(), { passive: true });
    new ResizeObserver(() => this.fill()).observe(box);
  }

  /** Show other rows, from the top. */
  reset(count) {
    this.count = count;
    this.space.style.height = `${count * this.height}px`;
    this.box.scrollTop = 0;
    this.redraw();
  }

  redraw() {
    this.rows.clear();
    this.space.replaceChildren();
    this.fill();
  }

  fill() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - EXTRA);
    const last = Math.min(this.count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / this.height) + EXTRA);
    for (const [index, row] of this.rows) {
      if (index >= first && index < last) continue;
      row.remove();
      this.rows.delete(index);
    }
    for (let index = first; index < last; index++) {
      if (this.rows.has(index)) continue;
      const row = this.draw(index);
      row.style.top = `${index * this.height}px`;
      row.style.height = `${this.height}px`;
      this.rows.set(index, row);
      this.space.append(row);
    }
  }

  /** Scroll as little as brings a row into view. */
  show(index) {
    const top = index * this.height;
    const below = top + this.height - this.box.clientHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (below > this.box.scrollTop) this.box.scrollTop = below;
    this.fill();
  }
}
