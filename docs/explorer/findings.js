/**
 * What is wrong, and by which rule.
 */

import { REQUIREMENTS } from "./tables.js";

/**
 * @typedef {object} Finding
 * @property {string} requirement id
 * @property {"error" | "warning" | "note"} severity
 * @property {number} position byte of the file
 * @property {string} field
 * @property {string} expected
 * @property {string} found
 * @property {number} row of the list that it is about; -1 none
 */

const SEVERITIES = { MUST: "error", SHOULD: "warning", MAY: "note" };

/** @returns {Finding} */
export function finding(requirement, position, name, expected, found, row = -1) {
  const severity = SEVERITIES[REQUIREMENTS[requirement].level];
  return { requirement, severity, position, field: name, expected: String(expected), found: String(found), row };
}

/** The page of the site that states a requirement. */
export function requirementLink(id) {
  const rule = REQUIREMENTS[id];
  return rule ? `../spec/${rule.chapter}/index.html#${id.toLowerCase()}` : "";
}
