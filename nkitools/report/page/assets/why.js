// Why an element is what it is: the way back from it, step by step, with its regions lit in every tile that it passed.
import { fill, h } from "./dom.js";
import {
  NEVER_WRITTEN, cellAt, isLeftOut, layoutOf, nameOf, operandsOf, placeText, planOf, region, run, shapeOf, storageOf, tile, turnText, wrong, writeAt,
} from "./data.js";
import { showArray, showPosition } from "./choose.js";
import { virtualList } from "./list.js";
import { cellText, valueText } from "./numbers.js";
import { sizeOf } from "./rules.js";
import { Slice } from "./slice.js";
import { set, state } from "./state.js";
import { isGrid, pointText, steps, traceAt } from "./trace.js";
import { counted, grouped } from "./words.js";

const MOST = 5000; // steps that are listed
const AT_ONCE = 40; // milliseconds of work without a pause
let asked = null; // { title, slice }

const heading = h("div.tools");
const list = virtualList({ height: 28, label: "The way back, the last instruction first", row: drawRow, choose: show });
export const element = h("div.pane.why", { onkeydown: walk }, heading, list.element);

// Whether the way back from the marked element can be asked for.
export const canAsk = (item) => (isGrid || !run.traces.length) && (item?.kind === "write" || item?.value?.layout !== undefined) && item.tile !== null && !isLeftOut(item.tile);

// The elements that a cell of a tile stands for, as a mask of the view.
function maskOf(item, shape, [row, column]) {
  const { rows, columns, down, across } = tile(item.tile), mask = new Uint8Array(sizeOf(shape));
  const bounds = (cell, cells, elements) => [Math.floor((cell * elements) / cells), Math.floor(((cell + 1) * elements) / cells)];
  const [left, right] = bounds(column, columns, across), [top, bottom] = bounds(row, rows, down);
  for (let at = top; at < bottom; at++) mask.fill(1, at * across + left, at * across + right);
  return mask;
}

export function ask(item, cell) {
  if (!canAsk(item)) return;
  const slice = new Slice(), isWrite = item.kind === "write";
  const operands = isWrite ? operandsOf(item.position) : [];
  const at = operands.findIndex((each) => each.written && each.storage === item.storage && each.offset === item.offset);
  if (isWrite && at < 0) return;
  const shape = isWrite ? shapeOf(item) : item.value.shape;
  const mask = maskOf(item, isWrite ? layoutOf(operands[at])[0] : shape, cell);
  if (isWrite) slice.askAt(item.position, planOf(item.position).operands[at], mask);
  else slice.askAtEnd(item.value, mask);
  asked = { title: `${item.title ?? nameOf(item)}${cellText(tile(item.tile), cell)}`, slice };
  set({ tab: "why" });
  goOn();
  list.pick(0);
  list.element.focus();
}

// Go back a stretch at a time, so that the page stays alive.
function goOn() {
  const { slice } = asked, here = asked;
  slice.reach(MOST, AT_ONCE);
  drawAll();
  if (!slice.isWhole && slice.steps.length < MOST) setTimeout(() => asked === here && goOn());
}

function drawAll() {
  if (!asked) return draw();
  const { slice, title } = asked, steps = slice.steps, ready = slice.isWhole || steps.length >= MOST;
  const rows = [...steps, ...(ready ? slice.leaves.values() : [])];
  fill(heading, h("b", {}, title), h("span.hint", {}, `rests on ${counted(steps.length, isGrid ? "event" : "instruction")}`,
    !slice.isWhole && steps.length < MOST && " so far …", steps.length >= MOST && !slice.isWhole && "; the way goes on, it is not shown further",
    !slice.isExact && (isGrid ? "; which elements a kernel computes from which reads is not known: all that it had read before at the point is here"
      : "; where data chose elements, all that they may have chosen is here"),
    " · ↓ or → goes back, ↑ or ← comes forth again; what counts is lit in each tile"));
  list.show(rows, Math.min(list.chosen(), rows.length - 1));
}

export function draw() {
  if (asked) return drawAll();
  fill(heading, h("p.hint", {}, "Mark an element of a tile or of an output, then press ", h("kbd", {}, "w"), ": from where did it come?"));
  list.show([]);
}

function walk(event) {
  const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!way || event.shiftKey) return;
  event.preventDefault();
  event.stopPropagation();
  list.pick(list.chosen() + way);
}

