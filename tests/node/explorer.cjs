// The explorer in a browser: node explorer.cjs BROWSER ORIGIN SCENARIO, with the scenario's question as JSON on standard
// input and its answer as JSON on standard output.
"use strict";

const fs = require("fs");
const { start, serious } = require("./browser.cjs");

const [executable, origin, scenario] = process.argv.slice(2);
const question = JSON.parse(fs.readFileSync(0, "utf8") || "null");
const SAMPLES = ["segment", "transactions", "gzip", "messages", "damaged", "checkpoint"];

/** The page with nothing open. */
async function visit(open, options) {
  const page = await open(options);
  await page.goto(`${origin}/explorer/index.html`);
  return page;
}

/** Wait until the files are read, and everything is drawn. */
async function settled(page, rest = 150) {
  await page.waitForFunction(() => globalThis.explorer && globalThis.explorer.file && !document.getElementById("state").textContent.startsWith("Reading"), null, { polling: 20, timeout: 60_000 });
  if (rest) await page.waitForTimeout(rest);
}

async function openSample(page, id) {
  await page.selectOption("#sample", id);
  await page.waitForFunction((wanted) => document.getElementById("sample").value === wanted, id);
  await page.waitForTimeout(300);
  await settled(page);
}

async function openFiles(page, paths, rest) {
  await page.evaluate(() => {
    globalThis.explorer.clear();
    document.getElementById("state").textContent = "Reading";
  });
  await page.setInputFiles("#files", paths);
  await settled(page, rest);
}

/** Every leaf field of every row of every open file, as text. */
function everyField(page) {
  return page.evaluate(async () => {
    const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const text = (value) => (value === null ? null : value instanceof Uint8Array ? hex(value) : String(value));
    const found = {};
    for (const file of globalThis.explorer.files) {
      const rows = [];
      const whole = file.kind !== "log";
      for (let row = 0; row < (whole ? Math.min(1, file.length) : file.length); row++) {
        const blocks = await file.blocks(row);
        rows.push(blocks.map((block) => block.fields.filter((one) => !one.group).map((one) => [one.name, block.position + one.start, block.position + one.end, text(one.value)])));
      }
      found[file.name] = { kind: file.kind, size: file.size, length: file.length, rows };
    }
    return found;
  });
}

async function everySample(page) {
  const found = {};
  for (const id of SAMPLES) {
    await openSample(page, id);
    found[id] = await everyField(page);
  }
  return found;
}

function everyFinding(page) {
  return page.evaluate(() => {
    const all = globalThis.explorer.files.map((file) => [file.name, file.findings.map((one) => [one.requirement, one.severity, one.position])]);
    return Object.fromEntries(all);
  });
}

