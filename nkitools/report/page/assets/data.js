// The run: its tables, its tiles, and what follows from them. Places count from 0, positions are those of instructions.
import { shown } from "./words.js";

export const run = JSON.parse(document.getElementById("data").textContent);
const encoded = document.getElementById("tiles").textContent.trim();

export const NAN = 1;
export const INF = 2;
export const UNWRITTEN = 3;
const SIZES = { f4: 4, i4: 4, u4: 4, b2: 2, u1: 1, i1: 1 };
const decoded = new Map();

// A tile: `values` and the `states` of its cells, rows x columns of them; down x across are the elements it stands for.
export function tile(number) {
  if (decoded.has(number)) return decoded.get(number);
  const [place, kind, rows, columns, down, across] = run.tiles[number];
  const length = rows * columns * SIZES[kind];
  const text = atob(encoded.slice((place / 3) * 4, Math.ceil((place + length) / 3) * 4));
  const raw = new Uint8Array(length);
  for (let at = 0; at < length; at++) raw[at] = text.charCodeAt(at);
  const found = { rows, columns, down, across, exact: rows * columns === down * across, ...cells(raw, kind) };
  if (decoded.size > 400) decoded.delete(decoded.keys().next().value);
  decoded.set(number, found);
  return found;
}

function cells(raw, kind) {
  const { buffer } = raw;
  let values, bits, missing;
  if (kind === "b2") {
    const halves = new Uint16Array(buffer);
    bits = new Uint32Array(halves.length);
    for (let at = 0; at < halves.length; at++) bits[at] = halves[at] << 16;
    values = new Float32Array(bits.buffer);
    missing = 0x7fc10000;
  } else if (kind === "f4") {
    values = new Float32Array(buffer);
    bits = new Uint32Array(buffer);
    missing = 0x7fc00001;
  } else {
    const Kind = { i4: Int32Array, u4: Uint32Array, u1: Uint8Array, i1: Int8Array }[kind];
    return { values: new Kind(buffer), states: new Uint8Array(buffer.byteLength / SIZES[kind]) };
  }
  const states = new Uint8Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value !== value) states[at] = bits[at] === missing ? UNWRITTEN : NAN;
    else if (value === Infinity || value === -Infinity) states[at] = INF;
  }
  return { values, states };
}

export function numbers(number) {
  const [low, high, mean, nan, inf, unwritten, strange, largest] = run.numbers[number];
  return { low, high, mean, nan, inf, unwritten, strange, largest };
}

// The least and the most that a picture of the tile shows: of its cells, which may be means of many elements.
const limits = new Map();
export function limitsOf(number) {
  if (!limits.has(number)) {
    let low = Infinity, high = -Infinity;
    const { values, states, exact } = tile(number);
    if (exact) ({ low, high } = numbers(number));
    else {
      for (let at = 0; at < values.length; at++) {
        if (states[at]) continue;
        if (values[at] < low) low = values[at];
        if (values[at] > high) high = values[at];
      }
      if (low > high) low = high = null;
    }
    limits.set(number, { low, high });
  }
  return limits.get(number);
}

// --- writes and prints: what can be looked at ---------------------------------------------------------------------------

const FIELDS = ["position", "storage", "layout", "offset", "place", "loops", "program", "dtype", "tile", "scattered"];

function asWrite(row, index) {
  const write = { kind: "write", index };
  FIELDS.forEach((name, at) => (write[name] = row[at]));
  write.scattered = Boolean(write.scattered);
  write.places = [write.place, ...(run.callers[row[10]] ?? [])];
  return write;
}

export const writes = run.writes.map(asWrite);
export const prints = run.prints.map((print, index) => ({
  ...print, kind: "print", index, position: print.issued, places: [print.place],
}));

export const tensorOf = (write) => {
  const [name, memory, dtype, sizes] = run.storages[write.storage];
  return { name, memory, dtype, shape: sizes };
};

