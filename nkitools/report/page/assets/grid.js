// The grid of a Pallas call: its points, the block of each operand at one of them, what vector memory holds, DMAs and prints.
import { canvas, color, fill, h } from "./dom.js";
import { nameOf, numbersText, operandsOf, placeText, prints, region, run, storageOf, writeAt } from "./data.js";
import { heatOf, legend, scaleOf } from "./heat.js";
import { showItem, showPosition } from "./choose.js";
import { estimatesOf, lanesOf, placesOf, valueText, whyNoTime } from "./grid_lanes.js";
import { orderLanes } from "./order.js";
import { listen, state } from "./state.js";
import { boundsOf, contentOf, eventsByStep, isGrid, kindOf, noteOf, pointText, steps, traceAt, traces } from "./trace.js";
import { bytes, counted, grouped, shape, shown } from "./words.js";

export const element = h("div.grid");
const MOST = 400; // events of a step that are listed

const stepOf = (position) => Math.max(0, steps[position] ?? 0);
const engineOf = (position) => run.plans[run.instructions.plan[position]][1];

// The first event of a step; of one without events that of the nearest before it.
function showStep(trace, step) {
  const found = eventsByStep(trace);
  for (let at = step; at >= 0; at--) if (found[at]?.length) return showPosition(found[at][0]);
  showPosition(trace.first);
}

// --- the points ---------------------------------------------------------------------------------------------------------

function stepOn(trace, step, axis, direction) {
  const now = trace.points[step], alike = (point) => point.every((each, at) => at === axis || each === now[at]);
  let best = -1;
  trace.points.forEach((point, at) => {
    const away = (point[axis] - now[axis]) * direction;
    if (away > 0 && alike(point) && (best < 0 || away < (trace.points[best][axis] - now[axis]) * direction)) best = at;
  });
  return best;
}

function points(trace, step) {
  const now = trace.points[step] ?? [];
  const button = (text, next, label) => h("button.step", { disabled: next < 0 || next >= trace.points.length, "aria-label": label, onclick: () => showStep(trace, next) }, text);
  const axes = trace.grid.map((size, axis) => h("span.stepper", { data: { axis: `grid ${axis}` } }, button("◀", stepOn(trace, step, axis, -1), `previous point along dimension ${axis}`),
    h("span", {}, h("b", {}, `program_id(${axis})`), " ", h("output", {}, now[axis]), ` of ${size}`, trace.parallel[axis] && " ∥"), button("▶", stepOn(trace, step, axis, 1), `next point along dimension ${axis}`)));
  return h("div.steppers", {}, h("span.stepper", { data: { axis: "step" } }, button("◀", step - 1, "step before"),
    h("span", {}, h("b", {}, "step"), " ", h("output", {}, step + 1), ` of ${trace.points.length}`), button("▶", step + 1, "step after")), axes,
  trace.parallel.some(Boolean) && h("span.hint", {}, "∥ parallel: may run in any order"));
}