const SCENARIOS = {
  /** Every field of the bundled samples. */
  async samples({ open }) {
    return everySample(await visit(open));
  },

  /** What is found in groups of files that are opened together. */
  async findings({ open }) {
    const page = await visit(open);
    const found = {};
    for (const [name, paths] of Object.entries(question)) {
      await openFiles(page, paths, 0);
      found[name] = await everyFinding(page);
    }
    return found;
  },

  /** Where lookups lead. */
  async lookups({ open }) {
    const page = await visit(open);
    const found = {};
    for (const [name, { paths, offsets, timestamps }] of Object.entries(question)) {
      await openFiles(page, paths);
      const asked = async (by, values) => {
        const answers = [];
        await page.selectOption("#by", by);
        for (const value of values) {
          await page.fill("#wanted", String(value));
          await page.click("#lookup button");
          answers.push(await page.getAttribute("#steps", "data-position"));
          const entry = Number(await page.getAttribute("#steps", "data-entry"));
          if (entry >= 0) await page.waitForFunction((row) => globalThis.explorer.file.kind === "log" && globalThis.explorer.row === row, entry);
        }
        return answers;
      };
      found[name] = { offsets: await asked("offset", offsets), timestamps: await asked("timestamp", timestamps) };
    }
    return found;
  },

  /** What is said of a file. */
  async foreign({ open }) {
    const page = await visit(open);
    await openFiles(page, [question]);
    return page.evaluate(() => ({ state: document.getElementById("state").textContent, findings: globalThis.explorer.file.findings.length }));
  },

  /** A directory of several partitions: what is offered, and what one of them has. */
  async directory({ open }) {
    const page = await visit(open);
    await page.setInputFiles("#directory", question);
    await page.waitForFunction(() => globalThis.explorer.directories.size);
    await settled(page);
    const offered = await page.$$eval("#partition option", (options) => options.map((one) => one.textContent));
    const names = () => page.evaluate(() => globalThis.explorer.files.map((one) => one.name));
    const first = await names();
    await page.selectOption("#partition", { label: offered.at(-1) });
    await page.waitForTimeout(300);
    await settled(page);
    return { offered, first, last: await names(), axe: await serious(page) };
  },

  /** Links to places: made in one page, followed in another. */
  async links({ open }) {
    const seen = () => globalThis.explorer.view.block.fields[globalThis.explorer.view.kept];
    const page = await visit(open);
    const answer = {};
    for (const [name, files] of Object.entries(question)) {
      if (files.length) await openFiles(page, files);
      else await openSample(page, name);
      await page.evaluate(async () => {
        const { explorer } = globalThis;
        await explorer.select(Math.min(1, explorer.file.length - 1));
        explorer.keepField("crc");
        await explorer.copyLink();
      });
      const link = page.url();
      const before = await page.evaluate(`(${seen})().start + globalThis.explorer.view.block.position`);
      const other = await open();
      await other.goto(link);
      if (!link.includes("data=") && !link.includes("sample=")) await openFiles(other, files);
      await other.waitForFunction(() => globalThis.explorer && globalThis.explorer.view.kept >= 0);
      const after = await other.evaluate(`({ name: (${seen})().name, at: (${seen})().start + globalThis.explorer.view.block.position, file: globalThis.explorer.file.name })`);
      answer[name] = { ...after, same: after.at === before, holds: link.includes("data=") };
    }
    const bad = await open();
    for (const hash of ["#name=x&data=@@", "#name=x&data=AAAA", "#name=x.log&at=99999999999999999999", "#sample=none&name=y"]) {
      await bad.goto(`${origin}/explorer/index.html${hash}`);
      await bad.waitForTimeout(200);
    }
    answer.opened = await bad.evaluate(() => globalThis.explorer.files.length);
    return answer;
  },

  /** The page of `seglog explorer`, at the address in the question. */
  async given({ open }) {
    const page = await open();
    await page.goto(question);
    await settled(page);
    await page.locator("#findings a, #detail a").first().waitFor({ timeout: 2000 }).catch(() => {});
    return { files: await everyField(page) };
  },

  /** The samples of the page of `seglog explorer`, which has no files of its own. */
  async servedSamples({ open }) {
    const page = await open();
    await page.goto(question);
    return everySample(page);
  },

  /** Pointing, following, findings; and the same on a narrow and on a dark page. */
  async look({ open }) {
    const page = await visit(open);
    const answer = { axe: { welcome: await serious(page) } };
    await openSample(page, "segment");
    await page.hover("#bytes i[data-at='16']");
    answer.fieldOfByte = await page.textContent("#fields .on b");
    await page.hover("#fields [data-field='5'] b");
    answer.bytesOfField = await page.$$eval("#bytes i.on", (cells) => cells.map((cell) => cell.textContent).join(""));
    answer.detail = await page.textContent("#detail");
    answer.rule = await page.getAttribute("#detail a", "href");
    answer.arrows = await page.locator(".arrow").count();
    answer.lost = await page.locator(".arrow.lost").count();
    await page.getByRole("button", { name: /\.index/ }).first().click();
    await page.waitForTimeout(200);
    await page.focus("#rows");
    await page.keyboard.press("ArrowDown");
    await page.waitForTimeout(200);
    answer.chosenArrow = await page.getAttribute(".arrow.chosen", "data-row");
    await page.click(".follow");
    await page.waitForTimeout(200);
    answer.followed = await page.textContent("#rows [aria-selected=true]");
    answer.axe.segment = await serious(page);
    if (question.screenshot) await page.screenshot({ path: question.screenshot });
    await openSample(page, "damaged");
    answer.damaged = await page.$$eval("#findings li", (items) => items.map((item) => item.textContent));
    answer.damagedLinks = await page.$$eval("#findings a", (links) => links.map((one) => one.getAttribute("href")));
    await page.click("#findings .go");
    await page.waitForTimeout(200);
    answer.keptField = await page.textContent("#fields .on b");
    answer.axe.damaged = await serious(page);
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.click("#theme");
    answer.themeChanges = light !== (await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    answer.axe.toggled = await serious(page);
    const dark = await visit(open, { colorScheme: "dark" });
    await openSample(dark, "transactions");
    answer.axe.dark = await serious(dark);
    answer.darkBackground = await dark.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const narrow = await visit(open, { viewport: { width: 390, height: 844 } });
    await openSample(narrow, "messages");
    answer.narrow = await narrow.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    answer.narrowBytes = await narrow.evaluate(() => globalThis.explorer.view.perRow);
    answer.axe.narrow = await serious(narrow);
    return answer;
  },

  /** A large file: the page goes on drawing while it is read, and shows its last entry. */
  async large({ open }) {
    const page = await visit(open);
    await page.evaluate(() => {
      globalThis.longest = 0;
      let before = performance.now();
      const frame = (now) => {
        globalThis.longest = Math.max(globalThis.longest, now - before);
        before = now;
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    });
    const began = Date.now();
    await openFiles(page, question.paths);
    const seconds = (Date.now() - began) / 1000;
    const longest = await page.evaluate(() => globalThis.longest);
    await page.focus("#rows");
    await page.keyboard.press("End");
    await page.waitForTimeout(300);
    const last = await page.textContent("#rows [aria-selected=true]");
    const drawn = await page.locator("#rows .row").count();
    const state = await page.textContent("#state");
    const windowSize = await page.evaluate(() => globalThis.explorer.files.find((one) => one.kind === "log").source.window.length);
    return { seconds, longest, last, drawn, state, windowSize };
  },

  /** From a disk, without any server. */
  async disk({ open }) {
    const page = await open();
    await page.goto(question.url);
    await openSample(page, "segment");
    return { state: await page.textContent("#state") };
  },
};

async function main() {
  const { browser, open, noted, elsewhere } = await start(executable, scenario === "disk" ? "file://" : origin);
  try {
    const answer = await SCENARIOS[scenario]({ open });
    process.stdout.write(JSON.stringify({ answer, errors: noted.errors, elsewhere: elsewhere(), requests: noted.requests }));
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.error(error.stack || error);
  process.exitCode = 1;
});
