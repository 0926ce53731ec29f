// What the search of the site finds: node search.cjs BROWSER ORIGIN, with a JSON list of words on standard input.
"use strict";

const { start } = require("./browser.cjs");

const [executable, origin] = process.argv.slice(2);

/** The addresses of the results, best first, once they have stopped changing. */
async function results(page, words) {
  await page.$$eval(".md-search-result__item", (items) => items.forEach((item) => item.remove()));
  await page.fill(".md-search__input", words);
  for (let tries = 0; tries < 120 && !(await page.$(".md-search-result__item a")); tries++) {
    await page.press(".md-search__input", "End"); // the theme listens to keys, and drops those before its index is ready
    await page.waitForTimeout(250);
  }
  return page.$$eval(".md-search-result__item", (items) =>
    items.slice(0, 3).map((item) => {
      const links = [...item.querySelectorAll("a")].map((one) => new URL(one.href));
      return [links[0].pathname, ...links.slice(1, 3).map((one) => one.hash)];
    }),
  );
}

async function main() {
  const words = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const { browser, open, noted, elsewhere } = await start(executable, origin);
  try {
    const page = await open();
    await page.goto(`${origin}/index.html`);
    await page.click(".md-search__input");
    const found = {};
    for (const word of words) found[word] = await results(page, word).catch((error) => [[String(error).slice(0, 80)]]);
    process.stdout.write(JSON.stringify({ found, errors: noted.errors, elsewhere: elsewhere() }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.stack || error);
  process.exitCode = 1;
});
