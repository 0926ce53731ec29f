// Opens files with the explorer's own modules, without a browser: node explorer_open.cjs MODULE_DIRECTORY
// Standard input: a JSON list of {name, hex}. Output: a JSON list, for each what went wrong, or an empty text.
"use strict";

const fs = require("fs");
const path = require("path");
const { pathToFileURL } = require("url");

const directory = path.resolve(process.argv[2]);
const MOST_ROWS = 40;

async function main() {
  const { openFile } = await import(pathToFileURL(path.join(directory, "files.js")));
  const answers = [];
  for (const { name, hex } of JSON.parse(fs.readFileSync(0, "utf8"))) {
    try {
      const file = await openFile(name, new Blob([Buffer.from(hex, "hex")]));
      file.relate([file]);
      for (let row = 0; row < Math.min(file.length, MOST_ROWS); row++) {
        file.columns(row);
        file.isWrong(row);
        for (const block of await file.blocks(row)) {
          const outside = block.fields.filter((one) => one.start < 0 || one.end < one.start || one.end > block.bytes.length);
          if (outside.length) throw new Error(`${outside[0].name} lies outside its block`);
        }
      }
      for (const one of file.findings) file.rowAt(one.position);
      answers.push(file.summary === undefined ? "no summary" : "");
    } catch (error) {
      answers.push(String(error.stack || error));
    }
  }
  process.stdout.write(JSON.stringify(answers));
}

main();
