// The tile at a line: which turn, its picture, its numbers, where it came from and where it went.
import { canvas, color, fill, h } from "./dom.js";
import {
  cellAt, count, differenceOf, dtypeOf, firstsWrong, isLeftOut, leftOutText, limitsOf, nameOf, numbers, numbersText, otherName, placeText, planOf, prints,
  region, run, shapeOf, tensorOf, tile, writes, wrong,
} from "./data.js";
import { heatMap, legend, scaleOf } from "./heat.js";
import { download } from "./npy.js";
import { grid, indexText } from "./numbers.js";
import { isStrange, isWrong, itemsAt, seriesOf, step, turn } from "./series.js";
import { sameElement } from "./slice.js";
import { showItem } from "./choose.js";
import { listen, set, state } from "./state.js";
import { flow, trail } from "./trail.js";
import { ask, canAsk, litCells } from "./why.js";
import { counted, grouped, shape, shown } from "./words.js";

export const element = h("section.inspector", { "aria-label": "Tile", id: "inspector", tabindex: -1 });

let series = null, at = -1;
const isTraced = run.traces.length > 0;

export function currentSeries() {
  return series === null ? null : { series, at };
}

export function move(direction) {
  if (!series || at < 0) return;
  const next = turn(series, at, direction);
  if (next >= 0) showItem(series.items[next], { keepLine: true });
}

export function moveWithin(direction) {
  const item = series?.items[at + direction];
  if (item) showItem(item, { keepLine: true });
}

export function moveCell(down, across) {
  const item = state.item;
  if (!item || item.tile === null) return;
  const { rows, columns } = tile(item.tile);
  const [row, column] = state.cell ?? [0, 0];
  set({ cell: [Math.min(rows - 1, Math.max(0, row + down)), Math.min(columns - 1, Math.max(0, column + across))] });
}

// The first cell after the marked one that is no number.
export function nextStrangeCell() {
  const item = state.item;
  if (!item || item.tile === null) return false;
  const { states, columns } = tile(item.tile);
  const from = state.cell ? state.cell[0] * columns + state.cell[1] + 1 : 0;
  for (let step = 0; step < states.length; step++) {
    const cell = (from + step) % states.length;
    if (states[cell]) {
      set({ cell: [Math.floor(cell / columns), cell % columns] });
      return true;
    }
  }
  return false;
}

// The way back from the marked element.
export function askWhy() {
  if (canAsk(state.item)) ask(state.item, state.cell ?? firstCell(state.item));
}

export function begin() {
  [width, height] = [element.clientWidth, element.clientHeight]; // so that it is drawn once
  draw();
}

