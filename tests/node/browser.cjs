// What the browser tests share: a page of headless Chromium that notes every error and every request to elsewhere.
"use strict";

const { chromium } = require("playwright-core");

/** Start a browser; `open` answers pages. */
async function start(executablePath, origin) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  const noted = { errors: [], requests: [] };
  async function open(options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("console", (message) => message.type() === "error" && noted.errors.push(message.text()));
    page.on("pageerror", (error) => noted.errors.push(String(error)));
    page.on("request", (request) => noted.requests.push(request.url()));
    return page;
  }
  const elsewhere = () => noted.requests.filter((url) => !url.startsWith(origin) && !url.startsWith("data:"));
  return { browser, open, noted, elsewhere };
}

/** What axe has to say that is serious. */
async function serious(page) {
  await page.evaluate(require("fs").readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.any.map((any) => any.message)}`).join("; ")}`);
}

module.exports = { start, serious };