// The points as squares: the last dimension across, the others down.
function map(trace, step) {
  const across = trace.grid.at(-1) ?? 1, down = Math.max(1, trace.grid.slice(0, -1).reduce((product, each) => product * each, 1));
  if (!trace.grid.length || across > 400 || down > 120) return null;
  const size = Math.max(3, Math.min(22, Math.floor(260 / across), Math.floor(160 / down)));
  const flat = (point) => point.slice(0, -1).reduce((row, each, axis) => row * trace.grid[axis] + each, 0);
  const picture = canvas(across * size + 1, down * size + 1, (context) => {
    trace.points.forEach((point, at) => {
      context.fillStyle = at === step ? color("accent") : at < step ? color("selected") : color("raised");
      context.fillRect(point.at(-1) * size, flat(point) * size, size - 1, size - 1);
    });
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `Grid ${pointText(trace.grid)}: at ${pointText(trace.points[step] ?? [])}, step ${step + 1} of ${trace.points.length}`);
  picture.style.cursor = "pointer";
  picture.addEventListener("click", (event) => {
    const [column, row] = [Math.floor(event.offsetX / size), Math.floor(event.offsetY / size)];
    const at = trace.points.findIndex((point) => point.at(-1) === column && flat(point) === row);
    if (at >= 0) showStep(trace, at);
  });
  return h("figure.points", {}, picture, h("figcaption", {}, "grid points so far; click one to go there"));
}

// --- blocks over the arrays ---------------------------------------------------------------------------------------------

// What touched an array: up to a step the parts that the pipeline moved, and at it those of the kernel and its DMAs.
function touchesOf(trace, storage, step) {
  const before = [], now = [];
  let block = null;
  eventsByStep(trace).slice(0, step + 1).forEach((events, at) => events.forEach((position) => {
    for (const operand of operandsOf(position)) {
      if (operand.storage !== storage) continue;
      const found = { bounds: boundsOf(operand), position, written: operand.written };
      if (engineOf(position) === "pipeline") [block, before[before.length]] = [{ ...found, fresh: at === step }, found];
      else if (at === step) now.push(found);
      else before.push(found);
    }
  }));
  return { before, now, block };
}

// The rows (all dimensions but the last, one after the other) that bounds take.
function rowsOf(bounds, sizes) {
  let rows = [0];
  for (let axis = 0; axis < sizes.length - 1; axis++) {
    const [first, last] = bounds[axis], isLast = axis === sizes.length - 2;
    rows = rows.flatMap((row) => (isLast ? [row * sizes[axis] + first] : Array.from({ length: Math.min(64, last - first) }, (_, at) => row * sizes[axis] + first + at)));
    if (rows.length > 64) rows.length = 64;
  }
  const tall = sizes.length > 1 ? bounds[sizes.length - 2][1] - bounds[sizes.length - 2][0] : 1;
  return rows.map((row) => [row, row + tall]);
}

function array(trace, [storage, kind, block], step) {
  const [name, memory, dtype, sizes] = storageOf(storage), { before, now, block: current } = touchesOf(trace, storage, step);
  const columns = sizes.at(-1) ?? 1, rows = sizes.slice(0, -1).reduce((product, each) => product * each, 1);
  const wide = Math.max(24, Math.min(220, 150 * Math.sqrt(columns / rows))), tall = Math.max(16, Math.min(150, (wide * rows) / columns));
  const [x, y] = [wide / columns, tall / rows];
  const picture = canvas(wide + 2, tall + 2, (context) => {
    const all = (bounds) => rowsOf(bounds, sizes).map(([top, bottom]) => [1 + (bounds.at(-1)?.[0] ?? 0) * x, 1 + top * y, Math.max(1.5, ((bounds.at(-1)?.[1] ?? 1) - (bounds.at(-1)?.[0] ?? 0)) * x), Math.max(1.5, (bottom - top) * y)]);
    context.strokeStyle = color("soft");
    context.strokeRect(0.5, 0.5, wide + 1, tall + 1);
    context.fillStyle = color("selected");
    for (const { bounds } of before) for (const box of all(bounds)) context.fillRect(...box);
    context.strokeStyle = color("line");
    if (block.length && (rows / (block.at(-2) ?? 1)) * (columns / block.at(-1)) < 2000) {
      for (let at = block.at(-1); at < columns; at += block.at(-1)) context.strokeRect(1 + at * x, 1, 0, tall);
      for (let at = block.at(-2) ?? 1; at < rows; at += block.at(-2) ?? rows) context.strokeRect(1, 1 + at * y, wide, 0);
    }
    const parts = current ? [current, ...now] : now;
    for (const { bounds, written } of parts) {
      context.fillStyle = written ? "#d04a6a" : color("accent");
      context.globalAlpha = 0.75;
      for (const box of all(bounds)) context.fillRect(...box);
      context.globalAlpha = 1;
    }
  });
  const where = current ? `[${current.bounds.map(([first, last]) => `${first}:${last}`).join(", ")}]` : "";
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${kind} ${name} ${shape(sizes)}: ${where || "not touched so far"}`);
  const parts = now.slice(0, 6).map(({ position }) => h("button.link", { onclick: () => showPosition(position) }, kindOf(position)));
  return h("figure", {}, h("figcaption", {}, h("b", {}, name), ` ${kind}, ${memory} ${dtype} ${shape(sizes)}`, block.length > 0 && `, block ${pointText(block)}`), picture,
    h("figcaption", {}, current ? [h("button.link", { onclick: () => showPosition(current.position) }, h("code", {}, `${name}${where}`)), current.fresh ? (current.written ? " stored here" : " loaded here") : current.written ? " stored before" : " is still there"] : !parts.length && "not touched so far",
      parts.map((each) => [" ", each])));
}

// --- vector memory ------------------------------------------------------------------------------------------------------

function content(trace, [storage, kind], position) {
  const [name, memory, dtype, sizes] = storageOf(storage), found = contentOf(storage, trace, position);
  const what = `${name} ${kind === "window" ? "block" : kind}`;
  const caption = h("figcaption", {}, h("b", {}, name), ` ${kind === "window" ? "block" : kind}, ${memory} ${dtype} ${shape(sizes)}`);
  if (!found) return h("figure", {}, caption, h("p.hint", {}, "Its elements are not all in this page."));
  if (found.empty) return h("figure", {}, caption, h("p.hint", {}, "Undefined: nothing was written there, or it was stored and given up."));
  const told = toldOf(found), scale = scaleOf(told.low, told.high);
  return h("figure", {}, caption, heatOf(found, told.mean ?? 0, { width: 190, height: 120, scale, label: `${what}: ${numbersText(writeAt(found.position).tile)}`, point: () => showPosition(found.position) }),
    legend(scale, told), h("figcaption", {}, "last: ", h("button.link", { onclick: () => showPosition(found.position) }, `${kindOf(found.position)} ${placeText(run.instructions.place[found.position])}`)));
}

function toldOf({ values, states }) {
  let low = Infinity, high = -Infinity, sum = 0, some = 0;
  const counts = [0, 0, 0, 0];
  for (let at = 0; at < values.length; at++) {
    counts[states[at]]++;
    if (states[at]) continue;
    if (values[at] < low) low = values[at];
    if (values[at] > high) high = values[at];
    sum += values[at];
    some++;
  }
  return { low: some ? low : null, high: some ? high : null, mean: some ? sum / some : null, nan: counts[1], inf: counts[2], unwritten: counts[3] };
}

// --- the events ---------------------------------------------------------------------------------------------------------

const operandText = (position) => operandsOf(position).map((each) => `${each.written ? "→ " : "← "}${region(each)}`).join(" ");

function sentence(position) {
  return `${position} ${kindOf(position)} ${operandText(position)} ${noteOf(position)} ${placeText(run.instructions.place[position])}`;
}

function listed(trace, step) {
  const all = eventsByStep(trace)[step] ?? [];
  return h("table.plain.events", {}, h("tbody", {}, all.slice(0, MOST).map((position) => h("tr", { "aria-current": position === state.position || undefined },
    h("td", {}, h("button.link", { onclick: () => showPosition(position), "aria-label": `${kindOf(position)}, event ${position}` }, kindOf(position))), h("td", {}, operandText(position) || noteOf(position)),
    h("td", {}, operandText(position) ? noteOf(position) : ""), h("td", {}, placeText(run.instructions.place[position])))),
  all.length > MOST && h("tr", {}, h("td", { colspan: 4 }, `and ${grouped(all.length - MOST)} more`))));
}

function printed(trace, step) {
  const key = (trace.points[step] ?? []).join(), here = prints.filter((print) => (print.point ?? []).join() === key);
  return h("ul.plain", {}, here.slice(0, 60).map((print) => h("li", {}, h("button.link", { onclick: () => showItem(print) }, print.prefix || "(no prefix)"), ` ${print.tile === null ? "" : numbersText(print.tile)}`)),
    !here.length && h("li.hint", {}, prints.length ? "none at this point" : "the kernel prints nothing"), here.length > 60 && h("li.hint", {}, `and ${here.length - 60} more`));
}

// --- lanes ---------------------------------------------------------------------------------------------------------------

let chosen = null; // the chip whose estimate is the axis; "" for the order of interpretation, null for what there is

function lanes(trace) {
  const estimates = estimatesOf(trace), placed = estimates.filter((each) => !whyNoTime(trace, each));
  const estimate = placed.find((each) => each.chip === (chosen ?? placed[0]?.chip)) ?? null, places = placesOf(trace, estimate);
  const choose = h("select", { "aria-label": "Axis of the lanes", onchange: (event) => { chosen = event.target.value; draw(); } },
    [["", "in the order of interpretation"], ...placed.map(({ chip }) => [chip, `in estimated time on ${chip}`])].map(([value, text]) => h("option", { value, selected: value === (estimate?.chip ?? "") || undefined }, text)));
  const without = estimates.filter((each) => whyNoTime(trace, each)).map((each) => `no estimated time on ${each.chip}: ${whyNoTime(trace, each)}`);
  const missing = run.left_out_modes.estimates ?? "check(..., estimates=True) or run.estimate() gives an estimate of the time";
  return [h("h4", {}, "Lanes ", placed.length > 0 ? choose : "in the order of interpretation", h("span.sub", {}, estimate ? ` an estimate, nothing was measured: ${shown(estimate.compute_us, 3)} µs of computing over ${counted(trace.points.length, "point")} by the compiler's static profile, `
    + `${bytes(estimate.hbm_bytes)} in ${shown(estimate.memory_us, 3)} µs at the peak of the HBM, each block kept twice. Within a point only the order is known: events stand evenly, a DMA from its start to where it was waited for`
    : " which is no time; a DMA from its start to where it was waited for; shaded: every other point of the grid", [...without, !estimates.length && missing].filter(Boolean).map((each) => `; ${each}`))),
  orderLanes(lanesOf(trace, places), places.length, Math.max(360, (element.clientWidth || 900) - 4), {
    label: `${counted(trace.count, "event")} of ${trace.name} by pipeline, kernel, DMA and semaphores${estimate ? `, in estimated time on ${estimate.chip}: ${shown(places.length, 4)} µs` : ""}`,
    bands: places.points.filter((each, at) => at % 2), unit: estimate && "µs", sentence: (position) => `${sentence(position)}${valueText(trace, position)}${estimate ? spanText(places.spanOf(position)) : ""}` })];
}

