// The events of traced kernels: of a grid of Pallas, or of the cores of a custom operator. Positions are those of instructions.
import { columns } from "./bytes.js";
import { EXACT, ROUNDED, UNWRITTEN, layoutOf, operandsOf, othersOf, planOf, run, sourcesOf, storageOf, tile, writeAt } from "./data.js";

export const traces = run.traces;
export const isGrid = traces.some((each) => each.kind === "grid");
export const isCores = traces.some((each) => each.kind === "cores");
export const steps = columns["event.step"];
export const coreOf = columns["event.core"];
export const begun = columns["event.begun"]; // of what ends a DMA the event that started it

// The trace that an event is part of.
export const traceAt = (position) => traces.find((each) => position >= each.first && position < each.first + each.count) ?? traces[0];
export const noteOf = (position) => traceAt(position).notes[position] ?? "";
export const pointText = (point) => `(${point.join(", ")})`;

// By step the events of it, in order.
const known = new WeakMap();
export function eventsByStep(trace) {
  if (!known.has(trace)) {
    const found = trace.points.map(() => []);
    for (let at = trace.first; at < trace.first + trace.count; at++) found[steps[at]]?.push(at);
    known.set(trace, found);
  }
  return known.get(trace);
}

// The part of a buffer that an operand touches: start and stop along each dimension.
export function boundsOf({ storage, layout, offset }) {
  const sizes = storageOf(storage)[3], [viewed, strides, itemsize] = layoutOf({ layout });
  let rest = offset, own = itemsize * sizes.reduce((product, each) => product * each, 1);
  return sizes.map((size, axis) => {
    own /= size || 1;
    const start = own ? Math.floor(rest / own) : 0;
    rest -= start * own;
    return [start, start + (own ? ((viewed[axis] - 1) * strides[axis]) / own : 0) + 1];
  });
}

// The events that write a storage up to a position, the newest first, back to one that writes all of it.
export function writersOf(storage, trace, position) {
  const whole = storageOf(storage)[3].reduce((product, each) => product * each, 1), found = [];
  for (let at = position; at >= trace.first; at--) {
    const operands = operandsOf(at), operand = operands.find((each) => each.written && each.storage === storage);
    // After its block is stored, a window holds nothing that counts.
    if (kindOf(at) === "block out" && operands.some((each) => !each.written && each.storage === storage)) break;
    if (!operand) continue;
    found.push(at);
    if (layoutOf(operand)[0].reduce((product, each) => product * each, 1) === whole) break;
  }
  return found;
}

// What a buffer holds after an event, as a tile; null where that is not known element by element.
export function contentOf(storage, trace, position) {
  const sizes = storageOf(storage)[3], down = sizes.slice(0, -1).reduce((product, each) => product * each, 1), size = sizes.reduce((product, each) => product * each, 1);
  const newest = writersOf(storage, trace, position);
  if (!newest.length) return { empty: true };
  if (newest.length > 4000 || size > 1 << 22) return null;
  const values = new Float64Array(size), states = new Uint8Array(size).fill(UNWRITTEN);
  for (const at of newest.reverse()) {
    const write = writeAt(at);
    if (!write) return null;
    const found = tile(write.tile);
    if (found.quality !== EXACT && found.quality !== ROUNDED) return null;
    place(found, layoutOf(write), write.offset, values, states);
  }
  return { rows: down, columns: size / Math.max(1, down), down, across: size / Math.max(1, down), quality: EXACT, exact: true, values, states, position: newest.at(-1) };
}

function place(found, [viewed, strides, itemsize], offset, values, states) {
  const index = viewed.map(() => 0), each = strides.map((stride) => stride / itemsize);
  for (let at = 0, to = offset / itemsize; at < found.values.length; at++) {
    values[to] = found.values[at];
    states[to] = found.states[at];
    for (let axis = viewed.length - 1; axis >= 0; axis--) {
      index[axis]++;
      to += each[axis];
      if (index[axis] < viewed[axis]) break;
      to -= index[axis] * each[axis];
      index[axis] = 0;
    }
  }
}

export const kindOf = (position) => planOf(position).name;

// What a kernel had read before one of its writes, at the same point of the grid: which of it counts is not known. Of equal
// reads one; the newest first.
function readsBefore(position, most) {
  const found = new Map(), unit = run.instructions.program[position], { first } = traceAt(position);
  for (let at = position - 1; at >= first && found.size < most; at--) {
    if (run.instructions.program[at] !== unit || coreOf[at] !== coreOf[position] || planOf(at).engine !== "kernel") continue;
    if (steps[at] !== steps[position]) break;
    if (kindOf(at) !== "read") continue;
    const [operand] = operandsOf(at), key = [operand.storage, operand.layout, operand.offset, ...sourcesOf(operand)].join();
    if (!found.has(key)) found.set(key, at);
  }
  return [...found.values()];
}

const isWriteOfKernel = (position) => isGrid && kindOf(position) === "write" && planOf(position).engine === "kernel";

// What an event or an instruction rests on, besides what it reads itself.
export const restsOn = (position, most = 64) => (isWriteOfKernel(position) ? readsBefore(position, most) : othersOf(position));