// The marked elements of a view, in words: the least box around them, and how many.
function partText(operand, mask) {
  const [shape] = layoutOf(operand), lows = [...shape], highs = shape.map(() => -1);
  let found = 0;
  for (let at = mask.indexOf(1); at >= 0; at = mask.indexOf(1, at + 1)) {
    found++;
    for (let axis = shape.length - 1, rest = at; axis >= 0; rest = Math.floor(rest / shape[axis]), axis--) {
      lows[axis] = Math.min(lows[axis], rest % shape[axis]);
      highs[axis] = Math.max(highs[axis], rest % shape[axis]);
    }
  }
  const label = isGrid ? `${storageOf(operand.storage)[1]} ${region(operand)}` : region(operand); // a block has the name of its array
  if (found === mask.length) return label;
  const box = lows.map((low, axis) => (highs[axis] > low ? `${low}:${highs[axis] + 1}` : `${low}`)).join(", ");
  return `${label} · [${box}]${found < sizeOf(lows.map((low, axis) => highs[axis] - low + 1)) ? `, ${grouped(found)} of these` : ""}`;
}

function drawRow(entry) {
  if (entry.kind !== undefined) return drawLeaf(entry);
  const { position, made, reads } = entry, { name, operands } = planOf(position), own = operandsOf(position);
  const { loops, program, place } = run.instructions, write = writeAt(position);
  const results = [...made].map(([result, mask]) => (operands.includes(result) ? partText(own[operands.indexOf(result)], mask) : result));
  const point = isGrid && traceAt(position).points[steps[position]]; // short, as there are only so many letters
  const turn = point ? `at ${pointText(point)}` : turnText(loops[position] || (write?.loops ?? 0), program[position]);
  const from = [...reads.values()].map(({ operand, mask }) => partText(operand, mask));
  return h(`div.row${wrong.has(position) ? ".wrong" : ""}`, {}, h("span.count", {}, position), h("span.cut.place", {}, placeText(place[position])),
    h("b.cut", {}, name), h("span.cut", {}, turn),
    h("code.cut", { title: `${results.join(", ")} ← ${from.join(", ")}` }, `${results.join(", ")} ← ${from.join(", ") || "–"}`), h("span.cut.count", {}, held(entry)));
}

function drawLeaf({ kind, storage, starts, position }) {
  const [name, memory, dtype] = storageOf(storage);
  const what = kind === NEVER_WRITTEN ? "never written" : "as it was given";
  return h(`div.row${kind === NEVER_WRITTEN ? ".wrong" : ""}`, {}, h("span.count", {}, "end"), h("span.cut.place", {}, placeText(run.instructions.place[position] ?? 0)),
    h(kind === NEVER_WRITTEN ? "b.unwritten" : "b", {}, what), h("span", {}, memory), h("code.cut", {}, `${name || "(unnamed)"}: ${counted(starts.size, "element")} of ${dtype}`), h("span"));
}

// What the lit elements of a step hold, as far as the page knows it.
function held({ position, made }) {
  const write = writeAt(position), mask = made.get(resultOf(write));
  if (!write || !mask || isLeftOut(write.tile)) return "";
  const found = tile(write.tile), cells = litCells(found, mask);
  if (cells.length === 1 && found.exact) return valueText(found, cells[0]);
  const strange = cells.filter((each) => found.states[each] === 1 || found.states[each] === 2).length;
  return strange ? `${strange} NaN or inf` : "";
}

function resultOf(write) {
  if (!write) return "";
  const at = operandsOf(write.position).findIndex((each) => each.written && each.storage === write.storage && each.offset === write.offset);
  return planOf(write.position).operands[at];
}

// The cells of a tile that hold marked elements.
export function litCells(found, mask) {
  const cells = new Set();
  for (let at = mask.indexOf(1); at >= 0; at = mask.indexOf(1, at + 1)) {
    const [row, column] = cellAt(found, Math.floor(at / found.across), at % found.across);
    cells.add(row * found.columns + column);
  }
  return [...cells];
}

function show(entry) {
  if (entry.kind !== undefined) return showLeaf(entry);
  const write = writeAt(entry.position);
  light(write?.tile ?? null, entry.made.get(resultOf(write)), () => showPosition(entry.position));
}

function showLeaf({ kind, storage, starts, position, operand }) {
  const given = kind === NEVER_WRITTEN ? null : run.inputs.find((each) => each.storage === storage);
  if (!given) return position < run.instructions.plan.length && showPosition(position);
  const mask = new Uint8Array(sizeOf(given.shape)), itemsize = layoutOf(operand)[2];
  for (const each of starts) mask[Math.floor(each / itemsize)] = 1;
  light(given.tile, mask, () => showArray(given, given.name));
}

// Light elements of a tile, show it, and mark the first of them.
function light(number, mask, present) {
  set({ lit: number === null || !mask ? null : { tile: number, mask } });
  present();
  if (number === null || !mask || isLeftOut(number)) return;
  const found = tile(number), first = litCells(found, mask.subarray(0, mask.indexOf(1) + 1))[0];
  if (first !== undefined && state.item?.tile === number) set({ cell: [Math.floor(first / found.columns), first % found.columns] });
}
