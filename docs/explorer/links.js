/**
 * Addresses that lead to a file, a position and a field. Small files are in the address itself, others are named in it.
 */

const LARGEST_IN_ADDRESS = 4096; // bytes before compression

/** What an address says after its `#`. @returns {Promise<{sample: string, name: string, at: number, field: string, data: Uint8Array | null}>} */
export async function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const at = /^\d{1,15}$/.test(given.get("at") || "") ? Number(given.get("at")) : -1;
  return { sample: given.get("sample") || "", name: given.get("name") || "", at, field: given.get("field") || "", data: await unpacked(given.get("data")) };
}

/**
 * The address of a place in a file.
 *
 * @param {{sample: string, name: string, at: number, field: string}} place
 * @param {Uint8Array | null} bytes of the whole file, if they are to be in the address
 */
export async function address(place, bytes) {
  const parts = new URLSearchParams();
  if (place.sample) parts.set("sample", place.sample);
  parts.set("name", place.name);
  if (place.at >= 0) parts.set("at", place.at);
  if (place.field) parts.set("field", place.field);
  if (bytes && !place.sample) parts.set("data", await packed(bytes));
  return `#${parts}`;
}

/** Whether a file is small enough for an address. */
export const fits = (size) => size > 0 && size <= LARGEST_IN_ADDRESS;

async function packed(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const data = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(String.fromCharCode(...data)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** The bytes of an address; null where there are none, or none that can be. */
async function unpacked(text) {
  if (!text || !/^[\w-]+$/.test(text)) return null;
  try {
    const data = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));
    const reader = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    const parts = [];
    let size = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.length;
      if (size > LARGEST_IN_ADDRESS) return null; // an address that was made to fill the memory
      parts.push(next.value);
    }
    return new Uint8Array(await new Blob(parts).arrayBuffer());
  } catch {
    return null;
  }
}