const spanText = ([from, to]) => ` · about ${shown(from, 4)} to ${shown(to, 4)} µs`;

// --- the pane -----------------------------------------------------------------------------------------------------------

function chooser(trace) {
  if (traces.length < 2) return null;
  return h("label", {}, "Pallas call ", h("select", { onchange: (event) => showPosition(traces[Number(event.target.value)].first) },
    traces.map((each, at) => h("option", { value: at, selected: each === trace || undefined }, `${at + 1}: ${each.name} ${pointText(each.grid)}`))));
}

// What the compiler of each chip says, and the model of vector memory.
function compiled() {
  const rows = run.compiled.flatMap(({ chip, left_out: why, kernels }) => (kernels.length ? kernels.map((each) => [chip, each.name, each.accepted === null ? why || "not asked" : each.accepted ? "compiles" : "does not compile",
    `${bytes(each.vmem_bytes)} of ${bytes(each.vmem_limit)}`, each.vmem_measured === null ? "" : `${bytes(each.vmem_measured)} measured`, each.spills === null ? "" : counted(each.spills, "spill")]) : [[chip, "", why, "", "", ""]]));
  if (!rows.length) return null;
  return h("div", {}, h("h4", {}, "The compiler", h("span.sub", {}, " vector memory: each block once per buffer, and the scratch")), h("table.plain", {}, h("tbody", {}, rows.map((row) => h("tr", {}, row.map((each) => h("td", {}, each)))))));
}

