/**
 * Directories: their files of Kafka's, by partition.
 */

const FILE_OF_KAFKA = /^(?:\d{20}\.(?:log|index|timeindex|txnindex|snapshot)(?:\.(?:deleted|cleaned|swap))?|[\w-]+-checkpoint|partition\.metadata)$/;
const MOST_FILES = 50_000;

/**
 * The files of each directory that has any of Kafka's, in order of names.
 *
 * @param {{path: string, file: File}[]} chosen with the path below what was opened
 * @returns {Map<string, File[]>}
 */
export function byDirectory(chosen) {
  const found = new Map();
  for (const { path, file } of [...chosen].sort((one, other) => (one.path < other.path ? -1 : 1))) {
    if (!FILE_OF_KAFKA.test(file.name)) continue;
    const directory = path.slice(0, Math.max(0, path.length - file.name.length - 1));
    if (!found.has(directory)) found.set(directory, []);
    found.get(directory).push(file);
  }
  return found;
}

/** Files that were chosen as a directory, with their paths. @param {File[]} files */
export const withPaths = (files) => files.map((file) => ({ path: file.webkitRelativePath || file.name, file }));

/**
 * The files of what was dropped, directories opened.
 *
 * @param {DataTransfer} dropped
 * @returns {Promise<{path: string, file: File}[]>}
 */
export async function dropped(dropped) {
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry());
  if (!entries.some((entry) => entry && entry.isDirectory)) return [];
  const found = [];
  const open = entries.filter(Boolean);
  while (open.length && found.length < MOST_FILES) {
    const entry = open.pop();
    if (entry.isFile) found.push({ path: entry.fullPath.slice(1), file: await new Promise((resolve, reject) => entry.file(resolve, reject)) });
    else open.push(...(await everyEntry(entry.createReader())));
  }
  return found;
}

async function everyEntry(reader) {
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
}
