// The author's files: their lines, with what was found, printed and written at each.
import { fill, h } from "./dom.js";
import { colored } from "./colour.js";
import { prints, run, times } from "./data.js";
import { lineOf, showItem, showLine } from "./choose.js";
import { busyLines, firstStrange, firstWrong, isStrange, isWrong, itemsAt } from "./series.js";
import { listen, set, state } from "./state.js";
import { adviceAt, costOf, hasTime } from "./time.js";
import { counted } from "./words.js";

const tabs = h("div.files", { role: "tablist", "aria-label": "Source files" });
const code = h("div.code", { role: "grid", "aria-label": "Source lines", tabindex: 0, id: "source" });
export const element = h("section.source", { "aria-label": "Source" }, tabs, code);

const GRAVITY = { error: 3, warning: 2, hint: 1 };
const findings = new Map(), printed = new Map();
for (const finding of run.findings) collect(findings, finding.place, finding);
for (const print of prints) collect(printed, print.place, print);

function collect(map, place, item) {
  const line = lineOf(place);
  if (!line) return;
  const key = `${line.file}:${line.line}`;
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(item);
}

let rows = new Map(), file = -1;

function drawFiles() {
  fill(tabs, run.files.length > 1 && run.files.map((each, index) => h("button", {
    role: "tab", "aria-selected": index === state.file, title: each.path, onclick: () => set({ file: index }),
  }, each.name)));
}

function drawLines() {
  file = state.file;
  rows = new Map();
  const shownFile = run.files[file];
  if (!shownFile) {
    fill(code, h("p.hint", {}, "No source lines are known of this run."));
    return;
  }
  const lines = shownFile.lines.length ? shownFile.lines.map((text, at) => [shownFile.first + at, text])
    : busyLines(file).map((line) => [line, "(the source of this line is not at hand)"]);
  const busy = new Set(busyLines(file));
  const parts = colored(lines.map(([, text]) => text), shownFile.path);
  fill(code, lines.map(([line], at) => drawLine(line, parts[at], busy.has(line))));
}

function drawLine(line, parts, busy) {
  const { path } = run.files[file], cost = busy ? costOf(path, line) : null;
  const key = `${file}:${line}`, found = findings.get(key) ?? [], told = printed.get(key) ?? [];
  const items = busy ? itemsAt({ file, line }) : [];
  const classes = ["line", busy && "busy", items.some(isWrong) && "wrong", items.some(isStrange) && "strange"];
  const row = h(classes.filter(Boolean).map((each, at) => (at ? each : "div.line")).join("."), {
    role: "row", "aria-selected": false, data: { line },
    onclick: () => busy && chooseLine(line),
  },
  h("span.bar", { "aria-hidden": "true" }), h("span.number", { role: "rowheader" }, line), hasTime && costText(cost), h("span.text", { role: "gridcell" }, parts.length ? parts.map(([kind, text]) => (kind ? h(`span.${kind}`, {}, text) : text)) : " "),
  h("span.badges", { role: "gridcell" }, advice(path, line), found.length > 0 && findingBadge(found), told.length > 0 && printBadge(told)));
  rows.set(line, row);
  return row;
}

// The share of the engines' work that a line takes, and in words what it moves.
function costText(cost) {
  if (!cost) return h("span.cost", { role: "gridcell" });
  return h(`span.cost${cost.reloads ? ".reloads" : ""}`, { role: "gridcell", title: cost.text, style: `--share: ${Math.round(cost.share * 100)}%` },
    cost.share >= 0.005 ? `${Math.round(cost.share * 100)}%` : "<1%", cost.reloads > 0 && "↻");
}

function advice(path, line) {
  return adviceAt(path, line).map((each) => h("button.badge.hint", {
    title: `${each.message} ${each.remedy}`, onclick: (event) => { event.stopPropagation(); set({ tab: "time" }); },
  }, `${each.rule} −${Math.round(each.share * 100)} %`));
}

function findingBadge(found) {
  const worst = found.reduce((first, each) => (GRAVITY[each.severity] > GRAVITY[first.severity] ? each : first));
  const label = times(found) > 1 ? `${worst.rule} ×${times(found)}` : worst.rule;
  return h(`button.badge.${worst.severity}`, {
    title: worst.message, onclick: (event) => { event.stopPropagation(); showFinding(worst); },
  }, label);
}

function printBadge(told) {
  return h("button.badge.print", {
    title: counted(told.length, "print"), onclick: (event) => { event.stopPropagation(); showItem(told[0]); set({ tab: "prints" }); },
  }, `print ×${told.length}`);
}

export function showFinding(finding) {
  const line = lineOf(finding.place);
  if (line) {
    const items = itemsAt(line);
    const same = items.find((each) => each.loops === finding.counters && each.program === finding.program) ?? items.at(-1);
    showLine(line, same);
    if (!same) set({ item: null });
  }
  set({ tab: "findings", finding });
}

// A line with what was written there: in the turn that is shown already, else in the first that is wrong, else the first.
export function chooseLine(line) {
  const items = itemsAt({ file, line });
  const now = state.item;
  const same = now && now.kind !== "array" && items.find((each) => each.loops === now.loops && each.program === now.program);
  showLine({ file, line }, same || items.find(isWrong) || items.find(isStrange) || items[0]);
}

export function moveLine(direction) {
  const busy = busyLines(state.file);
  const here = state.line?.file === state.file ? state.line.line : direction > 0 ? 0 : Infinity;
  const next = direction > 0 ? busy.find((line) => line > here) : busy.filter((line) => line < here).at(-1);
  if (next !== undefined) chooseLine(next);
}

function mark() {
  code.querySelectorAll(".line[aria-selected=true]").forEach((row) => row.setAttribute("aria-selected", "false"));
  const row = state.line?.file === file && rows.get(state.line.line);
  if (!row) return;
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
}

listen((changed) => {
  if (changed.has("file") && state.file !== file) {
    drawFiles();
    drawLines();
  }
  if (changed.has("file") || changed.has("line")) mark();
});

// What is shown first: the first wrong tile, else the first NaN, else the first line that wrote something.
export function begin() {
  const item = firstWrong ?? firstStrange;
  if (item) showItem(item);
  else if (run.findings.length && lineOf(run.findings[0].place)) showLine(lineOf(run.findings[0].place), itemsAt(lineOf(run.findings[0].place)).at(-1));
  else if (busyLines(state.file).length) chooseLine(busyLines(state.file)[0]);
}

export function start() {
  drawFiles();
  drawLines();
  mark();
}