function draw() {
  const focused = element.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  redraw();
  // Whoever steps by a button goes on with it, although it was drawn anew.
  if (focused) [...element.querySelectorAll("[aria-label]")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
}

function redraw() {
  series = state.line ? seriesOf(itemsAt(state.line)) : null;
  at = series && state.item ? series.items.indexOf(state.item) : -1;
  const item = state.item;
  if (!item) {
    fill(element, empty());
    return;
  }
  fill(element, heading(item), series && at >= 0 ? [steppers(), strip()] : null, body(item), trail(item));
}

function empty() {
  const some = writes.length + prints.length > 0;
  return h("div.empty", {},
    h("h2", {}, "Select a line of the source"),
    h("p", {}, some
      ? "Lines with a bar at their left wrote or printed tiles: choose one with the mouse or with ↑ and ↓, then step through its iterations with ← and →."
      : !count ? `It ran on ${run.run.target}: the page has its prints, findings and outputs, and none of its instructions.`
        : run.run.watched ? "No line has values: elements of accessors and streams are counted, in the pane Cores, and not kept."
        : `This run was not watched, so that no values were kept.${run.title ? "" : " Run it again with --nki-report, or inside nkitools.watching()."}`));
}

function heading(item) {
  if (item.kind === "array") return h("header", {}, h("h2", {}, item.title), h("p.sub", {}, describe(item.value)));
  if (item.kind === "print") {
    return h("header", {}, h("h2", {}, h("span.kind", {}, "printed"), item.prefix || "(no prefix)"),
      h("p.sub", {}, `${item.memory} ${item.dtype} ${shape(item.shape)} · ${placeText(item.place)}`));
  }
  const tensor = tensorOf(item), plan = planOf(item.position);
  return h("header", {},
    h("h2", {}, h("span.kind", {}, plan.name), h("code", {}, item.scattered ? tensor.name : region(item)), isWrong(item) &&
      h("span.pill.bad", {}, counted(wrong.get(item.position), differenceOf(item) ? "different element" : "wrong element"))),
    h("p.sub", {}, `${tensor.memory} ${dtypeOf(item)} ${shape(shapeOf(item))} · ${plan.engine}${isTraced ? "" : " engine"} · ${isTraced ? "event" : "instruction"} ${item.position} · ${item.places.map(placeText).join(" ← ")}`,
      item.scattered && " · an index on the device chose the rows: the whole tensor is shown"));
}

const describe = (value) => `${value.memory ? `${value.memory} ` : ""}${value.dtype} ${shape(value.shape)}`;

function steppers() {
  const one = (axis) => {
    const button = (text, direction) => {
      const next = step(series, at, axis, direction);
      return h("button.step", {
        "aria-label": `${direction > 0 ? "next" : "previous"} ${axis.name}`, disabled: next < 0,
        onclick: () => showItem(series.items[step(series, at, axis, direction)], { keepLine: true }),
      }, text);
    };
    const value = axis.of(at);
    return h("span.stepper", { data: { axis: axis.name } }, button("◀", -1),
      h("span", {}, h("b", {}, axis.name), rangeText(axis.name), " ", h("output", {}, value === undefined ? "–" : axis.text(value))), button("▶", 1));
  };
  return h("div.steppers", {}, series.axes.length ? series.axes.map(one) : h("span.hint", {}, "written once"),
    h("label.same", {}, h("input", {
      type: "checkbox", checked: state.sameScale || undefined, onchange: (event) => set({ sameScale: event.target.checked }),
    }), "one colour scale"), scales());
}

const RANGES = {
  affine_range: "its turns do not depend on each other, sums aside, and may run at the same time", sequential_range: "a turn may need the one before it: they run in order",
  static_range: "the compiler unrolls it", dynamic_range: "it turns on the device",
};

// What the range of a counter is called in the source.
function rangeText(name) {
  const called = run.ranges[state.item.place]?.[name];
  return called && h("span.range", { title: RANGES[called] ?? "" }, ` ${called}`);
}

const SCALES = { linear: "linear colours", log: "logarithmic", symmetric: "symmetric", quantile: "by rank (quantiles)" };

function scales() {
  return h("select", { "aria-label": "Colour scale", onchange: (event) => set({ scale: event.target.value }) },
    Object.entries(SCALES).map(([name, text]) => h("option", { value: name, selected: state.scale === name || undefined }, text)));
}

// The same place of every turn, in order.
function alike() {
  const { items, nths } = series, key = `${nths[at]}|${state.item.kind}`;
  if (!alikeOf.has(series)) alikeOf.set(series, new Map());
  const found = alikeOf.get(series);
  if (!found.has(key)) {
    found.set(key, items.filter((item, index) => nths[index] === nths[at] && item.kind === state.item.kind && item.tile !== null));
  }
  return found.get(key);
}

const alikeOf = new WeakMap(); // by series: what is found by place in a turn

// A bar from minimum to maximum for each turn, the one that is shown marked; wrong tiles and NaN stand out.
function strip() {
  const shownItems = alike();
  if (shownItems.length < 2) return null;
  const width = Math.max(120, (element.clientWidth || 600) - 28), height = 46;
  const bars = barsOf(shownItems, Math.floor(width / 2));
  const { low, high } = limitsOfTurns();
  const reach = high > low ? high - low : 1;
  const wide = width / bars.length;
  const y = (value) => 4 + (height - 10) * (1 - (value - low) / reach);
  const picture = canvas(width, height, (context) => {
    bars.forEach((bar, index) => {
      const x = index * wide, gap = wide > 4 ? 1 : 0;
      if (bar.current) {
        context.fillStyle = color("selected");
        context.fillRect(x, 0, Math.max(2, wide), height);
      }
      context.fillStyle = bar.wrong ? color("bad") : bar.strange ? color("nan") : color("accent");
      if (bar.low === null) context.fillRect(x + gap, 4, Math.max(1, wide - 2 * gap), height - 10);
      else {
        const top = y(bar.high), bottom = Math.max(top + 2, y(bar.low));
        context.globalAlpha = 0.55;
        context.fillRect(x + gap, top, Math.max(1, wide - 2 * gap), bottom - top);
        context.globalAlpha = 1;
        if (bar.mean !== null) context.fillRect(x + gap, y(bar.mean) - 1, Math.max(1, wide - 2 * gap), 2);
      }
      if (bar.wrong || bar.strange) context.fillRect(x + gap, height - 4, Math.max(2, wide - 2 * gap), 4);
    });
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${shownItems.length} iterations: smallest to largest element and mean of each`);
  picture.style.cursor = "pointer";
  picture.addEventListener("click", (event) => {
    const index = Math.floor((event.offsetX / picture.clientWidth) * shownItems.length);
    const found = shownItems[Math.min(shownItems.length - 1, Math.max(0, index))];
    showItem(found, { keepLine: true });
  });
  return h("div.strip", {}, picture, h("p.hint", {},
    `${counted(shownItems.length, "turn")}: smallest to largest element of ${bars.length < shownItems.length ? "several together" : "each (line: mean)"}`,
    shownItems.some(isWrong) && [" · ", h("span.wrongtext", {}, `red: differs from ${otherName}`)],
    shownItems.some(isStrange) && [" · ", h("span.nantext", {}, "pink: NaN or infinite")]));
}

// A bar for each turn, for several together where there are more of them than room.
function barsOf(items, most) {
  const together = Math.ceil(items.length / Math.max(1, most)), bars = [];
  for (let from = 0; from < items.length; from += together) {
    const some = items.slice(from, from + together);
    const { low, high } = limitsOf(some);
    bars.push({
      low, high, mean: together === 1 ? numbers(some[0].tile).mean : null, current: some.includes(state.item),
      wrong: some.some(isWrong), strange: some.some(isStrange),
    });
  }
  return bars;
}

function limitsOfTurns() {
  if (!turnLimits.has(alike())) turnLimits.set(alike(), limitsOf(alike()));
  return turnLimits.get(alike());
}

const turnLimits = new WeakMap(); // by the items of all turns

function scale(item) {
  const isAlone = !state.sameScale || !series || at < 0, { low, high } = isAlone ? numbers(item.tile) : limitsOfTurns();
  return scaleOf(low, high, item.value?.scale, state.scale, state.scale === "quantile" ? sampleOf(isAlone ? [item] : alike()) : null);
}

const SAMPLE = 1 << 15, samples = new WeakMap(); // by the items: some of their finite elements, in order of size

function sampleOf(items) {
  const kept = items.length > 1 ? samples.get(items) : null;
  if (kept) return kept;
  const every = Math.max(1, Math.ceil(items.length / 256)), found = []; // of very many turns every so many
  const some = items.filter((each, at) => at % every === 0 && !isLeftOut(each.tile)), most = Math.ceil(SAMPLE / Math.max(1, some.length));
  for (const each of some) {
    const { values, states } = tile(each.tile), skip = Math.max(1, Math.ceil(values.length / most));
    for (let index = 0; index < values.length; index += skip) if (!states[index]) found.push(values[index]);
  }
  const sorted = Float64Array.from(found).sort();
  samples.set(items, sorted);
  return sorted;
}

function body(item) {
  if (item.tile === null) return h("p.hint", {}, "Text only.");
  const found = tile(item.tile), told = numbers(item.tile), colours = scale(item);
  if (isLeftOut(item.tile)) return h("div.tile", {}, h("div.left", {}, h("p.hint", {}, leftOutText()), flow(item)), h("div.beside", {}, facts(item, told, found, [0, 0])));
  if (!found.values.length) return h("p.hint", {}, "It has no elements.");
  const sizes = sizesOf(item), inner = sizes.slice(1), cell = state.cell ?? firstCell(item);
  const choose = (next) => set({ cell: next });
  const room = (element.clientWidth || 640) - 46, roomy = room > 570;
  const half = Math.floor(roomy ? room * 0.46 : room);
  const lit = state.lit?.tile === item.tile ? new Set(litCells(found, state.lit.mask)) : null;
  const map = heatMap(item.tile, {
    lit, sizes,
    width: half - 24,
    height: Math.max(200, Math.floor(Math.min(window.innerHeight, element.clientHeight) * 0.55)), scale: colours, cell, point: (row, column) => choose([row, column]),
    label: `heat map of ${item.title ?? nameOf(item)}: ${numbersText(item.tile)}`,
  });
  const onChip = item.kind === "write" && ["SBUF", "PSUM"].includes(tensorOf(item).memory);
  return h("div.tile", {},
    h("div.left", { style: `width: ${half}px` },
      h("figure", {}, h("div.axes", {}, h("span.down", {}, counted(found.down, onChip ? "partition" : "row")), map),
        h("figcaption", {}, counted(found.across, "column"), inner.length > 1 && `: ${inner.join(" × ")}, dimensions ${inner.map((_, axis) => axis + 1).join(", ")} of ${shape(sizes)}`, legend(colours, told, item.masked ? "masked" : "unwritten"))),
      beside(item, colours, Math.floor(half * 0.45)),
      lit && h("p.hint", {}, `Lit: ${counted(state.lit.mask.reduce((sum, each) => sum + each, 0), "element")} that the asked one was made of. `, h("button.link", { onclick: () => set({ lit: null }) }, "Light all")),
      flow(item)),
    h("div.beside", {}, facts(item, told, found, cell), grid(item.tile, cell, choose, Math.floor(((roomy ? room - half : room) - 4 * rem()) / (5 * rem())), lit, sizes)));
}

const sizesOf = (item) => (item.kind === "array" ? item.value.shape : shapeOf(item)) ?? [];

const rem = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

// Where the reader looks first: at the first wrong element, of an output the worst one, else at what is no number.
function firstCell(item) {
  const found = tile(item.tile), known = item.kind === "write" && firstsWrong.get(item.position), worst = item.value?.comparison?.worst;
  const wrongAt = known ? sameElement(item, known.output, known.element)
    : worst?.length ? worst.reduce((flat, index, axis) => flat * item.value.shape[axis] + index, 0) : -1;
  if (wrongAt >= 0) return cellAt(found, Math.floor(wrongAt / found.across), wrongAt % found.across);
  const strange = found.states.findIndex((each) => each === 1 || each === 2);
  const place = strange >= 0 ? strange : 0;
  return [Math.floor(place / found.columns), place % found.columns];
}

// The same write in the other run, and how far the two are apart.
function beside(item, colours, width) {
  const found = item.kind === "write" && differenceOf(item);
  if (!found) return null;
  const figure = (title, number, scale) => h("figure", {}, h("figcaption", {}, title), isLeftOut(number) ? h("p.hint", {}, leftOutText()) : [
    heatMap(number, { width, height: 160, scale, label: `${title}: ${numbersText(number)}` }), legend(scale, numbers(number))]);
  const far = numbers(found.distance), jump = (flat) => { const shownTile = tile(item.tile); set({ cell: cellAt(shownTile, Math.floor(flat / shownTile.across), flat % shownTile.across) }); };
  return h("div.beside-run", {}, h("p", {}, `${counted(found.elements, "element")} differ from ${otherName}: `,
    h("button.link", { onclick: () => jump(found.first) }, "the first"), " ", h("button.link", { onclick: () => jump(found.worst) }, "the worst")),
  h("div.figures", {}, figure(otherName, found.other, colours), figure("difference", found.distance, scaleOf(far.low, far.high, "error"))));
}

function facts(item, told, found, [row, column]) {
  const jump = (flat) => set({ cell: cellAt(found, Math.floor(flat / found.across), flat % found.across) });
  const fact = (name, value, ...classes) => h("div", {}, h("dt", {}, name), h(["dd", ...classes].join("."), {}, value));
  return h("dl.facts", {},
    ...[["minimum", told.low], ["maximum", told.high], ["mean", told.mean]].map(([name, value]) => fact(name, `${run.rounded_numbers ? "about " : ""}${shown(value)}`)),
    fact("NaN", told.nan ? h("button.link", { onclick: () => told.strange >= 0 && jump(told.strange) }, grouped(told.nan)) : "0", told.nan ? "nan" : "ok"),
    fact("infinite", grouped(told.inf), told.inf ? "inf" : "ok"),
    fact(item.masked ? "masked" : "unwritten", grouped(told.unwritten), told.unwritten ? "unwritten" : "ok"),
    found.rows > 0 && h("div", { "aria-live": "polite" }, h("dt", {}, "cell"), h("dd", {}, indexText(found, [row, column], sizesOf(item)))),
    told.largest >= 0 && h("div", {}, h("dt", {}, "go to"), h("dd", {}, h("button.link", { onclick: () => jump(told.largest) }, "largest"), " ", download(item))),
    canAsk(item) && h("div", {}, h("dt", {}, "why"), h("dd", {}, h("button.link", { onclick: () => ask(item, [row, column]), title: "key w" }, "this element"))));
}

listen((changed) => {
  if (["item", "line", "cell", "sameScale", "scale", "lit"].some((key) => changed.has(key))) draw();
});
let width = 0, height = 0;
new ResizeObserver(() => {
  if (Math.abs(element.clientWidth - width) < 2 && Math.abs(element.clientHeight - height) < 20) return;
  [width, height] = [element.clientWidth, element.clientHeight];
  requestAnimationFrame(draw);
}).observe(element);
