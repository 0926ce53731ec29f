// Decompresses with the explorer's own modules, without a browser: node explorer_codecs.cjs MODULE_DIRECTORY
// Standard input: a JSON list of {codec, hex}. Output: a JSON list of SHA-256 digests, or of the rules that were broken.
"use strict";

const fs = require("fs");
const path = require("path");
const { createHash } = require("crypto");
const { pathToFileURL } = require("url");

const directory = path.resolve(process.argv[2]);
const LIMIT = 1 << 20;

async function main() {
  const { decompressed } = await import(pathToFileURL(path.join(directory, "codecs.js")));
  const { CodecProblem } = await import(pathToFileURL(path.join(directory, "output.js")));
  const answers = [];
  for (const { codec, hex } of JSON.parse(fs.readFileSync(0, "utf8"))) {
    try {
      const content = await decompressed(codec, Buffer.from(hex, "hex"), LIMIT);
      answers.push(createHash("sha256").update(content).digest("hex"));
    } catch (error) {
      answers.push(error instanceof CodecProblem ? error.requirement : String(error.stack || error));
    }
  }
  process.stdout.write(JSON.stringify(answers));
}

main();
