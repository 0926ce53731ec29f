// Regions that scroll sideways can be reached by the keyboard, and say so.
"use strict";

function reachable() {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code, .md-typeset pre")) {
    if (one.scrollWidth > one.clientWidth) {
      one.tabIndex = 0;
      one.setAttribute("role", "region");
      one.setAttribute("aria-label", one.matches("pre, code") ? "Code, wider than the page" : "Table, wider than the page");
    }
  }
}

addEventListener("load", () => setTimeout(reachable, 100));
addEventListener("resize", reachable);
