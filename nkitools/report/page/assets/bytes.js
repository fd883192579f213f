// The binary part of the page: columns of numbers, unpacked once, a piece at a time so that the page stays alive.

export const head = JSON.parse(document.getElementById("data").textContent);
const element = document.getElementById("bytes");
const text = element.textContent.trim();

const PIECE = 1 << 20; // characters that are decoded at a time
const SIZES = { i4: 4, f4: 4, f8: 8, u1: 1 };

const pause = () => new Promise((resolve) => setTimeout(resolve));

async function decoded(place, length) {
  const raw = new Uint8Array(length);
  const last = Math.ceil((place + length) / 3) * 4;
  let at = 0;
  for (let from = (place / 3) * 4; from < last; from += PIECE) {
    const piece = atob(text.slice(from, Math.min(last, from + PIECE)));
    for (let each = 0; each < piece.length && at < length; each++) raw[at++] = piece.charCodeAt(each);
    if (last - from > PIECE) await pause();
  }
  return raw;
}

async function inflated(raw) {
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Elements of so many bytes, whose first bytes stand before their second ones.
export function unplaned(raw, size) {
  if (size === 1) return raw;
  const count = raw.length / size, joined = new Uint8Array(raw.length);
  for (let plane = 0; plane < size; plane++) {
    const from = plane * count;
    for (let at = 0, to = plane; at < count; at++, to += size) joined[to] = raw[from + at];
  }
  return joined;
}

async function unpacked([form, count, place, length]) {
  const raw = unplaned(await inflated(await decoded(place, length)), SIZES[form]);
  if (form === "u1") return raw;
  if (form === "f4") return new Float32Array(raw.buffer, 0, count);
  if (form === "f8") return new Float64Array(raw.buffer, 0, count);
  const values = new Int32Array(raw.buffer, 0, count);
  for (let at = 1; at < count; at++) values[at] += values[at - 1];
  return values;
}

async function all() {
  const found = {};
  for (const [name, entry] of Object.entries(head.columns)) found[name] = await unpacked(entry);
  element.remove();
  return found;
}

export const columns = await all();
