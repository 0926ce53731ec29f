// Compiles every declaration of a directory: node kaitai_compile.cjs KSY_DIRECTORY TARGET_DIRECTORY
// The parsers go to TARGET_DIRECTORY/javascript and TARGET_DIRECTORY/python.
"use strict";

const fs = require("fs");
const path = require("path");
const compiler = require("kaitai-struct-compiler");
const yaml = require("js-yaml");

const [source, target] = process.argv.slice(2);
const read = (name) => yaml.load(fs.readFileSync(path.join(source, `${name}.ksy`), "utf8"));
const importer = { importYaml: async (name) => read(name) };

async function main() {
  const names = fs.readdirSync(source).filter((name) => name.endsWith(".ksy"));
  for (const language of ["javascript", "python"]) {
    const directory = path.join(target, language);
    fs.mkdirSync(directory, { recursive: true });
    for (const name of names) {
      const made = await compiler.compile(language, read(name.slice(0, -4)), importer, false);
      for (const [file, text] of Object.entries(made)) fs.writeFileSync(path.join(directory, file), text);
    }
  }
}

main().catch((error) => {
  console.error(error.message || error);
  process.exitCode = 1;
});
