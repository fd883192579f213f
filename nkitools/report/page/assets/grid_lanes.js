// The lanes of a Pallas call: points, pipeline, kernel, copies and semaphores, in the order of interpretation or in estimated time.
import { layoutOf, operandsOf, planOf, run, storageOf } from "./data.js";
import { sizeOf } from "./rules.js";
import { begun, coreOf, eventsByStep, kindOf, noteOf } from "./trace.js";

const ORDER = ["points", "pipeline", "kernel", "DMA", "semaphore"];
const engineOf = (position) => planOf(position).engine;
const unitsOf = (trace) => new Set(trace.buffers.map((each) => each[4])).size;

// The estimates of a call, one a chip; a call is known by the name of its kernel and the points of its grid.
export function estimatesOf(trace) {
  const points = Math.max(1, sizeOf(trace.grid)), byChip = new Map();
  for (const each of run.time.kernels ?? []) {
    if (each.kernel !== trace.name || each.steps !== points) continue;
    byChip.set(each.chip, byChip.has(each.chip) ? { ...each, latency_us: null, left_out: "several calls have this name and as many points" } : each);
  }
  return [...byChip.values()];
}

// Why the events of a call have no place in estimated time; "" where they have.
export function whyNoTime(trace, estimate) {
  if (estimate.latency_us === null) return estimate.left_out;
  if (new Set(coreOf.subarray(trace.first, trace.first + trace.count)).size > 1) return "the estimate is that of one core";
  if (unitsOf(trace) > 1 && sizeOf(trace.grid) > 1) return "with several devices the point of an event is not known";
  return trace.left_out ? "the later events were counted only" : "";
}

// Places of events from 0 to `length`: `spanOf` a position from and to; `points`: from and to of each point of the grid.
function inOrder(trace) {
  const points = eventsByStep(trace).map((events) => (events.length ? [events[0] - trace.first, events.at(-1) + 1 - trace.first] : [0, 0]));
  return { length: trace.count, points, spanOf: (position) => [position - trace.first, position - trace.first + 1] };
}

// The pipeline keeps each block twice: while a point is computed, the blocks of the next one are loaded and those of the one
// before are stored, one transfer after the other. A point takes its share of the computing, or as long as its own copies
// from and to HBM. Within a point only the order of events is known: they stand evenly.
function inTime(trace, { hbm_bytes: all, memory_us: memory, compute_us: compute }) {
  const spans = new Map(), points = [], stored = [], byStep = eventsByStep(trace);
  const isOfHbm = (each) => operandsOf(each).some(({ storage }) => storageOf(storage)[1] === "HBM");
  const lasts = (each) => {
    const [to] = operandsOf(each), [shape, , itemsize] = layoutOf(to);
    return all ? (sizeOf(shape) * itemsize * memory) / all : 0;
  };
  let channel = 0, free = 0;
  const transfer = (step, kind, from) => {
    let end = from;
    for (const each of (byStep[step] ?? []).filter((one) => kindOf(one) === kind)) {
      const begin = Math.max(channel, from);
      end = channel = begin + lasts(each);
      spans.set(each, [begin, end]);
    }
    return end;
  };
  let ready = transfer(0, "block in", 0);
  byStep.forEach((events, step) => {
    const own = events.filter((each) => engineOf(each) !== "pipeline"), copies = own.filter((each) => kindOf(each) === "DMA" && isOfHbm(each));
    const begin = Math.max(free, ready, stored[step - 2] ?? 0);
    const takes = Math.max(compute / trace.points.length, copies.reduce((sum, each) => sum + lasts(each), 0));
    free = begin + takes;
    own.forEach((each, at) => spans.set(each, [begin + (takes * at) / own.length, begin + (takes * (at + 1)) / own.length]));
    points.push([begin, free]);
    ready = transfer(step + 1, "block in", begin);
    stored.push(transfer(step, "block out", free));
  });
  return { length: Math.max(free, channel), points, spanOf: (position) => spans.get(position), isTime: true };
}

const known = new Map();

// The places of a call's events, in order or by an estimate.
export function placesOf(trace, estimate = null) {
  const key = `${trace.first} ${estimate?.chip}`;
  if (!known.has(key)) known.set(key, estimate ? inTime(trace, estimate) : inOrder(trace));
  return known.get(key);
}

const madeOf = new WeakMap();

// The lanes by such places: slices, and of a semaphore its value from event to event.
export function lanesOf(trace, places) {
  if (madeOf.has(places)) return madeOf.get(places);
  const byName = new Map(), several = unitsOf(trace) > 1;
  const put = (name, slice) => (byName.has(name) ? byName.get(name).push(slice) : byName.set(name, [slice]));
  if (places.isTime) eventsByStep(trace).forEach((events, step) => events.length && put("points", { from: places.points[step][0], to: places.points[step][1], position: events[0], kind: "point" }));
  for (let position = trace.first; position < trace.first + trace.count; position++) {
    const engine = engineOf(position), [rank] = run.programs[run.instructions.program[position]] ?? [];
    const whose = several && rank !== null && rank !== undefined ? `rank ${rank} ` : "";
    if (kindOf(position) === "DMA start") continue;
    const [from, to] = places.spanOf(position), target = operandsOf(position).find((each) => each.written);
    if (engine === "semaphore") changed(byName, whose, position, [from, places.length]);
    else if (engine === "dma") put(`${whose}DMA to ${target ? storageOf(target.storage)[0] : ""}`, { from: begun[position] >= 0 ? places.spanOf(begun[position])[0] : from, to, position, kind: engine });
    else put(`${whose}${engine}`, { from, to, position, kind: engine });
  }
  const rankOf = (name) => ORDER.findIndex((each) => name.includes(each));
  const found = [...byName].sort(([a], [b]) => rankOf(a) - rankOf(b) || a.localeCompare(b, "en", { numeric: true })).map(([name, slices]) => ({ name, slices }));
  for (const { slices } of found) {
    const most = Math.max(...slices.map(({ value }) => value ?? 0));
    for (const each of slices) if (each.value !== undefined) each.share = most > 0 ? Math.max(0, each.value) / most : 0;
  }
  madeOf.set(places, found);
  return found;
}

// A semaphore gets, or a wait takes from it: from here on it has another value.
function changed(byName, whose, position, [from, to]) {
  const [, number, way, count] = /^semaphore (\d+) (gets|takes) (\d+)/.exec(noteOf(position)), name = `${whose}semaphore ${number}`;
  if (!byName.has(name)) byName.set(name, []);
  const slices = byName.get(name), last = slices.at(-1);
  if (last) last.to = from;
  slices.push({ from, to, position, kind: "semaphore", value: (last?.value ?? 0) + (way === "gets" ? Number(count) : -count) });
}

// The value that an event leaves a semaphore with, in words; "" for another event.
export function valueText(trace, position) {
  if (engineOf(position) !== "semaphore") return "";
  for (const { slices } of lanesOf(trace, placesOf(trace))) for (const each of slices) if (each.position === position && each.value !== undefined) return `: has ${each.value}`;
  return "";
}