export function draw() {
  if (!isGrid) return;
  const trace = traceAt(state.position), step = stepOf(state.position);
  const arrays = trace.buffers.filter(([, kind]) => kind === "input" || kind === "output"), fast = trace.buffers.filter(([, kind]) => ["window", "scratch", "scoped", "scalar"].includes(kind));
  const size = fast.reduce((sum, [storage]) => sum + bytesOf(storage), 0);
  const unit = run.programs[run.instructions.program[state.position]]?.[0], mine = ([, , , , whose]) => unit === null || unit === undefined || whose < 0 || whose === unit;
  fill(element, h("div.tools", {}, chooser(trace), h("h3", {}, `${trace.name}, grid ${pointText(trace.grid)}`, h("span.sub", {}, ` at ${pointText(trace.points[step] ?? [])}`))), points(trace, step),
    h("div.figures", {}, map(trace, step), arrays.filter(mine).map((each) => array(trace, each, step))),
    h("h4", {}, "Vector memory after the selected event", h("span.sub", {}, ` ${bytes(size)} in ${counted(fast.length, "buffer")}, each once; a compiler keeps blocks twice`)),
    h("div.figures", {}, fast.filter(mine).map((each) => content(trace, each, state.position))),
    lanes(trace),
    h("div.details", {}, h("div", {}, h("h4", {}, "At this point"), listed(trace, step)), h("div", {}, h("h4", {}, "Prints at this point"), printed(trace, step)), compiled()),
    trace.left_out > 0 && h("p.hint", {}, `${grouped(trace.left_out)} later events were counted only.`),
    trace.without_value > 0 && h("p.hint", {}, `Of ${grouped(trace.without_value)} writes no values were kept, as the budget was used up.`));
}

function bytesOf(storage) {
  const [, , dtype, sizes] = storageOf(storage), bits = Number(/(\d+)/.exec(dtype)?.[1] ?? 8);
  return (sizes.reduce((product, each) => product * each, 1) * (dtype === "bool" ? 8 : bits)) / 8;
}

listen((changed) => {
  if (changed.has("position") && state.tab === "grid") draw();
});
