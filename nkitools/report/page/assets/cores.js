// The GpSimd cores of a custom operator: what each one did in its own order, its TCM, what it read and wrote of the tensors, its prints.
import { canvas, color, fill, h } from "./dom.js";
import { numbers, operandsOf, placeText, planOf, prints, region, run, storageOf } from "./data.js";
import { showItem, showPosition } from "./choose.js";
import { KINDS, orderLanes } from "./order.js";
import { listen, state } from "./state.js";
import { boundsOf, coreOf, isCores, kindOf, noteOf, traces } from "./trace.js";
import { bytes, counted, grouped, shape, shown } from "./words.js";

export const element = h("div.cores");
const HUES = [212, 28, 150, 280, 350, 90, 190, 55], POOL = 16384, STREAM = 4096;
const trace = traces[0];
const engineOf = (position) => planOf(position).engine;

// The events of each core, in order.
let made = null;
function byCore() {
  if (made) return made;
  made = new Map(run.cores.map(({ core }) => [core, []]));
  for (let at = trace.first; at < trace.first + trace.count; at++) made.get(coreOf[at])?.push(at);
  return made;
}

const operandText = (position) => operandsOf(position).map((each) => `${each.written ? "→ " : "← "}${region(each)}`).join(" ");
const sentence = (position) => `core ${coreOf[position]}: ${position} ${kindOf(position)} ${operandText(position)} ${noteOf(position)} ${placeText(run.instructions.place[position])}`;

function lanes() {
  return [...byCore()].map(([core, positions]) => ({ name: `core ${core}`, slices: positions.map((position, at) => ({ from: at, to: at + 1, position, kind: engineOf(position) })) }));
}

function key() {
  const kinds = [["read", "tensor to TCM"], ["write", "TCM to tensor"], ["tcm", "tcm_malloc, tcm_free"], ["element", "element accessor"], ["stream", "stream"]];
  return h("div.legend", {}, kinds.map(([kind, text]) => h("span.mark", {}, h("i.dot", { style: `background: ${KINDS[kind]}` }), text)));
}

// --- the counters -------------------------------------------------------------------------------------------------------

