// The run: its tables, its tiles, and what follows from them. Places count from 0, positions are those of instructions.
import { columns, head, pause, unplaned } from "./bytes.js";
import { bytes, grouped, shown } from "./words.js";

export const run = head;

// How often findings came: each stands for all its turns.
export const times = (findings) => findings.reduce((sum, each) => sum + each.count, 0);

export const NAN = 1;
export const INF = 2;
export const UNWRITTEN = 3;

// What the cells of a tile are.
export const EXACT = 0;
export const ROUNDED = 1;
export const BLOCKS = 2;
export const LEFT_OUT = 3;

const FORMS = ["none", "f4", "b2", "i4", "u4", "u1", "i1", "f8", "m2"];
const SIZES = { none: 0, f4: 4, i4: 4, u4: 4, b2: 2, u1: 1, i1: 1, f8: 8, m2: 4 };
const KINDS = { i4: Int32Array, u4: Uint32Array, u1: Uint8Array, i1: Int8Array };
const KEPT = 1 << 27; // bytes of unpacked tiles that are kept
const decoded = new Map();
let kept = 0;

// A tile: `values` and the `states` of its cells, rows x columns of them; down x across are the elements it stands for.
// Where a cell is a block of elements, `lows` and `highs` hold it, and its value is the one farther from the mean.
export function tile(number) {
  if (decoded.has(number)) return decoded.get(number);
  const [place, form, quality, rows, across] = ["place", "form", "quality", "rows", "columns"].map((name) => columns[`tile.${name}`][number]);
  const size = SIZES[FORMS[form]], raw = columns.tiles.subarray(place, place + rows * across * size);
  const found = {
    rows, columns: across, down: columns["tile.down"][number], across: columns["tile.across"][number], quality,
    exact: quality === EXACT || quality === ROUNDED, ...cells(raw, FORMS[form], number),
  };
  kept += raw.length * 3;
  while (kept > KEPT && decoded.size > 8) {
    const [oldest, gone] = decoded.entries().next().value;
    decoded.delete(oldest);
    kept -= gone.values.byteLength * 3;
  }
  decoded.set(number, found);
  return found;
}

export const isLeftOut = (number) => columns["tile.quality"][number] === LEFT_OUT;

// The cell of a tile that holds an element: cell i begins at element floor(i * down / rows).
export function cellAt({ rows, columns, down, across }, row, column) {
  const of = (element, cells, elements) => Math.min(cells - 1, Math.max(0, Math.floor(((element + 1) * cells - 1) / Math.max(1, elements))));
  return [of(row, rows, down), of(column, columns, across)];
}

// What the numbers of a tile are, in a sentence.
export function qualityText({ quality, rows, columns: across, down, across: wide }) {
  if (quality === EXACT) return "Every element as it is.";
  if (quality === ROUNDED) return "Every element, rounded to float32.";
  if (quality === LEFT_OUT) return leftOutText();
  const each = `${shown((down * wide) / (rows * across), 3)} elements`;
  return `Blocks of about ${each}: the least and the largest of each, rounded outwards to three digits; a block with a NaN counts them. ${moreText()}`;
}

const moreText = () => `A page has ${bytes(run.budget)} for values (option page_limit).`;
export const leftOutText = () => `No picture: ${grouped(run.left_out)} values of this run have their numbers only. ${moreText()}`;

function halves(raw) {
  const plain = new Uint16Array(unplaned(raw, 2).slice().buffer);
  const bits = new Uint32Array(plain.length);
  for (let at = 0; at < plain.length; at++) bits[at] = plain[at] << 16;
  return { plain, bits, values: new Float32Array(bits.buffer) };
}

function cells(raw, form, number) {
  if (form === "none") return { values: new Float32Array(0), states: new Uint8Array(0) };
  if (form === "m2") return blocks(halves(raw), number);
  if (form in KINDS) {
    const values = new KINDS[form](unplaned(raw, SIZES[form]).slice().buffer);
    return { values, states: new Uint8Array(values.length) };
  }
  if (form === "b2") {
    const { values, bits } = halves(raw);
    return { values, states: statesOf(values, (at) => bits[at] === 0x7fc10000) };
  }
  const { buffer } = unplaned(raw, SIZES[form]).slice();
  const bits = new Uint32Array(buffer);
  if (form === "f4") {
    const values = new Float32Array(buffer);
    return { values, states: statesOf(values, (at) => bits[at] === 0x7fc00001) };
  }
  const values = new Float64Array(buffer);
  return { values, states: statesOf(values, (at) => bits[2 * at] === 1 && bits[2 * at + 1] === 0x7ff80000) };
}

function statesOf(values, isUnwritten) {
  const states = new Uint8Array(values.length);
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value !== value) states[at] = isUnwritten(at) ? UNWRITTEN : NAN;
    else if (value === Infinity || value === -Infinity) states[at] = INF;
  }
  return states;
}

