// Time: when each engine, queue, core and rank is busy by the estimate, SBUF and PSUM below on the same axis, one scrubber
// for all, the critical path, and what bounds the run.
import { columns } from "./bytes.js";
import { canvas, color, fill, h } from "./dom.js";
import { count, instructions, othersOf, placeText, planOf, run, storageOf, turnText, writeAt } from "./data.js";
import { calls, summary } from "./bounds.js";
import { showPosition } from "./choose.js";
import { marks } from "./order.js";
import { livesOf, shareOf } from "./memory.js";
import { listen, state } from "./state.js";
import { bytes, counted, grouped, shown } from "./words.js";

export const element = h("div.time");
export const hasTime = Boolean(columns["time.start"]);
const time = run.time ?? {};
const starts = columns["time.start"], lasts = columns["time.duration"], laneOf = columns["time.lane"];
const path = new Set(columns["time.path"] ?? []);
const COLORS = { tensor: "#3d7de0", vector: "#2e9e5b", scalar: "#e08a1e", gpsimd: "#9b59d0", dma: "#d04a6a", sync: "#6b7785" };
const HUES = [212, 28, 150, 280, 350, 90, 190, 55, 320, 240];
const LABELS = 104, LANE = 18, MEMORY = 54, AXIS = 18;
const whole = [0, Math.max(1, time.span_ns ?? 1)];
let view = whole, lit = false;

const micro = (ns) => `${shown(ns / 1000, 4)} µs`;

// --- lanes --------------------------------------------------------------------------------------------------------------

let made = null;

// A lane for each engine that does something, one for each queue of transfers: the slices by when they begin.
function lanes() {
  if (made) return made;
  const kinds = time.lanes.length, byLane = new Map(), cores = new Set();
  for (let at = 0; at < count; at++) {
    if (time.lanes[laneOf[at] % kinds] === "left out") continue;
    cores.add(Math.floor(laneOf[at] / kinds));
    if (!byLane.has(laneOf[at])) byLane.set(laneOf[at], []);
    byLane.get(laneOf[at]).push(at);
  }
  made = [];
  for (const [lane, positions] of [...byLane].sort(([a], [b]) => a - b)) {
    const engine = time.lanes[lane % kinds], whose = cores.size > 1 ? coreText(positions[0]) : "";
    positions.sort((a, b) => starts[a] - starts[b]);
    const queues = engine === "dma" ? queued(positions) : [positions];
    queues.forEach((each, at) => made.push({ engine, name: [whose, engine, queues.length > 1 && `queue ${at}`].filter(Boolean).join(" "), positions: each, sums: null }));
  }
  return made;
}

const coreText = (position) => turnText(0, instructions.program[position]).replace("program", "core") || "core 0";

// Transfers that overlap lie on different queues: each on the first that is free.
function queued(positions) {
  const queues = [], free = [];
  for (const each of positions) {
    let at = free.findIndex((end) => end <= starts[each]);
    if (at < 0) at = queues.push([]) - 1;
    queues[at].push(each);
    free[at] = starts[each] + lasts[each];
  }
  return queues;
}

