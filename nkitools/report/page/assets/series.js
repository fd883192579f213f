// What was written (or printed) at a line, turn by turn: which turns there are, and how to step from one to the next.
import { columns, pause } from "./bytes.js";
import { counterOf, prints, run, wrong, writes } from "./data.js";

const byPlace = new Map(); // by the number of a place: the items
function add(place, item) {
  const found = byPlace.get(place);
  if (found) found.push(item);
  else byPlace.set(place, [item]);
}

const LONG = 1 << 18; // items that are gone through without a pause
for (const items of [writes, prints]) {
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (at % LONG === LONG - 1) await pause();
    if (item.isCalled) for (const place of new Set(item.places)) add(place, item);
    else add(item.place, item);
  }
}
await pause();
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

// The axes along which the items of a line can be stepped, and of each item which one of its turn it is.
const known = new WeakMap();

export function seriesOf(items) {
  if (!known.has(items)) known.set(items, seriesMade(items));
  return known.get(items);
}

function seriesMade(items) {
  const programs = new Set(), kinds = new Set(), nths = new Int32Array(items.length);
  const turns = new Int32Array(columns["loops.kind"].length * run.programs.length);
  const kindOf = columns["loops.kind"];
  let most = 0, last = -1, lastKind = -1;
  for (let at = 0; at < items.length; at++) {
    const { program, loops } = items[at], kind = kindOf[loops];
    if (program !== last) programs.add(last = program);
    if (kind !== lastKind) kinds.add(lastKind = kind);
    const nth = turns[loops * run.programs.length + program]++;
    nths[at] = nth;
    if (nth > most) most = nth;
  }
  const axes = [];
  const kind = run.programs.every(([, index]) => !index.length) ? "rank" : run.run.unit;
  if (programs.size > 1) axes.push({ name: kind, of: (at) => items[at].program, text: programText });
  const names = new Set([...kinds].flatMap((each) => run.loop_kinds[each]));
  for (const name of names) axes.push({ name, of: (at) => counterOf(items[at].loops, name), text: String });
  if (most > 0) axes.push({ name: "write", of: (at) => nths[at], text: (nth) => `${nth + 1} of ${most + 1}` });
  return { items, nths, axes };
}

function programText(program) {
  const [rank, index] = run.programs[program];
  if (rank !== null && !index.length) return String(rank);
  return [rank === null ? "" : `rank ${rank}`, index.join(", ") || (rank === null ? "0" : "")].filter(Boolean).join(" · ");
}

// The place in the series with the next larger (or smaller) value on an axis, in all else as much like now as can be.
export function step(series, at, axis, direction) {
  const now = axis.of(at), others = series.axes.filter((each) => each !== axis), here = others.map((each) => each.of(at));
  let best = -1, nearest = null, alike = -1;
  for (let index = 0; index < series.items.length; index++) {
    const value = axis.of(index);
    if (value === undefined || (value - now) * direction <= 0) continue;
    const distance = Math.abs(value - now);
    let same = 0;
    for (let each = 0; each < others.length; each++) if (others[each].of(index) === here[each]) same++;
    if (nearest === null || same > alike || (same === alike && distance < nearest)) {
      [best, nearest, alike] = [index, distance, same];
    }
  }
  return best;
}

// The next (or previous) turn, with the same place in it.
export function turn({ items, nths }, at, direction) {
  const { program, loops } = items[at];
  for (let next = at + direction; next >= 0 && next < items.length; next += direction) {
    if (nths[next] === nths[at] && (items[next].program !== program || items[next].loops !== loops)) return next;
  }
  return -1;
}

export function isStrange({ tile }) {
  return tile !== null && (columns["number.nan"][tile] > 0 || columns["number.inf"][tile] > 0);
}

export const isWrong = (item) => item.kind === "write" && wrong.has(item.position);

export const firstWrong = writes.find(isWrong);

// The first write of the run that holds a NaN or an infinity.
export const firstStrange = writes.find(({ tile }) => columns["number.nan"][tile] > 0) ?? writes.find(isStrange);