function counters() {
  const columns = [["core", ({ core }) => core], ["status", ({ status }) => status], ["tensor to TCM", (each) => `${grouped(each.tcm_reads)} (${bytes(each.tcm_bytes_read)})`], ["TCM to tensor", (each) => `${grouped(each.tcm_writes)} (${bytes(each.tcm_bytes_written)})`],
    ["elements read", (each) => grouped(each.element_reads)], ["elements written", (each) => grouped(each.element_writes)], ["streamed in", (each) => grouped(each.stream_reads)], ["streamed out", (each) => grouped(each.stream_writes)],
    ["TCM at most", (each) => `${bytes(each.tcm_peak)} of ${bytes(POOL)}`], ["leaked", (each) => bytes(each.tcm_leaked)], ["prints", ({ core }) => grouped(printsOf(core).length)]];
  return h("div.wide", { tabindex: 0, role: "group", "aria-label": "Counters of the cores" }, h("table.plain.counters", {}, h("thead", {}, h("tr", {}, columns.map(([name]) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, run.cores.map((each) => h("tr", {}, columns.map(([, value]) => h("td", {}, value(each))))))));
}

// --- TCM ----------------------------------------------------------------------------------------------------------------

// The blocks of a core: from which of its events to which, and at the lowest bytes that are free for all that while.
function blocksOf(core) {
  const found = new Map(), order = byCore().get(core) ?? [];
  order.forEach((position, at) => {
    const name = noteOf(position);
    if (kindOf(position) === "tcm_malloc") {
      const [, block, size] = /^tcm (\d+): (\d+) bytes/.exec(name);
      found.set(block, { block, size: Number(size), from: at, to: order.length, begin: position, byte: 0 });
    } else if (kindOf(position) === "tcm_free") {
      const [, block] = /^tcm (\d+)/.exec(name);
      if (found.has(block)) found.get(block).to = at;
    }
  });
  const laid = [];
  for (const each of found.values()) {
    const beside = laid.filter((other) => other.to > each.from).sort((a, b) => a.byte - b.byte);
    for (const other of beside) {
      if (other.byte - each.byte >= each.size) break;
      each.byte = Math.max(each.byte, other.byte + other.size);
    }
    laid.push(each);
  }
  return laid;
}

function tcm(core, width) {
  const blocks = blocksOf(core), length = Math.max(1, (byCore().get(core) ?? []).length), height = 96;
  const used = Math.max(1, ...blocks.map(({ byte, size }) => byte + size)), top = Math.min(POOL, Math.max(used, 256));
  const here = (byCore().get(core) ?? []).indexOf(state.position);
  const picture = canvas(width, height, (context) => {
    const [x, y] = [width / length, (height - 2) / top];
    context.fillStyle = color("raised");
    context.fillRect(0, 0, width, height);
    for (const { block, from, to, byte, size } of blocks) {
      context.fillStyle = `hsl(${HUES[Number(block) % HUES.length]} 60% 55% / .75)`;
      context.fillRect(from * x, height - (byte + size) * y - 1, Math.max(1, (to - from) * x - 0.5), Math.max(1, size * y - 0.5));
    }
    if (here < 0) return;
    context.fillStyle = color("text");
    context.fillRect((here + 0.5) * x - 1, 0, 2, height);
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `TCM of core ${core}: ${counted(blocks.length, "block")}, up to byte ${used}`);
  picture.style.cursor = "pointer";
  picture.addEventListener("click", (event) => {
    const position = byCore().get(core)?.[Math.floor((event.offsetX / width) * length)];
    if (position !== undefined) showPosition(position);
  });
  const now = blocks.filter(({ from, to }) => here >= from && here < to);
  return h("figure", {}, h("figcaption", {}, h("b", {}, `core ${core}`), ` ${counted(blocks.length, "block")}; from the bottom: bytes 0 to ${grouped(top)}`), picture,
    h("figcaption", {}, here < 0 ? "" : now.length ? ["now: ", now.map(({ block, size, begin }) => [h("button.link", { onclick: () => showPosition(begin) }, `tcm ${block}`), ` ${bytes(size)} `])] : "now: empty"));
}

// --- the tensors --------------------------------------------------------------------------------------------------------

// What each core read of a tensor by bursts, and wrote, as parts of its elements one after the other.
function tensor([storage, kind, sizes], width) {
  const [name, , dtype, [size]] = storageOf(storage), height = run.cores.length * 12, x = width / Math.max(1, size);
  const parts = [], opened = [];
  for (let at = trace.first; at < trace.first + trace.count; at++) {
    const operand = operandsOf(at).find((each) => each.storage === storage);
    if (operand) parts.push([coreOf[at], boundsOf(operand)[0], operand.written, at]);
    else if (["element", "stream"].includes(engineOf(at)) && noteOf(at).split(",")[0] === name) opened.push(at);
  }
  const row = new Map(run.cores.map(({ core }, at) => [core, at]));
  const picture = canvas(width, height, (context) => {
    context.fillStyle = color("raised");
    context.fillRect(0, 0, width, height);
    for (const [core, [first, last], written, at] of parts) {
      context.fillStyle = written ? KINDS.write : KINDS.read;
      context.globalAlpha = at === state.position ? 1 : 0.7;
      context.fillRect(first * x, row.get(core) * 12 + 1, Math.max(1, (last - first) * x), 10);
    }
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${name}: ${counted(parts.length, "burst")} of ${counted(run.cores.length, "core")}`);
  picture.style.cursor = "pointer";
  picture.addEventListener("click", (event) => {
    const core = run.cores[Math.floor(event.offsetY / 12)]?.core, at = event.offsetX / x;
    const found = parts.find(([whose, [first, last]]) => whose === core && at >= first - 1 / x && at <= last + 1 / x);
    if (found) showPosition(found[3]);
  });
  const rows = new Map();
  for (const [core, [first, last], written] of parts) {
    const key = `${core}|${written ? 1 : 0}`, known = rows.get(key) ?? { core, written, first, last, elements: 0, bursts: 0 };
    rows.set(key, { ...known, first: Math.min(known.first, first), last: Math.max(known.last, last), elements: known.elements + last - first, bursts: known.bursts + 1 });
  }
  return h("article", {}, h("h4", {}, name, h("span.sub", {}, ` ${kind} ${dtype} ${shape(sizes)}; a row for each core, elements from left to right`)), picture,
    h("p.hint", {}, [...rows.values()].map((each) => `core ${each.core} ${each.written ? "wrote" : "read"} ${grouped(each.elements)} of ${each.first}:${each.last} in ${counted(each.bursts, "burst")}`).join("; ") || (opened.length ? "" : "no burst"),
      opened.length > 0 && [rows.size ? "; " : "", `${counted(opened.length, "accessor or stream was", "accessors or streams were")} opened, whose elements are counted above and not listed: `, opened.slice(0, 8).map((at) => [h("button.link", { onclick: () => showPosition(at) }, `core ${coreOf[at]} ${kindOf(at)}`), " "])]));
}

// --- prints -------------------------------------------------------------------------------------------------------------

function printsOf(core) {
  return prints.filter((print) => (run.programs[print.program]?.[1] ?? [])[0] === core);
}

function printed() {
  const some = run.cores.map(({ core }) => [core, printsOf(core)]).filter(([, found]) => found.length);
  if (!some.length) return h("p.hint", {}, "No core prints.");
  return h("div.figures", {}, some.map(([core, found]) => h("article", {}, h("h5", {}, `core ${core}`), h("ul.plain", {}, found.slice(0, 20).map((print) => h("li", {},
    h("button.link", { onclick: () => showItem(print) }, print.prefix || "(no prefix)"), print.tile === null ? "" : ` ${shown(numbers(print.tile).mean)}`)),
  found.length > 20 && h("li.hint", {}, `and ${found.length - 20} more`)))));
}

export function draw() {
  if (!run.cores.length) return;
  if (!isCores) {
    fill(element, counters(), h("h4", {}, "Prints by core"), printed(), h("p.hint", {}, "What the cores did one by one was not kept: the run was not watched."));
    return;
  }
  const wide = Math.max(360, (element.clientWidth || 900) - 4), arrays = trace.buffers.filter(([, kind]) => kind === "input" || kind === "output");
  const most = Math.max(...[...byCore().values()].map((each) => each.length), 1);
  fill(element, h("h4", {}, "Events of each core", h("span.sub", {}, " in order, not in time; cores run side by side")), key(),
    orderLanes(lanes(), most, wide, { label: `${counted(run.cores.length, "core")}, ${counted(trace.count, "event")}`, sentence }), counters(),
    h("div.tensors-by-core", {}, arrays.map((each) => tensor(each, Math.min(wide, 900, Math.max(240, (element.clientWidth || 900) - 4))))),
    h("h4", {}, "TCM over the events of each core", h("span.sub", {}, ` of the pool of ${bytes(POOL)}; where a block lies the device decides: here the lowest bytes that are free; an open stream takes ${bytes(STREAM)} beside`)),
    h("div.figures", {}, run.cores.filter(({ core }) => blocksOf(core).length).map(({ core }) => tcm(core, 260))),
    h("h4", {}, "Prints by core"), printed(),
    trace.left_out > 0 && h("p.hint", {}, `${grouped(trace.left_out)} later events were counted only.`));
}

listen((changed) => {
  if (changed.has("position") && state.tab === "cores") draw();
});