// The first slice of a lane that ends after a moment.
function firstAfter({ positions }, moment) {
  let low = 0, high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[positions[middle]] + lasts[positions[middle]] <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

// --- the picture --------------------------------------------------------------------------------------------------------

const box = h("div.lanes", { tabindex: 0, role: "group", "aria-label": "Lanes in estimated time: + and - zoom, arrows move, a click chooses an instruction" });
const told = h("p.hint.told", { "aria-live": "polite" });
const xOf = (moment, width) => LABELS + ((moment - view[0]) / (view[1] - view[0])) * (width - LABELS);
const momentAt = (x, width) => view[0] + ((x - LABELS) / (width - LABELS)) * (view[1] - view[0]);

function picture() {
  const width = Math.max(360, (element.clientWidth || 900) - 4), rows = lanes(), memories = ["SBUF", "PSUM"].filter((name) => run.memory[name] && livesOf(name).length);
  const top = AXIS + rows.length * LANE, height = top + memories.length * (MEMORY + 16) + 4;
  const found = canvas(width, height, (context) => {
    context.font = "11px system-ui, sans-serif";
    axis(context, width, height);
    rows.forEach((lane, at) => drawLane(context, lane, AXIS + at * LANE, width));
    arrows(context, rows, width);
    memories.forEach((name, at) => drawMemory(context, name, top + at * (MEMORY + 16), width));
    const x = xOf(momentOf(state.position), width);
    if (x >= LABELS) {
      context.fillStyle = color("text");
      context.fillRect(x - 1, 0, 2, height);
    }
  });
  found.setAttribute("role", "img");
  found.setAttribute("aria-label", `Lanes of ${rows.map((each) => each.name).join(", ")} from ${micro(view[0])} to ${micro(view[1])}`);
  listenTo(found, rows, width);
  return found;
}

const momentOf = (position) => (starts[position] ?? 0);

function axis(context, width, height) {
  for (const at of marks(view[0], view[1], Math.max(3, width / 130))) {
    const x = xOf(at, width);
    context.fillStyle = color("line");
    context.fillRect(x, 0, 1, height);
    context.fillStyle = color("soft");
    context.fillText(micro(at), x + 3, 11);
  }
}

function drawLane(context, lane, y, width) {
  context.fillStyle = color("soft");
  context.fillText(lane.name, 2, y + 12, LABELS - 6);
  context.fillStyle = color("raised");
  context.fillRect(LABELS, y + 1, width - LABELS, LANE - 3);
  const first = firstAfter(lane, view[0]), per = (width - LABELS) / (view[1] - view[0]);
  const shades = new Float32Array(Math.ceil(width - LABELS) + 1), onPath = new Uint8Array(shades.length);
  for (let at = first; at < lane.positions.length; at++) {
    const position = lane.positions[at], x = (starts[position] - view[0]) * per, wide = lasts[position] * per;
    if (x > width - LABELS) break;
    if (wide < 2) {
      const pixel = Math.max(0, Math.floor(x));
      shades[pixel] = Math.min(1, shades[pixel] + Math.max(wide, 0.15));
      onPath[pixel] |= path.has(position) ? 1 : 0;
    } else slice(context, lane, position, Math.max(LABELS, LABELS + x), y, Math.min(width, LABELS + x + wide));
  }
  // Slices thinner than a pixel: as dark as the pixel is busy.
  context.fillStyle = COLORS[lane.engine];
  shades.forEach((share, pixel) => {
    if (!share) return;
    context.globalAlpha = lit && !onPath[pixel] ? 0.18 : 0.25 + 0.75 * share;
    context.fillRect(LABELS + pixel, y + 2, 1, LANE - 5);
  });
  context.globalAlpha = 1;
}

function slice(context, lane, position, x, y, end) {
  context.globalAlpha = lit && !path.has(position) ? 0.18 : 0.85;
  context.fillStyle = COLORS[lane.engine];
  context.fillRect(x, y + 2, Math.max(1, end - x - 0.5), LANE - 5);
  context.globalAlpha = 1;
  if (position === state.position) {
    context.strokeStyle = color("text");
    context.lineWidth = 2;
    context.strokeRect(x, y + 1, Math.max(2, end - x), LANE - 3);
  }
  const { name } = planOf(position);
  if (end - x > 46) {
    context.fillStyle = "#fff";
    context.fillText(name, x + 3, y + 13, end - x - 5);
  }
}

// What cores and ranks send each other: a line from the sender's lane to the receiver's.
function arrows(context, rows, width) {
  const y = new Map();
  rows.forEach((lane, at) => lane.positions.forEach((each) => y.set(each, AXIS + at * LANE + LANE / 2)));
  context.strokeStyle = color("text");
  context.lineWidth = 1;
  let left = 400;
  for (const position of columns["others.position"]) {
    for (const source of othersOf(position)) {
      if (source < 0 || instructions.program[source] === instructions.program[position] || left-- < 0) continue;
      const [from, to] = [starts[source] + lasts[source], starts[position] + lasts[position]];
      if (!y.has(source) || !y.has(position) || to < view[0] || from > view[1]) continue;
      context.beginPath();
      context.moveTo(Math.max(LABELS, xOf(Math.min(from, to), width)), y.get(source));
      context.lineTo(Math.min(width, xOf(to, width)), y.get(position));
      context.stroke();
      context.fillRect(xOf(to, width) - 2, y.get(position) - 2, 4, 4);
    }
  }
}

// A memory by tensor, one upon the other, from the first write of each to its last read.
const spans = new Map();

function spansOf(name) {
  if (!spans.has(name)) spans.set(name, livesOf(name).map((life) => [...life, starts[life[1]], starts[life[2]] + lasts[life[2]], shareOf(name, life)]));
  return spans.get(name);
}

const peaks = new Map();

function peakOf(name) {
  if (peaks.has(name)) return peaks.get(name);
  const events = spansOf(name).flatMap((life) => [[life.at(-3), life.at(-1)], [life.at(-2), -life.at(-1)]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let now = 0, most = 0, moment = 0;
  for (const [at, change] of events) {
    now += change;
    if (now > most) [most, moment] = [now, at];
  }
  peaks.set(name, { most, moment });
  return peaks.get(name);
}

function drawMemory(context, name, y, width) {
  const { most, moment } = peakOf(name), pixels = Math.ceil(width - LABELS), per = pixels / (view[1] - view[0]);
  const filled = new Float32Array(pixels + 1), scale = MEMORY / Math.max(1, most);
  context.fillStyle = color("soft");
  context.fillText(name, 2, y + 14);
  context.fillText(`peak ${bytes(Math.round(most))}`, 2, y + 28, LABELS - 6);
  for (const life of spansOf(name)) {
    const from = Math.max(0, Math.floor((life.at(-3) - view[0]) * per)), to = Math.min(pixels, Math.ceil((life.at(-2) - view[0]) * per));
    if (to <= from) continue;
    context.fillStyle = `hsl(${HUES[life[0] % HUES.length]} 60% 55%)`;
    const high = life.at(-1) * scale;
    for (let x = from, begin = from; x <= to; x++) {
      if (x < to && filled[x] === filled[begin]) continue;
      context.fillRect(LABELS + begin, y + MEMORY - filled[begin] - high, x - begin, Math.max(0.5, high - 0.4));
      begin = x;
    }
    for (let x = from; x < to; x++) filled[x] += high;
  }
  context.fillStyle = color("bad");
  const x = xOf(moment, width);
  if (x >= LABELS && x <= width) context.fillRect(x, y, 1.5, MEMORY);
}

// --- what the reader does -----------------------------------------------------------------------------------------------

function listenTo(found, rows, width) {
  let from = null;
  const at = (event) => {
    const lane = rows[Math.floor((event.offsetY - AXIS) / LANE)], moment = momentAt(event.offsetX, width);
    if (!lane || event.offsetX < LABELS) return { moment, position: -1 };
    const reach = ((view[1] - view[0]) / width) * 3, first = lane.positions[firstAfter(lane, moment - reach)];
    return { moment, position: first !== undefined && starts[first] <= moment + reach ? first : -1 };
  };
  found.addEventListener("mousemove", (event) => {
    if (from) return moveTo(from.view[0] - ((event.offsetX - from.x) / (width - LABELS)) * (from.view[1] - from.view[0]));
    const { position } = at(event);
    told.textContent = position < 0 ? "" : sentence(position);
  });
  found.addEventListener("mousedown", (event) => { from = { x: event.offsetX, view }; });
  found.addEventListener("mouseup", (event) => {
    const still = from && Math.abs(event.offsetX - from.x) < 4;
    from = null;
    if (!still) return;
    const { position, moment } = at(event);
    showPosition(position >= 0 ? position : nearest(moment));
  });
  found.addEventListener("mouseleave", () => (from = null));
  found.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, momentAt(event.offsetX, width));
  }, { passive: false });
}

