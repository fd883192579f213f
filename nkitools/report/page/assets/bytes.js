// The binary part of the page: columns of numbers, unpacked once, a piece at a time so that the page stays alive.

export const head = JSON.parse(document.getElementById("data").textContent);
const element = document.getElementById("bytes");
const text = element.textContent.trim();

const PIECE = 1 << 20; // characters that are decoded at a time
const LONG = 1 << 20; // elements that are worked on without a pause
const SIZES = { i1: 1, i2: 2, i4: 4, f4: 4, f8: 8, u1: 1 };

export const pause = () => new Promise((resolve) => setTimeout(resolve));

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
  const planes = await inflated(await decoded(place, length));
  if (count > LONG) await pause();
  if (form[0] === "i") return summed(planes, count, SIZES[form]);
  const raw = unplaned(planes, SIZES[form]);
  if (form === "u1") return raw;
  if (form === "f4") return new Float32Array(raw.buffer, 0, count);
  return new Float64Array(raw.buffer, 0, count);
}

// Integers, of which the differences of neighbours are stored.
async function summed(planes, count, size) {
  const values = new Int32Array(count);
  for (let from = 0, value = 0; from < count; from += LONG) {
    if (from) await pause();
    value = sum(values, planes, size, value, from, Math.min(count, from + LONG));
  }
  return values;
}

function sum(values, planes, size, before, from, to) {
  const count = values.length, high = (size - 1) * count;
  let value = before;
  for (let at = from; at < to; at++) {
    let step = (planes[high + at] << 24) >> 24; // the last byte has the sign
    for (let place = high - count + at; place >= 0; place -= count) step = (step << 8) | planes[place];
    value = (value + step) | 0;
    values[at] = value;
  }
  return value;
}

async function all() {
  const found = {};
  for (const [name, entry] of Object.entries(head.columns)) found[name] = await unpacked(entry);
  element.remove();
  return found;
}

export const columns = await all();
