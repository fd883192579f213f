// What is selected stands in the address: `#line=110&turn=n:2&el=3,17`, so that a reload keeps it and others can be sent it.
import { cellAt, loopsOf, run, tile } from "./data.js";
import { showItem, showLine } from "./choose.js";
import { itemsAt, seriesOf } from "./series.js";
import { listen, set, state } from "./state.js";

function address() {
  const { line, item, cell, tab } = state, parts = [];
  if (line) {
    if (line.file) parts.push(["file", line.file]);
    parts.push(["line", line.line]);
    const items = itemsAt(line), at = items.indexOf(item);
    if (at >= 0) {
      const turn = loopsOf(item.loops).map(([name, value]) => `${name}:${value}`).join(",");
      if (turn) parts.push(["turn", turn]);
      if (item.program) parts.push(["program", item.program]);
      const nth = seriesOf(items).nths[at];
      if (nth) parts.push(["write", nth]);
    }
  }
  if (cell && item && item.tile !== null) parts.push(["el", elementOf(tile(item.tile), cell).join(",")]);
  if (tab !== "overview") parts.push(["tab", tab]);
  return parts.map(([name, value]) => `${name}=${encodeURIComponent(value).replaceAll("%3A", ":").replaceAll("%2C", ",")}`).join("&");
}

// The first element of a cell.
function elementOf({ rows, columns, down, across }, [row, column]) {
  return [Math.floor((row * down) / rows), Math.floor((column * across) / columns)];
}

// Show what the address says; false where it names no line of the run.
export function follow() {
  const said = new URLSearchParams(location.hash.slice(1));
  if (said.has("tab")) set({ tab: said.get("tab") });
  const line = { file: Number(said.get("file") ?? 0), line: Number(said.get("line") ?? 0) };
  if (!line.line || !run.files[line.file]) return false;
  const items = itemsAt(line), { nths } = seriesOf(items);
  const turn = said.get("turn") ?? "", program = Number(said.get("program") ?? 0), nth = Number(said.get("write") ?? 0);
  const at = items.findIndex((item, index) => item.program === program && nths[index] === nth
    && loopsOf(item.loops).map(([name, value]) => `${name}:${value}`).join(",") === turn);
  const item = items[at];
  showLine(line, item);
  if (!item) set({ item: null });
  const element = said.get("el")?.split(",").map(Number);
  if (item && item.tile !== null && element?.length === 2 && element.every(Number.isInteger)) set({ cell: cellAt(tile(item.tile), ...element) });
  return true;
}

let written = "";

export function keepAddress() {
  if (location.protocol === "about:") return; // a frame of a notebook has no address of its own
  const write = () => {
    written = `#${address()}`;
    history.replaceState(null, "", written);
  };
  let waiting = 0; // browsers refuse many changes of an address in a short time
  listen((changed) => {
    if (!["line", "item", "cell", "tab"].some((key) => changed.has(key))) return;
    clearTimeout(waiting);
    waiting = setTimeout(write, 250);
  });
  window.addEventListener("hashchange", () => location.hash !== written && follow());
}