// The instruction that begins last before a moment.
function nearest(moment) {
  let best = 0;
  for (let at = 0; at < count; at++) if (starts[at] <= moment && starts[at] >= starts[best]) best = at;
  return best;
}

function sentence(position) {
  const loops = instructions.loops[position] || (writeAt(position)?.loops ?? 0);
  const turn = turnText(loops, instructions.program[position]);
  return `${planOf(position).name}, ${placeText(instructions.place[position])}${turn ? ` (${turn})` : ""}: from ${micro(starts[position])} for ${shown(lasts[position], 6)} ns${path.has(position) ? ", on the critical path" : ""}`;
}

function zoom(factor, around = (view[0] + view[1]) / 2) {
  const reach = Math.min(whole[1], Math.max(20, (view[1] - view[0]) * factor)), share = (around - view[0]) / (view[1] - view[0]);
  view = [0, reach];
  moveTo(around - share * reach);
}

function moveTo(first) {
  const reach = view[1] - view[0], from = Math.min(Math.max(0, first), whole[1] - reach);
  view = [from, from + reach];
  drawBox();
}

box.addEventListener("keydown", (event) => {
  const reach = view[1] - view[0];
  const actions = {
    "+": () => zoom(0.6, momentOf(state.position)), "=": () => zoom(0.6, momentOf(state.position)), "-": () => zoom(1 / 0.6), 0: () => { view = whole; drawBox(); },
    ArrowRight: () => moveTo(view[0] + reach / 6), ArrowLeft: () => moveTo(view[0] - reach / 6),
  };
  if (!actions[event.key] || event.shiftKey && event.key !== "+") return;
  event.preventDefault();
  event.stopPropagation();
  actions[event.key]();
});

