// Columns of short words are narrow on a phone. Regions that scroll sideways can be reached by the keyboard, and say so.
// Options are found with their dashes, which the search of the theme takes for "pages without this word".
"use strict";

const SHORT = 8; // characters of every cell of a narrow column

function narrow() {
  for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
    const rows = [...table.rows];
    for (let column = 0; column < rows[0].cells.length; column++) {
      const cells = rows.map((row) => row.cells[column]);
      if (cells.every((cell) => cell && cell.textContent.trim().length <= SHORT)) {
        for (const cell of cells) cell.classList.add("narrow");
      }
    }
  }
}

function reachable() {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset pre")) {
    if (one.scrollWidth > one.clientWidth) {
      one.tabIndex = 0;
      one.setAttribute("role", "region");
      one.setAttribute("aria-label", one.matches("pre, code") ? "Code, wider than the page" : "Table, wider than the page");
    }
  }
}

function withoutDashes(event) {
  const field = event.target;
  if (field.matches?.(".md-search__input")) {
    field.value = field.value.replace(/(^|\s)--(?=\w)/g, "$1"); // the theme reads it when the key is released
  }
}

narrow();
addEventListener("input", withoutDashes, true);
addEventListener("load", () => setTimeout(reachable, 100));
addEventListener("resize", reachable);
