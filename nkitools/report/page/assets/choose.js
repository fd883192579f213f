// How anything in the page brings anything else into view.
import { count, run, writeAt } from "./data.js";
import { set, state } from "./state.js";

export function lineOf(place) {
  const [file, line] = run.places[place];
  const at = run.files.findIndex((each) => each.path === file);
  return at < 0 || !line ? null : { file: at, line };
}

// A write or a print: with its line, unless the line that is selected already shows it, and its moment.
export function showItem(item, { keepLine = false } = {}) {
  const line = lineOf(item.place);
  const kept = keepLine && state.line;
  const changes = { item, cell: null, position: Math.min(Math.max(0, item.position), Math.max(0, count - 1)) };
  if (line && !kept) Object.assign(changes, { line, file: line.file });
  set(changes);
}

export function showLine(line, item) {
  set({ line, file: line.file });
  if (item) showItem(item, { keepLine: true });
}

export function showPosition(position) {
  const write = writeAt(position);
  if (write) return showItem(write);
  const line = lineOf(run.instructions.place[position]);
  set({ position, item: null, cell: null, ...(line ? { line, file: line.file } : {}) });
}

export function showArray(value, title) {
  set({ item: { kind: "array", value, title, tile: value.tile }, cell: null });
}
