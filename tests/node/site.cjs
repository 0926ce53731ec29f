// The site in a browser: node site.cjs BROWSER ORIGIN. What was seen goes to standard output as JSON.
"use strict";

const { start, serious } = require("./browser.cjs");

const [executable, origin] = process.argv.slice(2);

const PAGES = [
  "index.html",
  "tutorial/ten-minutes/index.html",
  "tutorial/a-segment-by-hand/index.html",
  "how-to/query-with-duckdb-and-polars/index.html",
  "how-to/add-a-fixture/index.html",
  "how-to/explore-in-the-browser/index.html",
  "explanation/how-lookup-works/index.html",
  "explanation/why-segments/index.html",
  "explanation/scale/index.html",
  "explanation/compared/index.html",
  "conformance/index.html",
  "spec/40-offset-index/index.html",
  "reference/record-batch/index.html",
  "reference/command-line/index.html",
  "reference/machine-readable/index.html",
  "zh/index.html",
];

/** What the search says to some words. */
async function search(page, words) {
  await page.goto(`${origin}/index.html`);
  await page.click(".md-search__input");
  await page.keyboard.type(words);
  await page.waitForSelector(".md-search-result__item a", { timeout: 120_000 });
  return page.$$eval(".md-search-result__item a", (links) => links.map((one) => new URL(one.href).pathname));
}

const scheme = (page) => page.evaluate(() => document.body.dataset.mdColorScheme);
const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);

async function look(open) {
  const seen = { axe: {}, links: {} };
  const page = await open({ colorScheme: "light" });
  seen.found = await search(page, "producer snapshot");
  await page.goto(`${origin}/index.html`);
  seen.title = await page.title();
  await page.getByRole("link", { name: "reference", exact: true }).first().click();
  await page.waitForURL("**/reference/**");
  await page.getByRole("link", { name: "Offset index", exact: true }).first().click();
  await page.waitForURL("**/offset-index/**");
  seen.navigated = await page.textContent("h1");
  await page.goto(`${origin}/spec/40-offset-index/index.html#seg-idx-004`);
  await page.locator("#seg-idx-004").getByRole("link", { name: "code and tests" }).click();
  await page.waitForURL("**/reference/requirements/**");
  seen.requirement = new URL(page.url()).hash;
  for (const path of PAGES) {
    await page.goto(`${origin}/${path}`);
    seen.axe[path] = await serious(page);
    seen.links[path] = await page.$$eval(".md-nav--primary .md-nav__link[href]", (links) => links.filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true })).length);
  }
  const dark = await open({ colorScheme: "dark" });
  const phone = await open({ viewport: { width: 390, height: 844 } });
  for (const path of PAGES.filter((_, number) => number % 3 === 0)) {
    for (const [name, one] of [["dark", dark], ["phone", phone]]) {
      await one.goto(`${origin}/${path}`);
      await one.waitForTimeout(300); // scripts of the page mark what scrolls
      seen.axe[`${name}: ${path}`] = await serious(one);
    }
  }
  await page.goto(`${origin}/how-to/explore-in-the-browser/index.html`);
  await page.locator("a[href$='explorer/']").first().click();
  await page.waitForSelector("#samples button");
  seen.explorer = new URL(page.url()).pathname;
  await page.goto(`${origin}/index.html`);
  const light = [await scheme(page), await background(page)];
  await page.click("label[for=__palette_1]");
  await page.waitForTimeout(300);
  seen.schemes = [light[0], await scheme(page)];
  seen.backgroundChanges = light[1] !== (await background(page));
  seen.axe.dark = await serious(page);
  const narrow = await open({ viewport: { width: 390, height: 844 } });
  await narrow.goto(`${origin}/reference/record-batch/index.html`);
  seen.narrow = await narrow.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  await narrow.click("label.md-header__button[for=__drawer]");
  await narrow.waitForTimeout(500);
  seen.drawer = await narrow.locator(".md-sidebar--primary").first().isVisible();
  return seen;
}

async function main() {
  const { browser, open, noted, elsewhere } = await start(executable, origin);
  try {
    const seen = await look(open);
    process.stdout.write(JSON.stringify({ ...seen, errors: noted.errors, elsewhere: elsewhere() }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.stack || error);
  process.exitCode = 1;
});