function drawBox() {
  fill(box, picture());
}

// --- by line ------------------------------------------------------------------------------------------------------------

const allBusy = (columns["line.busy"] ?? []).reduce((sum, each) => sum + each, 0);

// The cost of a line: its share of all that the engines do, bytes from and to HBM, loads of what was loaded before.
export function costOf(path, line) {
  const place = hasTime ? run.places.findIndex(([file, at]) => file === path && at === line) : -1;
  const busy = place < 0 ? 0 : columns["line.busy"][place] ?? 0;
  if (!busy) return null;
  const moved = columns["line.moved"][place], reloads = columns["line.reloads"][place], share = busy / allBusy;
  const words = [`engines: ${micro(busy)}`, moved && `HBM: ${bytes(moved)}`, reloads && counted(reloads, "load of what was there", "loads of what was there")];
  return { share, reloads, text: words.filter(Boolean).join("; ") };
}

export const adviceAt = (path, line) => (time.advice ?? []).filter((each) => each.file === path && each.line === line);

export function draw() {
  if (!hasTime && time.kernels) {
    fill(element, calls());
    return;
  }
  if (!hasTime) {
    fill(element, h("p.hint", {}, time.left_out ? `The time of ${grouped(count)} instructions is not in a page (at most ${grouped(time.left_out)}); nkitools estimate has it.`
      : "This run has no instructions whose time could be estimated."));
    return;
  }
  const button = (text, onclick, pressed) => h("button.go", { onclick, "aria-pressed": pressed }, text);
  const scrubber = h("input", {
    type: "range", min: 0, max: Math.round(whole[1]), value: momentOf(state.position), "aria-label": "Moment of the run",
    oninput: (event) => showPosition(nearest(Number(event.target.value))),
  });
  fill(element, h("div.tools", {}, scrubber, button("+", () => zoom(0.5, momentOf(state.position))), button("−", () => zoom(2)), button("All", () => { view = whole; drawBox(); }),
    button("Critical path", () => { lit = !lit; draw(); }, lit),
    ["SBUF", "PSUM"].filter((name) => run.memory[name] && livesOf(name).length).map((name) => button(`${name} peak`, () => showPosition(nearest(peakOf(name).moment)))), told), box, summary());
  drawBox();
  told.textContent = sentence(state.position);
}

listen((changed) => {
  if (!changed.has("position") || state.tab !== "time" || !hasTime) return;
  const moment = momentOf(state.position);
  if (moment < view[0] || moment > view[1]) moveTo(moment - (view[1] - view[0]) / 2);
  else drawBox();
  const scrubber = element.querySelector("input[type=range]");
  if (scrubber && document.activeElement !== scrubber) scrubber.value = moment;
  told.textContent = sentence(state.position);
});
