// The page: its parts put together.
import { pause } from "./bytes.js";
import { fill, h } from "./dom.js";
import { count, differs, numbers, operandsOf, otherName, othersOf, prints, run, sourcesOf, tile, times, turnText, writes } from "./data.js";
import * as cores from "./cores.js";
import * as grid from "./grid.js";
import * as gridLanes from "./grid_lanes.js";
import * as findings from "./findings.js";
import * as inspector from "./inspector.js";
import * as instructions from "./instructions.js";
import { help, listenToKeys } from "./keys.js";
import * as memory from "./memory.js";
import * as arrays from "./outputs.js";
import * as overview from "./overview.js";
import * as printed from "./prints.js";
import { follow, keepAddress } from "./links.js";
import { border } from "./panes.js";
import { npyOfItem } from "./npy.js";
import { Slice } from "./slice.js";
import * as search from "./search.js";
import * as source from "./source.js";
import { listen, set, state } from "./state.js";
import * as time from "./time.js";
import { contentOf, isGrid, traces } from "./trace.js";
import * as why from "./why.js";
import { counted, grouped } from "./words.js";

const PANES = [
  { name: "overview", title: "Overview", element: overview.element, draw: overview.draw },
  { name: "outputs", title: "Outputs", number: run.outputs.length, element: arrays.outputs, draw: arrays.draw },
  { name: "findings", title: "Findings", number: times(run.findings), element: findings.element, draw: findings.draw },
  { name: "prints", title: "Prints", number: prints.length, element: printed.element, draw: printed.draw },
  { name: "instructions", title: traces.length ? "Events" : "Instructions", number: count, element: instructions.element, draw: instructions.draw },
  ...(isGrid ? [{ name: "grid", title: "Grid", element: grid.element, draw: grid.draw, always: true }] : []),
  ...(run.cores.length ? [{ name: "cores", title: "Cores", number: run.cores.length, element: cores.element, draw: cores.draw, always: true }] : []),
  ...(traces.length ? [] : [
    { name: "memory", title: "Memory", element: memory.element, draw: memory.draw, always: true },
  ]),
  ...(traces.length && !run.time.kernels ? [] : [{ name: "time", title: "Time", element: time.element, draw: time.draw, always: true }]),
  ...(traces.length && !isGrid ? [] : [
    { name: "why", title: "Why", element: why.element, draw: why.draw },
  ]),
  { name: "inputs", title: "Inputs", number: run.inputs.length, element: arrays.inputs, draw: arrays.draw },
];

const isCompared = ({ comparison }) => comparison && !comparison.message;

function verdict() {
  const wrong = run.outputs.reduce((sum, each) => sum + (each.comparison?.count ?? 0), 0);
  const errors = times(run.findings.filter((each) => each.severity === "error"));
  if (run.run.error && !errors) return h("span.pill.bad", {}, "ended with an error");
  if (errors) return h("span.pill.bad", {}, counted(errors, "error"));
  if (wrong) return h("span.pill.bad", {}, counted(wrong, run.against ? "different element" : "wrong element"));
  const strange = run.outputs.filter((each) => !isCompared(each)).reduce((sum, each) => sum + numbers(each.tile).nan, 0);
  if (strange) return h("span.pill.warning", {}, `${grouped(strange)} NaN in the outputs`);
  if (run.findings.length) return h("span.pill.warning", {}, counted(times(run.findings), "finding"));
  if (!run.outputs.some(isCompared)) return h("span.pill.hint", {}, "no findings, no reference");
  return h("span.pill.good", {}, run.outputs.every((each) => each.comparison?.tolerance !== "none")
    ? `agrees with ${otherName}` : "no findings, no tolerance stated");
}

function repair() {
  const [said, ...more] = run.run.repair;
  return said && h("details.repair", {}, h("summary", {}, said.replace(/^repair: /, "")), h("pre", {}, more.join("\n")));
}

function top() {
  const { kernel, chip, target, precision } = run.run;
  const about = [chip, target, precision === "full" && "full precision", counted(count, traces.length ? "event" : "instruction")].filter(Boolean).join(" · ");
  return h("header.top", {}, h("h1", {}, kernel), verdict(), repair(), h("span.sub", {}, about),
    run.title && run.title !== kernel && h("span.sub.test", {}, run.title),
    search.element, h("button.go.keys", { onclick: () => help.showModal() }, "Keys ", h("kbd", {}, "?")));
}

const tabs = h("div.tabs", { role: "tablist", "aria-label": "Panes" });
const pane = h("div.shown", { role: "tabpanel", tabindex: 0, id: "pane" });
const drawn = new Set();

// The arrow keys go from tab to tab; Tab goes on to the pane.
function otherTab(event) {
  const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!way) return;
  event.preventDefault();
  event.stopPropagation();
  const at = PANES.findIndex((each) => each.name === state.tab);
  set({ tab: PANES[(at + way + PANES.length) % PANES.length].name });
  document.getElementById(`tab-${state.tab}`).focus();
}

function showPane() {
  const found = PANES.find((each) => each.name === state.tab) ?? PANES[0];
  fill(tabs, PANES.map((each, at) => h("button", {
    role: "tab", id: `tab-${each.name}`, "aria-selected": each === found, tabindex: each === found ? 0 : -1, onkeydown: otherTab, title: `key ${at + 1}`, onclick: () => set({ tab: each.name }),
  }, each.title, each.number !== undefined && h("span.number", {}, grouped(each.number)))));
  if (pane.firstChild !== found.element) fill(pane, found.element);
  pane.setAttribute("aria-labelledby", `tab-${found.name}`);
  if (found.always || !drawn.has(found.name)) found.draw();
  drawn.add(found.name);
}

const app = document.getElementById("app");
const upper = h("main", {}, source.element, border("--left", "Border between source and tile", true, 45, () => upper), inspector.element);
fill(app, top(), upper, h("section.bottom", { "aria-label": "Run" }, border("--top", "Border above the panes", false, 63, () => app), tabs, pane), help);
await pause();
source.start();
await pause();
listen((changed) => {
  if (changed.has("tab")) showPane();
  if (changed.has("finding")) findings.markFinding(state.finding);
});
listenToKeys(PANES, (found) => set({ tab: found.name }));
showPane();
await pause();
inspector.begin();
if (!follow()) source.begin();
keepAddress();
window.nkitools = { Slice, contentOf, gridLanes, traces, differs, turnText, run, tile, numbers, writes, npyOfItem, operandsOf, othersOf, sourcesOf }; // for those who open the console
document.documentElement.dataset.ready = "yes";
// On paper: the verdict, the findings and the pictures of the outputs, whatever is open on the screen.
addEventListener("beforeprint", () => {
  for (const each of [overview, findings, arrays]) each.draw();
  fill(pane, h("h2", {}, "Overview"), overview.element, h("h2", {}, "Findings"), findings.element, h("h2", {}, "Outputs"), arrays.outputs);
});
addEventListener("afterprint", showPane);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  drawn.clear(); // what is drawn on a canvas has the colours of the other one
  inspector.begin();
  showPane();
});
