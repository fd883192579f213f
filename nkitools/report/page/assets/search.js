// Search over lines, tensors, instructions, findings and prints; each result leads to its place.
import { fill, h } from "./dom.js";
import { count, instructions, nameOf, placeText, prints, region, run, shapeOf, tensorOf, turnText, writes } from "./data.js";
import { showItem, showLine, showPosition } from "./choose.js";
import { itemsAt } from "./series.js";
import { showFinding } from "./source.js";
import { grouped, shape } from "./words.js";

const MOST = 8; // results of a kind that are listed

const results = h("div.results", { role: "listbox", "aria-label": "Results", id: "results" });
const box = h("input", {
  type: "search", placeholder: "Search  /", "aria-label": "Search lines, tensors, instructions, findings and prints", "aria-controls": "results",
  oninput: () => draw(), onkeydown: choose,
});
export const element = h("div.search", {}, box, results);

export function focusSearch() {
  box.focus();
  box.select();
}

// The first results of a kind, and how many there are.
function some(kind, total, all) {
  const first = [];
  for (const each of all) {
    if (first.length === MOST) break;
    first.push(each);
  }
  return { kind, total, first };
}

function lines(has) {
  const all = run.files.flatMap(({ name, first, lines: texts }, file) => texts.map((text, at) => ({ file, line: first + at, text, name })))
    .filter(({ text, name, line }) => has(text) || has(`${name}:${line}`));
  return some("Lines", all.length, all.map((each) => [`${each.name}:${each.line} ${each.text.trim()}`, () => showLine(each, itemsAt(each)[0])]));
}

function tensors(has) {
  const seen = new Map();
  for (const write of writes) if (!seen.has(write.storage) && has(tensorOf(write).name)) seen.set(write.storage, write);
  return some("Tensors", seen.size, [...seen.values()].map((write) => {
    const { name, memory, dtype, shape: sizes } = tensorOf(write);
    return [`${name} ${memory} ${dtype} ${shape(sizes)}`, () => showItem(write)];
  }));
}

function issued(has, words) {
  const plans = run.plans.map(([name, engine]) => has(name) || has(engine)), first = [];
  const number = /^#?\d+$/.test(words) ? Number(words.replace("#", "")) : -1;
  let total = 0;
  for (let at = 0; at < count; at++) {
    if (at !== number && !plans[instructions.plan[at]]) continue;
    if (total++ < MOST || at === number) first.push(at);
  }
  const text = (at) => `${at} ${run.plans[instructions.plan[at]][0]} ${placeText(instructions.place[at])} ${turnText(instructions.loops[at], instructions.program[at])}`;
  return some("Instructions", total, first.map((at) => [text(at), () => showPosition(at)]));
}

function found(words) {
  const has = (text) => String(text).toLowerCase().includes(words);
  const broken = run.findings.filter((each) => has(`${each.rule} ${each.slug} ${each.message}`));
  const printed = prints.filter((each) => has(each.prefix) || has(nameOf(each)));
  return [
    some("Findings", broken.length, broken.map((each) => [`${each.rule} ${placeText(each.place)} ${each.message}`, () => showFinding(each)])),
    lines(has), tensors(has), issued(has, words),
    some("Prints", printed.length, printed.map((each) => [`${each.prefix} ${shape(shapeOf(each))} ${turnText(each.loops, each.program)}`, () => showItem(each)])),
  ].filter((each) => each.total);
}

function draw() {
  const words = box.value.trim().toLowerCase(), groups = words ? found(words) : [];
  fill(results, groups.map(({ kind, total, first }) => [h("p.hint", {}, `${kind} ${grouped(total)}${total > first.length ? `, the first ${first.length}` : ""}`),
    first.map(([text, go]) => h("button.result.cut", { role: "option", title: text, onclick: () => { close(); go(); } }, h("bdi", {}, text)))]),
  words && !groups.length && h("p.hint", {}, "Nothing of that name."));
}

function close() {
  box.value = "";
  draw();
  box.blur();
}

// Enter opens the first result, the arrows go to the others, Escape closes.
function choose(event) {
  if (event.key === "Enter") results.querySelector(".result")?.click();
  else if (event.key === "ArrowDown") results.querySelector(".result")?.focus();
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
}

results.addEventListener("keydown", (event) => {
  const way = { ArrowDown: 1, ArrowUp: -1 }[event.key], all = [...results.querySelectorAll(".result")];
  if (event.key === "Escape") close();
  else if (way) (all[all.indexOf(document.activeElement) + way] ?? box).focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
});
