// Where a tile came from and where it went: what it was made from, back to the arguments, and who read it.
import { h } from "./dom.js";
import { GIVEN, NEVER_WRITTEN, consumersOf, operandsOf, placeText, planOf, region, run, sourcesOf, turnText, writeAt } from "./data.js";
import { isWrong } from "./series.js";
import { showPosition } from "./choose.js";
import { restsOn } from "./trace.js";

const isTraced = run.traces.length > 0;

// Of an operator the stores of C++ into TCM are not followed.
const isOfCores = run.traces.some((each) => each.kind === "cores");
const unwritten = (ofCores) => isOfCores ? h("span.hint", {}, ofCores) : h("span.unwritten", {}, "never written ");

// Where what was read came from, and who read what was written.
export function flow(item) {
  if (item.kind !== "write") return null;
  const reads = operandsOf(item.position).filter((each) => !each.written || sourcesOf(each).length);
  const readers = consumersOf(item.position, 6), others = restsOn(item.position);
  return h("div.flow", {},
    h("div", {}, h("h3", {}, "Made from"), reads.length
      ? h("ul", {}, reads.map((each) => h("li", {}, h("code", {}, region(each)), " ", origin(sourcesOf(each)))),
        others.length > 0 && h("li", {}, isTraced ? "begun by " : "index, register or transfer ", origin(others)))
      : !others.length ? h("p.hint", {}, isTraced ? "nothing that was read before it" : "no tensor")
        : h("ul", {}, h("li.hint", {}, "what was read before it at this point, all or some of it:"), others.slice(0, 12).map(seen), others.length > 12 && h("li.hint", {}, "and more"))),
    h("div", {}, h("h3", {}, "Read by"), readers.length
      ? h("ul", {}, readers.slice(0, 5).map((position) => h("li", {}, link(position))), readers.length > 5 && h("li.hint", {}, "and more"))
      : h("p.hint", {}, "nothing after it")));
}

// What an event before it has read: the part of a buffer, and who wrote that.
function seen(position) {
  const [operand] = operandsOf(position);
  return h("li", {}, operand ? [h("code", {}, region(operand)), " ", origin(sourcesOf(operand))] : link(position));
}

// What led to a write, back to the arguments: the newest first.
export function trail(item) {
  if (item.kind !== "write") return null;
  const { positions, given, more } = ancestry(item.position);
  return h("div.trail", {}, h("h3", {}, "How it came to be"),
    given.length > 0 && h("p", {}, "It rests on ", given.slice(0, 12).map(([operand, position, source], at) => [at ? ", " : "",
      source === NEVER_WRITTEN && unwritten("what C++ stored, if anything, in "), h("code", {}, region(operand)), " read by ", h("button.link", { onclick: () => showPosition(position) }, placeText(run.instructions.place[position]))]),
    given.length > 12 && ` and ${given.length - 12} more`),
    h("div.steps", {}, h("table", {}, h("tbody", {}, positions.map((position) => ancestor(item, position))))),
    h("p.hint", {}, "What was written, and what it was made from, newest first.", more && " The oldest are left out."));
}

function ancestor(item, position) {
  const operands = operandsOf(position), { loops, program, place } = run.instructions;
  const names = (written) => operands.filter((each) => each.written === written).map(region).join(", ");
  const write = writeAt(position), calls = (write?.places ?? [place[position]]).map(placeText);
  return h("tr", { "aria-current": position === item.position, onclick: () => showPosition(position) },
    h("td", {}, h("button.link", { "aria-label": `${calls[0]}, ${isTraced ? "event" : "instruction"} ${position}` }, calls[0]),
      h("span.hint", {}, calls.slice(1, 4).map((call) => ` ← ${call.replace(/^.*:/, "")}`))),
    h("td", {}, h("b", {}, planOf(position).name)), h("td", {}, h("code", {}, names(true))), h("td", {}, "←"),
    h("td", {}, h("code", {}, names(false) || "–")),
    h("td.hint", {}, turnText(loops[position] || (write?.loops ?? 0), program[position])));
}

const MOST_ANCESTORS = 200;

// The instructions behind one, and the operands that no instruction has written.
function ancestry(position) {
  const found = new Set([position]), waiting = [position], given = new Map();
  const reach = (each) => {
    if (found.has(each)) return;
    found.add(each);
    waiting.push(each);
  };
  while (waiting.length && found.size < MOST_ANCESTORS) {
    const next = Math.max(...waiting);
    waiting.splice(waiting.indexOf(next), 1);
    for (const operand of operandsOf(next)) {
      for (const each of sourcesOf(operand)) {
        if (each < 0) given.set(`${each}|${region(operand)}|${run.instructions.place[next]}`, [operand, next, each]);
        else reach(each);
      }
    }
    restsOn(next).forEach(reach);
  }
  return { positions: [...found].sort((a, b) => b - a), given: [...given.values()], more: waiting.length > 0 };
}

function origin(sources) {
  const positions = sources.filter((each) => each >= 0).reverse();
  return [
    sources.includes(NEVER_WRITTEN) && unwritten("as C++ left it "),
    sources.includes(GIVEN) && h("span.hint", {}, "as it was given "),
    positions.slice(0, 3).map((position) => ["← ", link(position), " "]),
    positions.length > 3 && h("span.hint", {}, `and ${positions.length - 3} more`),
  ];
}

function link(position) {
  const { place, loops, program } = run.instructions;
  const turn = turnText(loops[position] || (writeAt(position)?.loops ?? 0), program[position]);
  return h("button.link", { onclick: () => showPosition(position) },
    `${planOf(position).name}, ${placeText(place[position])}${turn ? ` (${turn})` : ""}`,
    isWrong({ kind: "write", position }) && h("span.wrongtext", {}, " wrong"));
}
