// The numbers of a tile around one of its cells.
import { h } from "./dom.js";
import { BLOCKS, INF, NAN, UNWRITTEN, qualityText, tile } from "./data.js";
import { shown } from "./words.js";

const ROWS = 9;

// Which elements a cell stands for, along one axis.
export function span(cell, cells, elements) {
  const first = Math.floor((cell * elements) / cells), last = Math.floor(((cell + 1) * elements) / cells) - 1;
  return last > first ? `${first}..${last}` : `${first}`;
}

export function valueText(found, at) {
  const state = found.states[at];
  if (state === NAN) return found.nans?.[at] ? `NaN \u00d7${found.nans[at]}` : "NaN";
  if (state === UNWRITTEN) return "·";
  if (state === INF) return found.values[at] > 0 ? "inf" : "-inf";
  if (found.quality !== BLOCKS) return shown(found.values[at], 9);
  const [low, high] = [found.lows[at], found.highs[at]].map((each) => shown(each, 3));
  return low === high ? low : `${low} \u2026 ${high}`;
}

// The indices of a cell: those of the tensor's own dimensions, of blocks of elements those of rows and columns.
export function indexText(found, [row, column], sizes = null) {
  const isOne = found.rows === found.down && found.columns === found.across;
  if (sizes && sizes.length !== 2 && isOne) return `[${indexOf(row * found.across + column, sizes).join(", ")}]`;
  return `[${span(row, found.rows, found.down)}, ${span(column, found.columns, found.across)}]`;
}

export function indexOf(flat, sizes) {
  const index = [];
  for (let axis = sizes.length - 1; axis >= 0; axis--) {
    index[axis] = flat % sizes[axis];
    flat = Math.floor(flat / sizes[axis]);
  }
  return index;
}

// A cell in words: its indices and what it holds.
export function cellText(found, cell, sizes = null) {
  return `${indexText(found, cell, sizes)}: ${valueText(found, cell[0] * found.columns + cell[1])}`;
}

const CLASSES = { [NAN]: "nan", [UNWRITTEN]: "unwritten", [INF]: "inf" };

export function grid(number, [row, column], choose, room, lit = null, sizes = null) {
  const found = tile(number);
  const COLUMNS = Math.max(2, found.quality === BLOCKS ? Math.floor(room / 2) : room);
  const top = around(row, ROWS, found.rows), left = around(column, COLUMNS, found.columns);
  const rows = range(top, Math.min(found.rows, top + ROWS)), columns = range(left, Math.min(found.columns, left + COLUMNS));
  const isDeep = sizes && sizes.length > 2 && found.columns === found.across; // its columns are those of several dimensions
  const across = (each) => (isDeep ? indexOf(each, sizes.slice(1)).join(",") : span(each, found.columns, found.across));
  const head = h("tr", {}, h("td"), columns.map((each) => h("th", { scope: "col" }, across(each))));
  const body = rows.map((down) => h("tr", {},
    h("th", { scope: "row" }, span(down, found.rows, found.down)),
    columns.map((each) => {
      const at = down * found.columns + each;
      const here = down === row && each === column;
      return h(["td", CLASSES[found.states[at]], lit && (lit.has(at) ? "lit" : "unlit")].filter(Boolean).join("."),
        { "aria-current": here || undefined, onclick: () => choose([down, each]) }, valueText(found, at));
    })));
  const told = found.exact ? "elements" : "least and largest of blocks of elements";
  return h("div.numbers", { tabindex: 0, role: "group", "aria-label": "Numbers around the marked cell" }, h("table", { "aria-label": told }, h("thead", {}, head), h("tbody", {}, body)),
    h("p.hint.quality", {}, qualityText(found)));
}

function around(at, size, all) {
  return Math.max(0, Math.min(at - Math.floor(size / 2), all - size));
}

function range(first, stop) {
  return Array.from({ length: Math.max(0, stop - first) }, (_, at) => first + at);
}
