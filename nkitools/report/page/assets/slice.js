// The backward slice of elements, instruction by instruction, the last one first: by the element maps that instructions
// state and the run's dependences. Elements are masks of an operand's view; what was read is matched by its bytes.
import { columns } from "./bytes.js";
import { GIVEN, NEVER_WRITTEN, count, layoutOf, operandsOf, othersOf, planOf, programOf, run, sourcesOf } from "./data.js";
import { isLoose, madeOf, sizeOf } from "./rules.js";
import { isGrid, restsOn } from "./trace.js";

const maps = new Map();
function elementsOf({ elements }) {
  if (!maps.has(elements)) maps.set(elements, new Map(JSON.parse(run.element_maps[elements] || "[]")));
  return maps.get(elements);
}

const loose = new Set(columns["loose.position"]); // data or masks choose what these read or write
const memoryOf = ({ storage }) => columns["storages.memory"][storage];
const firstByte = ({ storage, offset }) => columns["storages.first"][storage] + offset;
const full = (shape) => new Uint8Array(sizeOf(shape)).fill(1);

// Where an element of a view begins in its memory.
function startOf(operand, element) {
  const [shape, strides] = layoutOf(operand);
  let rest = element, start = firstByte(operand);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    start += (rest % shape[axis]) * strides[axis];
    rest = Math.floor(rest / shape[axis]);
  }
  return start;
}

function startsOf(operand, mask) {
  const found = [];
  for (let at = mask.indexOf(1); at >= 0; at = mask.indexOf(1, at + 1)) found.push(startOf(operand, at));
  return found;
}

// The element of a view that is an element of another one; -1 where it has none, or more than one may be it.
export function sameElement(operand, other, element) {
  return other.layout === undefined || memoryOf(operand) !== memoryOf(other) ? -1 : (finder(operand)?.(startOf(other, element)) ?? -1);
}

// The element of a view that has a byte, -1 where none has; null for a view whose elements share bytes.
function finder(operand) {
  const [shape, strides, itemsize] = layoutOf(operand), first = firstByte(operand), axes = [];
  for (let axis = shape.length - 1, step = 1; axis >= 0; step *= shape[axis], axis--) {
    if (shape[axis] > 1) axes.push({ size: shape[axis], stride: strides[axis], step });
  }
  axes.sort((a, b) => b.stride - a.stride);
  if (axes.some(({ stride }) => stride <= 0)) return null;
  return (byte) => {
    let rest = byte - first, number = 0;
    if (rest < 0) return -1;
    for (const { size, stride, step } of axes) {
      const index = Math.floor(rest / stride);
      if (index >= size) return -1;
      rest -= index * stride;
      number += index * step;
    }
    return rest < itemsize ? number : -1;
  };
}

let written = null; // by memory: the instructions that write to it, ascending

function writersBefore(memory, position) {
  if (!written) {
    written = new Map();
    for (let at = 0; at < count; at++) {
      for (const operand of operandsOf(at)) {
        if (!operand.written) continue;
        if (!written.has(memoryOf(operand))) written.set(memoryOf(operand), []);
        written.get(memoryOf(operand)).push(at);
      }
    }
  }
  return (written.get(memory) ?? []).filter((each) => each < position);
}