export const shapeOf = (item) => (item.kind === "print" ? item.shape : run.layouts[item.layout][0]);
export const dtypeOf = (item) => (item.kind === "print" ? item.dtype : run.dtypes[item.dtype]);

export function nameOf(item) {
  return item.kind === "print" ? item.prefix : tensorOf(item).name || "(unnamed)";
}

// --- instructions -------------------------------------------------------------------------------------------------------

export const instructions = run.instructions;
export const count = instructions.plan.length;
const firsts = new Uint32Array(count + 1);
for (let at = 0; at < count; at++) firsts[at + 1] = firsts[at] + run.plans[instructions.plan[at]][3].length;

export function planOf(position) {
  const [name, engine, cycles, written] = run.plans[instructions.plan[position]];
  return { name, engine, cycles, written };
}

export function operandsOf(position) {
  const { written } = planOf(position);
  return written.map((isWritten, number) => {
    const at = firsts[position] + number;
    const [storage, layout, offset] = instructions.operands.slice(3 * at, 3 * at + 3);
    return { storage, layout, offset, written: isWritten > 0, at };
  });
}

// What operands read: of each the instructions that wrote it, -1 for an argument, -2 for memory that was never written.
const edges = new Uint32Array(run.flow.counts.length + 1);
for (let at = 0; at < run.flow.counts.length; at++) edges[at + 1] = edges[at] + run.flow.counts[at];

export const GIVEN = -1;
export const NEVER_WRITTEN = -2;

export function sourcesOf({ at }) {
  return run.flow.sources.slice(edges[at], edges[at + 1]);
}

// What an instruction depends on besides: by an index, a register, or what another core or rank has sent.
export function othersOf(position) {
  return run.flow.others[position] ?? [];
}

let readers = null; // by instruction: those that read what it has written

export function consumersOf(position) {
  if (!readers) {
    readers = new Map();
    const add = (source, reader) => {
      if (source < 0) return;
      if (!readers.has(source)) readers.set(source, []);
      if (readers.get(source).at(-1) !== reader) readers.get(source).push(reader);
    };
    for (let reader = 0; reader < count; reader++) {
      for (let at = edges[firsts[reader]]; at < edges[firsts[reader + 1]]; at++) add(run.flow.sources[at], reader);
      for (const source of othersOf(reader)) add(source, reader);
    }
  }
  return readers.get(position) ?? [];
}

const writesAt = new Map();
for (const write of writes) {
  if (!writesAt.has(write.position)) writesAt.set(write.position, write);
}
export const writeAt = (position) => writesAt.get(position);

// --- words --------------------------------------------------------------------------------------------------------------

// `name[0:128, 512:1024]` where the view is made of slices, `tile (1, 2) of name, rows 128:256, columns 512:768` where
// they are whole tiles of the author's grid; else the view's shape and where it begins.
export function region({ storage, layout, offset }) {
  const [name, memory, , sizes] = run.storages[storage];
  const [viewed, strides, itemsize] = run.layouts[layout];
  const label = name || "(unnamed)";
  const own = [];
  let step = itemsize;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    own[axis] = step;
    step *= sizes[axis];
  }
  if (["SBUF", "PSUM"].includes(memory) && run.storages[storage][5] && strides.length) own[0] = strides[0];
  const starts = [];
  let rest = offset;
  for (let axis = 0; axis < own.length; axis++) {
    starts[axis] = Math.floor(rest / own[axis]);
    rest -= starts[axis] * own[axis];
  }
  const slices = starts.map((start) => [start, start + 1, 0]);
  let used = -1;
  for (let axis = 0; axis < viewed.length; axis++) {
    if (viewed[axis] === 1) continue;
    const of = own.findIndex((each, at) => at > used && strides[axis] % each === 0 && strides[axis] > 0
      && starts[at] + ((viewed[axis] - 1) * strides[axis]) / each < sizes[at]);
    if (of < 0 || rest) return `${label}, ${viewed.join("×")} from byte ${offset}`;
    used = of;
    const every = strides[axis] / own[of];
    slices[of] = [starts[of], starts[of] + (viewed[axis] - 1) * every + 1, every];
  }
  return inTiles(storage, label, slices) || `${label}[${slices.map(sliceText).join(", ")}]`;
}