function blocks({ plain, bits, values: both }, number) {
  const count = both.length / 2, { mean } = numbers(number);
  const lows = both.slice(0, count), highs = both.slice(count), values = lows.slice();
  const states = statesOf(lows, (at) => bits[at] === 0x7fc10000);
  for (let at = 0; at < count; at++) if (!states[at] && highs[at] - mean > mean - lows[at]) values[at] = highs[at];
  return { values, states, lows, highs, nans: plain.subarray(count) };
}

const finite = (value) => (Number.isFinite(value) ? value : null);

// The least and the largest element of some items, null where none is finite.
export function limitsOf(items) {
  const least = columns["number.low"], most = columns["number.high"];
  let low = Infinity, high = -Infinity;
  for (let at = 0; at < items.length; at++) {
    const { tile: of } = items[at];
    if (least[of] < low) low = least[of];
    if (most[of] > high) high = most[of];
  }
  return low <= high ? { low, high } : { low: null, high: null };
}

export function numbers(number) {
  const of = (name) => columns[`number.${name}`][number];
  return {
    low: finite(of("low")), high: finite(of("high")), mean: finite(of("mean")), nan: of("nan"), inf: of("inf"),
    unwritten: of("unwritten"), strange: of("strange"), largest: of("largest"),
  };
}

// --- counters and storages ----------------------------------------------------------------------------------------------

// Where the parts of each one begin, by how many parts each kind has.
function startsOf(kinds, parts) {
  const found = new Uint32Array(kinds.length + 1);
  for (let at = 0; at < kinds.length; at++) found[at + 1] = found[at] + parts[kinds[at]];
  return found;
}

const firstCounters = startsOf(columns["loops.kind"], run.loop_kinds.map((each) => each.length));

// The counters of a turn: name and value of each, the outermost first.
export function loopsOf(loops) {
  return run.loop_kinds[columns["loops.kind"][loops]].map((name, at) => [name, columns["loops.value"][firstCounters[loops] + at]]);
}

// One of them, undefined where the turn has no such counter.
export function counterOf(loops, name) {
  const at = run.loop_kinds[columns["loops.kind"][loops]].indexOf(name);
  return at < 0 ? undefined : columns["loops.value"][firstCounters[loops] + at];
}

export const storageOf = (storage) => run.storage_kinds[columns.storages[storage]];

// --- writes and prints: what can be looked at ---------------------------------------------------------------------------

class Write {
  constructor(index) {
    this.index = index;
  }

  get kind() { return "write"; }
  get scattered() { return columns["write.scattered"][this.index] > 0; }
  get isCalled() { return run.callers[columns["write.callers"][this.index]].length > 0; } // by a line of the author's
  get places() { return [this.place, ...run.callers[columns["write.callers"][this.index]]]; }
}
for (const name of ["position", "storage", "layout", "offset", "place", "loops", "program", "dtype", "tile"]) {
  const values = columns[`write.${name}`];
  Object.defineProperty(Write.prototype, name, { get() { return values[this.index]; } });
}

export const writes = [];
while (writes.length < columns["write.position"].length) {
  await pause();
  addWrites(Math.min(columns["write.position"].length, writes.length + (1 << 18)));
}

function addWrites(length) {
  while (writes.length < length) writes.push(new Write(writes.length));
}

await pause();
export const prints = run.prints.map((print, index) => ({
  ...print, kind: "print", index, position: print.issued, places: [print.place],
}));

export const tensorOf = (write) => {
  const [name, memory, dtype, sizes] = storageOf(write.storage);
  return { name, memory, dtype, shape: sizes };
};

export const shapeOf = (item) => (item.kind === "print" ? item.shape : run.layouts[item.layout][0]);
export const dtypeOf = (item) => (item.kind === "print" ? item.dtype : run.dtypes[item.dtype]);

export function nameOf(item) {
  return item.kind === "print" ? item.prefix : tensorOf(item).name || "(unnamed)";
}

// --- instructions -------------------------------------------------------------------------------------------------------

export const instructions = Object.fromEntries(
  ["plan", "place", "loops", "program"].map((name) => [name, columns[`instruction.${name}`]]));
run.instructions = instructions;
export const count = instructions.plan.length;
await pause();
const firsts = startsOf(instructions.plan, run.plans.map(([, , , written]) => written.length));

export function planOf(position) {
  const [name, engine, cycles, written, operands, elements] = run.plans[instructions.plan[position]];
  return { name, engine, cycles, written, operands, elements };
}

export const programOf = (position) => run.programs[instructions.program[position]] ?? [null, []];
export const layoutOf = ({ layout }) => run.layouts[layout];

