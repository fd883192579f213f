// What was written (or printed) at a line, turn by turn: which turns there are, and how to step from one to the next.
import { numbers, prints, run, wrong, writes } from "./data.js";

const byPlace = new Map(); // [file, line] as text: the items
for (const item of [...writes, ...prints]) {
  for (const place of new Set(item.places)) {
    const key = run.places[place].join("\n");
    if (!byPlace.has(key)) byPlace.set(key, []);
    byPlace.get(key).push(item);
  }
}
for (const items of byPlace.values()) {
  items.sort((a, b) => a.position - b.position || a.index - b.index);
}

export function itemsAt({ file, line }) {
  return byPlace.get(`${run.files[file]?.path}\n${line}`) ?? [];
}

// Lines of a file at which something was written or printed, in order.
export function busyLines(file) {
  const path = run.files[file]?.path;
  const found = new Set();
  for (const key of byPlace.keys()) {
    const [where, line] = key.split("\n");
    if (where === path) found.add(Number(line));
  }
  return [...found].sort((a, b) => a - b);
}

// Of each item the program, the counters, and which of its turn it is.
export function seriesOf(items) {
  const turns = new Map(), names = [];
  const coordinates = items.map((item) => {
    const loops = run.loops[item.loops];
    for (const [name] of loops) if (!names.includes(name)) names.push(name);
    const key = `${item.program}|${item.loops}`;
    turns.set(key, (turns.get(key) ?? 0) + 1);
    return { program: item.program, nth: turns.get(key) - 1, loops: Object.fromEntries(loops) };
  });
  const axes = [];
  const programs = new Set(coordinates.map((each) => each.program));
  const kind = run.programs.every(([, index]) => !index.length) ? "rank" : "program";
  if (programs.size > 1) axes.push({ name: kind, of: (each) => each.program, text: programText });
  for (const name of names) axes.push({ name, of: (each) => each.loops[name], text: String });
  const most = Math.max(0, ...coordinates.map((each) => each.nth));
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
  const here = JSON.stringify([program, loops]);
  for (let next = at + direction; next >= 0 && next < series.items.length; next += direction) {
    const each = series.coordinates[next];
    if (each.nth === nth && JSON.stringify([each.program, each.loops]) !== here) return next;
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
