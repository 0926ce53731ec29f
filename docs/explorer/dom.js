/**
 * Making elements. Text from files only ever becomes text, never markup.
 */

/** The element with an id of the page. */
export const byId = (id) => document.getElementById(id);

/**
 * @param {string} tag
 * @param {string} className
 * @param {...(string | Node)} content
 */
export function make(tag, className = "", ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** A button that does something. */
export function button(text, act, className = "") {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", act);
  return element;
}

/** An element of a drawing. */
export function draw(tag, attributes, ...content) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

const GROUPED = /\B(?=(\d{3})+(?!\d))/g;

/** A number with commas between thousands. */
export const grouped = (value) => String(value).replace(GROUPED, ",");

/** "1 entry", "2 entries". */
export const counted = (count, one, many = `${one}s`) => `${grouped(count)} ${count === 1 ? one : many}`;
