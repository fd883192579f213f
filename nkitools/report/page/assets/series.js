// What was written (or printed) at a line, turn by turn: which turns there are, and how to step from one to the next.
import { loopsOf, numbers, prints, run, wrong, writes } from "./data.js";

const byPlace = new Map(); // by the number of a place: the items
for (const items of [writes, prints]) {
  for (const item of items) {
    for (const place of new Set(item.places)) {
      if (!byPlace.has(place)) byPlace.set(place, []);
      byPlace.get(place).push(item);
    }
  }
}
for (const items of byPlace.values()) {
  if (items.some((each) => each.kind === "print")) items.sort((a, b) => a.position - b.position || a.index - b.index);
}
const placeAt = new Map(run.places.map(([file, line], place) => [`${file}\n${line}`, place]));

export function itemsAt({ file, line }) {
  return byPlace.get(placeAt.get(`${run.files[file]?.path}\n${line}`)) ?? [];
}

// Lines of a file at which something was written or printed, in order.
export function busyLines(file) {
  const path = run.files[file]?.path;
  const found = new Set();
  for (const place of byPlace.keys()) {
    const [where, line] = run.places[place];
    if (where === path) found.add(line);
  }
  return [...found].sort((a, b) => a - b);
}

// Of each item the program, the counters, and which of its turn it is.
const known = new WeakMap();

export function seriesOf(items) {
  if (!known.has(items)) known.set(items, seriesMade(items));
  return known.get(items);
}

const counters = new Map();
function countersOf(loops) {
  if (!counters.has(loops)) counters.set(loops, Object.fromEntries(loopsOf(loops)));
  return counters.get(loops);
}

function seriesMade(items) {
  const turns = new Map(), names = [];
  const coordinates = items.map((item) => {
    const loops = countersOf(item.loops);
    for (const name in loops) if (!names.includes(name)) names.push(name);
    const key = item.loops * run.programs.length + item.program;
    turns.set(key, (turns.get(key) ?? 0) + 1);
    return { program: item.program, nth: turns.get(key) - 1, loops };
  });
  const axes = [];
  const programs = new Set(coordinates.map((each) => each.program));
  const kind = run.programs.every(([, index]) => !index.length) ? "rank" : "program";
  if (programs.size > 1) axes.push({ name: kind, of: (each) => each.program, text: programText });
  for (const name of names) axes.push({ name, of: (each) => each.loops[name], text: String });
  const most = coordinates.reduce((found, each) => Math.max(found, each.nth), 0);
  if (most > 0) axes.push({ name: "write", of: (each) => each.nth, text: (nth) => `${nth + 1} of ${most + 1}` });
  return { items, coordinates, axes, turns: turns.size };
}

function programText(program) {
  const [rank, index] = run.programs[program];
  if (rank !== null && !index.length) return String(rank);
  return [rank === null ? "" : `rank ${rank}`, index.join(", ") || (rank === null ? "0" : "")].filter(Boolean).join(" · ");
}

// The place in the series with the next larger (or smaller) value on an axis, in all else as much like now as can be.
export function step(series, at, axis, direction) {
  const here = series.coordinates[at];
  const now = axis.of(here);
  let best = -1, nearest = null, alike = -1;
  series.coordinates.forEach((each, index) => {
    const value = axis.of(each);
    if (value === undefined || (value - now) * direction <= 0) return;
    const distance = Math.abs(value - now);
    const same = series.axes.filter((other) => other !== axis && other.of(each) === other.of(here)).length;
    if (nearest === null || same > alike || (same === alike && distance < nearest)) {
      [best, nearest, alike] = [index, distance, same];
    }
  });
  return best;
}

// The next (or previous) turn, with the same place in it.
export function turn(series, at, direction) {
  const { nth, program, loops } = series.coordinates[at];
  for (let next = at + direction; next >= 0 && next < series.items.length; next += direction) {
    const each = series.coordinates[next];
    if (each.nth === nth && (each.program !== program || each.loops !== loops)) return next;
  }
  return -1;
}

export function valuesText(axis, series) {
  return [...new Set(series.coordinates.map(axis.of))].length;
}

export function isStrange(item) {
  if (item.tile === null) return false;
  const { nan, inf } = numbers(item.tile);
  return nan > 0 || inf > 0;
}

export const isWrong = (item) => item.kind === "write" && wrong.has(item.position);

export const firstWrong = writes.find(isWrong);

// The first write of the run that holds a NaN or an infinity.
export const firstStrange = writes.find((write) => numbers(write.tile).nan > 0) ?? writes.find(isStrange);