const operands = ["storage", "layout", "offset"].map((name) => columns[`instruction.${name}`]);

export function operandsOf(position) {
  const { written } = planOf(position);
  return written.map((isWritten, number) => {
    const at = firsts[position] + number;
    const [storage, layout, offset] = operands.map((each) => each[at]);
    return { storage, layout, offset, written: isWritten > 0, at };
  });
}

// What operands read: of each the instructions that wrote it, -1 for an argument, -2 for memory that was never written.
const counts = columns["flow.counts"], sources = columns["flow.sources"];
const edges = summedUp(counts);
function summedUp(sizes) {
  const found = new Uint32Array(sizes.length + 1);
  for (let at = 0; at < sizes.length; at++) found[at + 1] = found[at] + sizes[at];
  return found;
}

await pause();
export const GIVEN = -1;
export const NEVER_WRITTEN = -2;

export function sourcesOf({ at }) {
  return Array.from(sources.subarray(edges[at], edges[at + 1]));
}

// What an instruction depends on besides: by an index, a register, or what another core or rank has sent.
const others = new Map();
columns["others.position"].forEach((position, at) => {
  if (!others.has(position)) others.set(position, []);
  others.get(position).push(columns["others.source"][at]);
});

export function othersOf(position) {
  return others.get(position) ?? [];
}

// The instructions that read what one has written: the first so many.
export function consumersOf(position, most) {
  const found = new Set(), [readers, from] = ["position", "source"].map((name) => columns[`others.${name}`]);
  const ofOperand = (at) => last(firsts, last(edges, at));
  for (let at = sources.indexOf(position); at >= 0 && found.size < most; at = sources.indexOf(position, at + 1)) found.add(ofOperand(at));
  for (let at = from.indexOf(position); at >= 0 && found.size < 2 * most; at = from.indexOf(position, at + 1)) found.add(readers[at]);
  return [...found].sort((one, other) => one - other).slice(0, most);
}

// The last of ascending places that lies not behind another one.
function last(places, at) {
  let low = 0, high = places.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (places[middle] <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

await pause();
const firstWrites = firstAt(columns["write.position"], count); // by position
function firstAt(places, size) {
  const found = new Int32Array(size).fill(-1);
  for (let at = places.length - 1; at >= 0; at--) found[places[at]] = at;
  return found;
}

export const writeAt = (position) => writes[firstWrites[position]];

// --- words --------------------------------------------------------------------------------------------------------------

// `name[0:128, 512:1024]` where the view is made of slices, `tile (1, 2) of name, rows 128:256, columns 512:768` where
// they are whole tiles of the author's grid; else the view's shape and where it begins.
export function region({ storage, layout, offset }) {
  const [name, memory, , sizes] = storageOf(storage);
  const [viewed, strides, itemsize] = run.layouts[layout];
  const label = name || "(unnamed)";
  const own = [];
  let step = itemsize;
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    own[axis] = step;
    step *= sizes[axis];
  }
  if (["SBUF", "PSUM"].includes(memory) && storageOf(storage)[5] && strides.length) own[0] = strides[0];
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
  const [, , , sizes, , , tileShape, elements] = storageOf(storage);
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
  const parts = loopsOf(loops).map(([name, value]) => `${name}=${value}`);
  if (index.length && run.programs.length > 1) parts.unshift(`${run.run.unit} ${index.join(", ")}`);
  if (rank !== null) parts.unshift(`rank ${rank}`);
  return parts.join(", ");
}

export function numbersText(number) {
  const { low, high, mean } = numbers(number);
  return low === null ? "no finite element" : `${run.rounded_numbers ? "about " : ""}${shown(low)} … ${shown(high)}, mean ${shown(mean)}`;
}

// The outputs' wrong tiles: by the position of the instruction that wrote them how many elements are wrong.
export const wrong = new Map();
export const firstsWrong = new Map(); // by position too: the output, and the first wrong element of it
for (const output of run.outputs) {
  for (const [position, elements, element] of output.comparison?.tiles ?? []) {
    wrong.set(position, (wrong.get(position) ?? 0) + elements);
    if (!firstsWrong.has(position)) firstsWrong.set(position, { output, element });
  }
}

// What differs from another run: by position and storage how many elements, the first and the worst, the other's tile, the difference.
export const otherName = run.against?.name ?? "the reference";
export const differs = new Map((run.against?.writes ?? []).map(([position, storage, elements, first, worst, other, distance]) =>
  [`${position}|${storage}`, { position, elements, first, worst, other, distance }]));
for (const { position } of differs.values()) wrong.set(position, 0);
for (const { position, elements } of differs.values()) wrong.set(position, wrong.get(position) + elements);
export const differenceOf = ({ position, storage }) => differs.get(`${position}|${storage}`);
