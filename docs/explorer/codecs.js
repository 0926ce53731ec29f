/**
 * What the codecs of Kafka make of compressed bytes: gzip by the browser, the others by modules beside this one.
 */

import { lz4Content } from "./lz4.js";
import { CodecProblem, Output } from "./output.js";
import { snappyContent } from "./snappy.js";
import { zstdContent } from "./zstd.js";

const CONTENTS = { gzip: gunzip, snappy: snappyContent, lz4: lz4Content, zstd: zstdContent };

/**
 * @param {string} codec name of the codec
 * @param {Uint8Array} bytes
 * @param {number} limit bytes that may come out at most
 * @returns {Promise<Uint8Array>}
 * @throws {CodecProblem} the bytes are damaged, or too many come out
 */
export async function decompressed(codec, bytes, limit) {
  if (!(codec in CONTENTS)) throw new CodecProblem("an undefined codec", "SEG-COD-001");
  return CONTENTS[codec](bytes, limit);
}

async function gunzip(bytes, limit) {
  const output = new Output(limit, "SEG-COD-002");
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return output.whole();
      output.append(value);
    }
  } catch (error) {
    if (error instanceof CodecProblem) throw error;
    throw new CodecProblem(error.message || String(error), "SEG-COD-002");
  }
}
