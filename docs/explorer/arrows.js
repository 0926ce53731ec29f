/**
 * A drawing of an index above its log: an arrow from each entry to the bytes that it leads to.
 */

import { counted, draw, grouped } from "./dom.js";

const TOP = { y: 22, height: 14 };
const BOTTOM = { y: 92, height: 16 };
const HEIGHT = 126;
const MOST_ARROWS = 120;
const MOST_BOUNDS = 400;

/**
 * @typedef {object} Target
 * @property {number} row of the index
 * @property {number} entry of the log; -1 where nothing starts there
 * @property {number} position byte of the log
 * @property {string} words such as "offset 3 → 497"
 */

/**
 * Where an entry of an index leads.
 *
 * @param {import("./sidefiles.js").Slots} slots
 * @param {number} row
 * @param {import("./scan.js").Log} log
 * @returns {Target}
 */
export function targetOf(slots, row, log) {
  const slot = slots.entry(row);
  const entries = log.entries;
  if (slots.kind === "offset") {
    const words = `offset ${slot.offset} → position ${grouped(slot.position)}`;
    return { row, entry: entries.startingAt(slot.position), position: slot.position, words };
  }
  const from = Math.max(0, entries.lastWhere((index) => entries.lastOffset(index) < slot.offset));
  const entry = entries.endingAtOrAbove(slot.offset, from);
  return { row, entry, position: entry < 0 ? log.end : entries.position(entry), words: `offset ${slot.offset}` };
}

/** The rows that get an arrow: all of them, or some at equal distances, and always the one that is chosen. */
function drawnRows(count, chosen) {
  const step = Math.max(1, Math.ceil(count / MOST_ARROWS));
  const rows = [];
  for (let row = 0; row < count; row += step) rows.push(row);
  if (chosen >= 0 && chosen < count && !rows.includes(chosen)) rows.push(chosen);
  return rows;
}

/**
 * @param {SVGElement} svg
 * @param {{slots: import("./sidefiles.js").Slots, name: string}} index
 * @param {{log: import("./scan.js").Log, name: string, size: number}} file
 * @param {{row: number, entry: number}} chosen -1 for none
 * @param {(target: Target) => void} follow told which arrow was clicked
 */
export function drawArrows(svg, index, file, chosen, follow) {
  const { slots } = index;
  const width = svg.clientWidth;
  const rows = drawnRows(slots.length, chosen.row);
  const left = (row) => ((row + 0.5) / Math.max(1, slots.length)) * width;
  const scale = (position) => Math.min(1, position / Math.max(1, file.size)) * width;
  const leftOut = rows.length < slots.length ? `, ${rows.length} of them drawn` : "";
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  svg.setAttribute("aria-label", `${counted(slots.length, "entry", "entries")} of ${index.name}${leftOut}, each with an arrow to its place in ${file.name}`);
  svg.replaceChildren(
    label(TOP.y - 7, `${index.name}: ${counted(slots.length, "entry", "entries")}${leftOut}`),
    draw("rect", { x: 0, y: TOP.y, width, height: TOP.height, class: "bar" }),
    draw("rect", { x: 0, y: BOTTOM.y, width, height: BOTTOM.height, class: "bar" }),
    label(BOTTOM.y + BOTTOM.height + 13, `${file.name}: ${counted(file.log.entries.length, "entry", "entries")}, ${grouped(file.size)} bytes`),
    ...bounds(file.log.entries, scale),
    ...chosenEntry(file.log.entries, chosen.entry, scale),
    ...rows.map((row) => arrow(targetOf(slots, row, file.log), { left, scale, isChosen: row === chosen.row, follow })),
  );
}

function label(y, text) {
  return draw("text", { x: 0, y, class: "label" }, text);
}

function bounds(entries, scale) {
  if (entries.length > MOST_BOUNDS) return [];
  return Array.from({ length: entries.length }, (_, index) => {
    const x = scale(entries.position(index));
    return draw("line", { x1: x, x2: x, y1: BOTTOM.y, y2: BOTTOM.y + BOTTOM.height, class: "bound" });
  });
}

function chosenEntry(entries, index, scale) {
  if (index < 0 || index >= entries.length) return [];
  const { position, size } = entries.entry(index);
  return [draw("rect", { x: scale(position), y: BOTTOM.y, width: Math.max(2, scale(size)), height: BOTTOM.height, class: "chosen" })];
}

function arrow(target, { left, scale, isChosen, follow }) {
  const [x, to] = [left(target.row), Math.max(0, scale(target.position))];
  const [from, end] = [TOP.y + TOP.height, BOTTOM.y];
  const middle = (from + end) / 2;
  const isLost = target.entry < 0;
  const line = `M${x.toFixed(1)} ${from - 8} V${from} C${x.toFixed(1)} ${middle} ${to.toFixed(1)} ${middle} ${to.toFixed(1)} ${end - 5}`;
  const head = `M${(to - 3).toFixed(1)} ${end - 6} L${to.toFixed(1)} ${end} L${(to + 3).toFixed(1)} ${end - 6}`;
  const group = draw("g", { class: `arrow${isChosen ? " chosen" : ""}${isLost ? " lost" : ""}`, "data-row": target.row });
  const words = isLost ? `${target.words}: no entry of the log starts there` : target.words;
  group.append(draw("title", {}, words), draw("path", { d: line, class: "wide" }), draw("path", { d: line }), draw("path", { d: head }));
  group.addEventListener("click", () => follow(target));
  return group;
}
