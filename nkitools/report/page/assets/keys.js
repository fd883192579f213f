// The keyboard: every part of the page can be had by it.
import { h } from "./dom.js";
import { run } from "./data.js";
import { showItem } from "./choose.js";
import { askWhy, move, moveCell, moveWithin, nextStrangeCell } from "./inspector.js";
import { focusSearch } from "./search.js";
import { moveLine, showFinding } from "./source.js";
import { firstStrange } from "./series.js";

const KEYS = [
  ["↑ ↓ or k j", "line before, line after (of those that wrote or printed)"],
  ["← → or h l", "turn before, turn after: the same write in another iteration or program"],
  [", .", "write before, write after at this line"],
  ["shift + arrows", "move the marked cell"],
  ["n", "next NaN, infinite or unwritten cell; where there is none, the first NaN of the run"],
  ["w", "why the marked element is what it is: the way back from it, walked with the arrow keys"],
  ["f", "next finding"],
  ["/", "search lines, tensors, instructions, findings and prints"],
  ["1 … 9", "the panes below"],
  ["?", "this help"],
];

export const help = h("dialog.help", { "aria-label": "Keys" }, h("h2", {}, "Keys"),
  h("dl", {}, KEYS.map(([key, meaning]) => [h("dt", {}, key.split(" ").map((each) => (/^(or|shift|\+|…)$/.test(each) ? ` ${each} ` : h("kbd", {}, each)))), h("dd", {}, meaning)])),
  h("form", { method: "dialog" }, h("button.go", {}, "Close")));

let finding = -1;

const actions = {
  ArrowUp: () => moveLine(-1), ArrowDown: () => moveLine(1), k: () => moveLine(-1), j: () => moveLine(1),
  ArrowLeft: () => move(-1), ArrowRight: () => move(1), h: () => move(-1), l: () => move(1),
  ",": () => moveWithin(-1), ".": () => moveWithin(1),
  n: () => nextStrangeCell() || (firstStrange && showItem(firstStrange)),
  f: () => run.findings.length && showFinding(run.findings[(finding = (finding + 1) % run.findings.length)]),
  "/": focusSearch, w: askWhy,
  "?": () => (help.open ? help.close() : help.showModal()),
};
const cells = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export function listenToKeys(panes, show) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches?.("input, textarea, select") && event.target.type !== "checkbox") return;
    if (help.open && event.key !== "?") return;
    let action = actions[event.key];
    if (event.shiftKey && cells[event.key]) action = () => moveCell(...cells[event.key]);
    const number = Number(event.key);
    if (number >= 1 && number <= panes.length) action = () => show(panes[number - 1]);
    if (!action) return;
    event.preventDefault();
    action();
  });
}