export const Slice = class {
  constructor() {
    this.steps = [];
    this.leaves = new Map(); // by storage and kind: { storage, kind, operand, position, starts }
    this.isExact = true;
    this.done = new Map(); // by position: the step; what another rank has sent may come to one again
    this.pending = new Map(); // by position: masks by result
    this.queue = []; // a heap of positions, the largest first
  }

  // Ask for elements of a view as they are at the end of the run, or of what an instruction has written.
  askAt(position, name, mask) { this.want(position, name, mask); }
  askAtEnd(operand, mask) { this.follow(operand, mask, writersBefore(memoryOf(operand), count), count); }

  want(position, name, mask) {
    const before = this.done.get(position)?.made.get(name);
    if (before) mask = mask.map((each, at) => each & ~before[at]);
    if (!mask.includes(1)) return;
    let made = this.pending.get(position);
    if (!made) {
      this.pending.set(position, (made = new Map()));
      this.push(position);
    }
    const known = made.get(name);
    if (!known) made.set(name, mask);
    else made.set(name, known.map((each, at) => each | mask[at]));
  }

  push(position) {
    const { queue } = this;
    let at = queue.push(position) - 1;
    for (let up; at > 0 && queue[(up = (at - 1) >> 1)] < queue[at]; at = up) [queue[up], queue[at]] = [queue[at], queue[up]];
  }

  pop() {
    const { queue } = this, top = queue[0], last = queue.pop();
    if (queue.length) {
      queue[0] = last;
      for (let at = 0; ;) {
        let next = 2 * at + 1;
        if (next >= queue.length) break;
        if (queue[next + 1] > queue[next]) next++;
        if (queue[next] <= queue[at]) break;
        [queue[at], queue[next]] = [queue[next], queue[at]];
        at = next;
      }
    }
    return top;
  }

  get isWhole() { return !this.queue.length; }

  // Go back until there are so many steps, or for so many milliseconds.
  reach(steps, milliseconds = Infinity) {
    const end = performance.now() + milliseconds;
    while (this.queue.length && this.steps.length < steps && performance.now() < end) this.visit(this.pop());
    return this;
  }

  visit(position) {
    const made = this.pending.get(position), plan = planOf(position), operands = operandsOf(position);
    this.pending.delete(position);
    const elements = elementsOf(plan), step = { position, made, reads: new Map() };
    this.add(step);
    for (const [result, mask] of made) {
      const at = plan.operands.indexOf(result), shape = at < 0 ? [mask.length] : layoutOf(operands[at])[0];
      const stated = elements.get(result) ?? (elements.size ? [] : plan.operands.map((name) => [name, null, null, null]));
      for (const source of stated) this.read(step, source, { mask, shape }, plan, operands);
    }
    if (isGrid) this.readBefore(step);
    for (const { owner, operand, mask } of step.reads.values()) {
      let from = sourcesOf(operand);
      if (operand.written && !from.length) from = writersBefore(memoryOf(operand), owner);
      this.follow(operand, mask, from, owner, step);
    }
    this.readOthers(position, plan);
    const known = this.done.get(position);
    if (known !== step) step.reads.forEach((read, key) => known.reads.has(key) || known.reads.set(key, read));
  }

  // A step, or more elements of one that was there before.
  add(step) {
    const known = this.done.get(step.position);
    if (!known) {
      this.done.set(step.position, step);
      return this.steps.push(step);
    }
    for (const [name, mask] of step.made) known.made.set(name, known.made.has(name) ? known.made.get(name).map((each, at) => each | mask[at]) : mask);
  }

  read(step, [name, rank, core, rule], wanted, plan, operands) {
    const at = plan.operands.indexOf(name);
    if (at < 0) return this.readState(step.position, name, rule, wanted);
    const shape = layoutOf(operands[at])[0], owner = this.origin(step.position, rank, core);
    if (owner < 0) return;
    let mask = rule ? madeOf(rule, wanted, shape) : full(shape);
    if (!mask.includes(1)) return;
    if (loose.has(owner)) mask = full(shape);
    if (loose.has(owner) || (rule && isLoose(rule))) this.isExact = false;
    const operand = operandsOf(owner)[planOf(owner).operands.indexOf(name)], key = `${owner}|${name}`;
    const known = step.reads.get(key);
    if (known) known.mask = known.mask.map((each, place) => each | mask[place]);
    else step.reads.set(key, { owner, name, operand, mask });
  }

  // What a Pallas kernel had read before it wrote, as a whole: which elements it took is not known.
  readBefore(step) {
    if (planOf(step.position).engine !== "kernel") return;
    this.isExact = false;
    for (const owner of restsOn(step.position, Infinity)) {
      const [operand] = operandsOf(owner), name = planOf(owner).operands[0];
      step.reads.set(`${owner}|${name}`, { owner, name, operand, mask: full(layoutOf(operand)[0]) });
    }
  }

  // The instruction whose operand is meant: of another rank or core that met this one.
  origin(position, rank, core) {
    if (rank === null && core === null) return position;
    const is = (each) => (core === null ? (programOf(each)[0] ?? 0) === rank : programOf(each)[1].at(-1) === core);
    const met = [position, ...othersOf(position)].filter((each) => each >= 0 && planOf(each).name === planOf(position).name);
    return met.find(is) ?? -1;
  }

  // What an engine keeps from instruction to instruction: the lanes of it.
  readState(position, name, rule, wanted) {
    const lanes = madeOf(rule, wanted, [wanted.shape[0]]);
    for (const each of [...othersOf(position)].sort((a, b) => b - a)) {
      if (each < 0 || !elementsOf(planOf(each)).has(name)) continue;
      const size = Math.max(...operandsOf(each).map((operand) => layoutOf(operand)[0][0] ?? 1));
      const mine = new Uint8Array(size);
      mine.set(lanes.subarray(0, size));
      if (mine.includes(1)) this.want(each, name, mine);
      lanes.fill(0, 0, size);
    }
  }

  // Registers, and the tensors that were read as an index: these as a whole.
  readOthers(position, plan) {
    for (const each of othersOf(position)) {
      if (each < 0) continue;
      const other = planOf(each), programs = programOf(each).flat().join() === programOf(position).flat().join();
      if (!programs && other.name === plan.name) continue;
      const names = [...elementsOf(other).keys()];
      const registers = names.filter((name) => !other.operands.includes(name) && !name.includes(" "));
      if (registers.length) registers.forEach((name) => this.want(each, name, full([])));
      else if (loose.has(position)) {
        operandsOf(each).forEach((operand, at) => operand.written && this.want(each, other.operands[at], full(layoutOf(operand)[0])));
      }
    }
  }

  // Find who has written marked elements of a view last, among these instructions.
  follow(operand, mask, from, before, step = null) {
    const memory = memoryOf(operand);
    let left = startsOf(operand, mask), width = layoutOf(operand)[2];
    for (const each of from.filter((one) => one >= 0 && one < before).sort((a, b) => b - a)) {
      if (!left.length) break;
      const plan = planOf(each);
      operandsOf(each).forEach((result, at) => {
        if (!result.written || memoryOf(result) !== memory) return;
        const [shape, , itemsize] = layoutOf(result), find = finder(result), mine = find ? new Uint8Array(sizeOf(shape)) : full(shape);
        if (itemsize < width) {
          left = left.flatMap((start) => Array.from({ length: width / itemsize }, (_, part) => start + part * itemsize));
          width = itemsize;
        }
        const rest = find ? left.filter((start) => { const found = find(start); if (found >= 0) mine[found] = 1; return found < 0; }) : left;
        if (!find) this.isExact = false;
        if (rest.length < left.length || !find) this.want(each, plan.operands[at], loose.has(each) ? full(shape) : mine);
        if (loose.has(each)) this.isExact = false;
        else left = rest;
      });
    }
    const kind = from.includes(NEVER_WRITTEN) ? NEVER_WRITTEN : GIVEN;
    if (left.length && (from.includes(kind) || before === count)) this.end(operand, kind, left, step?.position ?? before);
  }

  end(operand, kind, starts, position) {
    const key = `${operand.storage}|${kind}`, first = columns["storages.first"][operand.storage];
    if (!this.leaves.has(key)) this.leaves.set(key, { kind, operand, position, storage: operand.storage, starts: new Set() });
    const found = this.leaves.get(key);
    for (const each of starts) found.starts.add(each - first);
  }
};