const sliceText = ([start, stop, every]) => (every ? `${start}:${stop}${every > 1 ? `:${every}` : ""}` : `${start}`);

// The words of a grid for slices of a storage that are whole tiles and not all of them, "" for others.
function inTiles(storage, label, slices) {
  const [, , , sizes, , , tileShape, elements] = run.storages[storage];
  if (!tileShape.length) return "";
  const extents = elements.length ? elements : sizes, untiled = extents.length - tileShape.length;
  const tileOf = (axis) => (axis < untiled ? 1 : tileShape[axis - untiled]);
  if (elements.length && tileShape.length > 2) return "";
  const bounds = elements.length ? unfolded(slices, extents, tileOf) : slices;
  const numbers = bounds.map(([start, stop, every], axis) => {
    const size = tileOf(axis), [first, last] = [start / size, Math.ceil(stop / size)];
    if (every > 1 || start % size || (stop % size && stop !== extents[axis])) return "";
    return last - first === 1 ? `${first}` : `${first}:${last}`;
  });
  if (!bounds.length || numbers.includes("")) return "";
  if (bounds.every(([start, stop], axis) => start === 0 && stop === extents[axis])) return "";
  const named = tileShape.length === 2 ? ["columns", "rows"] : [];
  const parts = bounds.map(([start, stop], axis) => `${named[extents.length - 1 - axis] ?? `dimension ${axis}`} ${start}:${stop}`);
  return `${numbers.some((each) => each.includes(":")) ? "tiles" : "tile"} (${numbers.join(", ")}) of ${label}, ${parts.join(", ")}`;
}

// Slices of a storage on chip in which tiles of two dimensions lie side by side, as slices of the grid's elements.
function unfolded([[top, bottom], [left, right]], extents, tileOf) {
  const rows = extents.length - 2, columns = extents.length - 1;
  const at = [];
  let number = Math.floor(left / tileOf(columns));
  for (let axis = columns; axis >= 0; axis--) {
    const count = Math.ceil(extents[axis] / tileOf(axis));
    at[axis] = number % count;
    number = Math.floor(number / count);
  }
  const row = at[rows] * tileOf(rows) + top, column = at[columns] * tileOf(columns) + (left % tileOf(columns));
  if (column + right - left > extents[columns]) return [];
  const front = at.slice(0, rows).map((each) => [each, each + 1, 1]);
  return [...front, [row, row + bottom - top, 1], [column, column + right - left, 1]];
}

export function placeText(place) {
  const [file, line] = run.places[place];
  const found = run.files.find((each) => each.path === file);
  return line ? `${found?.name ?? file}:${line}` : "";
}

export function turnText(loops, program) {
  const [rank, index] = run.programs[program] ?? [null, []];
  const parts = run.loops[loops].map(([name, value]) => `${name}=${value}`);
  if (index.length && run.programs.length > 1) parts.unshift(`program ${index.join(", ")}`);
  if (rank !== null) parts.unshift(`rank ${rank}`);
  return parts.join(", ");
}

export function numbersText(number) {
  const { low, high, mean } = numbers(number);
  return low === null ? "no finite element" : `${shown(low)} … ${shown(high)}, mean ${shown(mean)}`;
}

// The outputs' wrong tiles: by the position of the instruction that wrote them how many elements are wrong.
export const wrong = new Map();
for (const output of run.outputs) {
  for (const [position, elements] of output.comparison?.tiles ?? []) {
    wrong.set(position, (wrong.get(position) ?? 0) + elements);
  }
}
