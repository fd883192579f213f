// What was issued, in order, by engine.
import { fill, h } from "./dom.js";
import { count, instructions, operandsOf, placeText, planOf, region, run, turnText, wrong } from "./data.js";
import { showPosition } from "./choose.js";
import { virtualList } from "./list.js";
import { listen, state } from "./state.js";
import { counted, grouped, shown } from "./words.js";

const engines = new Map(), times = new Uint32Array(run.plans.length);
for (let at = 0; at < count; at++) times[instructions.plan[at]]++;
run.plans.forEach(([, engine], plan) => engines.set(engine, (engines.get(engine) ?? 0) + times[plan]));
const chosen = new Set(engines.keys());
let kept = [];

const list = virtualList({
  height: 28, label: "Instructions", choose: (position) => showPosition(position),
  row: (position) => {
    const plan = planOf(position), operands = operandsOf(position);
    const names = (written) => operands.filter((each) => each.written === written).map(region).join(", ");
    return h(`div.row${wrong.has(position) ? ".wrong" : ""}`, {}, h("span.count", {}, position),
      h(`span.engine.${plan.engine}`, {}, plan.engine), h("b.cut", {}, plan.name),
      h("code.cut", {}, `${names(true)} ← ${names(false) || "–"}`),
      h("span.cut", {}, turnText(instructions.loops[position], instructions.program[position])),
      h("span.cut.place", {}, placeText(instructions.place[position])), h("span.cut.count", {}, shown(plan.cycles, 4)));
  },
});
const buttons = h("div.engines", { role: "group", "aria-label": "Engines" });
const head = h("div.row.head", { "aria-hidden": "true" },
  ["#", "engine", "instruction", "written ← read", "turn", "line", "cost"].map((each) => h("span", {}, each)));
export const element = h("div.pane.instructions", {}, h("div.tools", {}, buttons), head, list.element);

function toggle(engine) {
  if (chosen.size === engines.size) {
    chosen.clear();
    chosen.add(engine);
  } else if (!chosen.delete(engine)) chosen.add(engine);
  if (!chosen.size) for (const each of engines.keys()) chosen.add(each);
  draw();
}

export function draw() {
  fill(buttons, [...engines].map(([engine, number]) => h(`button.engine.${engine}`, {
    "aria-pressed": chosen.has(engine), onclick: () => toggle(engine),
  }, `${engine} ${grouped(number)}`)), h("span.hint", {}, `${counted(count, "instruction")}; cost: cycles of the engine, of dma nanoseconds, where published`));
  kept = [];
  const isKept = run.plans.map(([, engine]) => chosen.has(engine));
  for (let at = 0; at < count; at++) if (isKept[instructions.plan[at]]) kept.push(at);
  list.show(kept, kept.indexOf(state.position));
}

listen((changed) => {
  if (changed.has("position")) {
    const at = kept.indexOf(state.position);
    if (at >= 0) list.mark(at);
  }
});
