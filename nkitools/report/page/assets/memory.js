// SBUF and PSUM: how full over the run, and which tensors lie there at the moment that is selected.
import { columns } from "./bytes.js";
import { canvas, color, fill, h } from "./dom.js";
import { count, instructions, planOf, placeText, run, storageOf, turnText } from "./data.js";
import { showPosition } from "./choose.js";
import { listen, state } from "./state.js";
import { bytes, shape } from "./words.js";

export const element = h("div.memory");
const HUES = [212, 28, 150, 280, 350, 90, 190, 55, 320, 240];
const STORAGE = 0, BEGIN = 1, END = 2, PARTITION = 3, PARTITIONS = 4, BYTE = 5, BYTES = 6, PLACED = 7;
const FIELDS = ["storage", "begin", "end", "partition", "partitions", "byte", "nbytes", "placed"];
const rows = new Map();
const fieldsOf = (name) => FIELDS.map((field) => columns[`${name}.${field}`]);

export function livesOf(name) {
  if (!rows.has(name)) {
    const fields = fieldsOf(name);
    rows.set(name, Array.from(fields[BEGIN], (_, at) => fields.map((field) => field[at])));
  }
  return rows.get(name);
}

// The bytes of a partition that a tensor takes: one of few partitions counts for its share of them.
export function shareOf(name, life) {
  return (Math.ceil(life[PARTITIONS] / 32) / (run.memory[name].partitions / 32)) * life[BYTES];
}

// The bytes of each partition in use, by position.
function curves(name) {
  const found = new Map(), fields = fieldsOf(name), quarters = run.memory[name].partitions / 32;
  for (let at = 0; at < fields[BEGIN].length; at++) {
    const begin = fields[BEGIN][at], program = instructions.program[begin] ?? 0;
    if (!found.has(program)) found.set(program, new Float64Array(count + 1));
    const curve = found.get(program), share = (Math.ceil(fields[PARTITIONS][at] / 32) / quarters) * fields[BYTES][at];
    curve[begin] += share;
    curve[fields[END][at] + 1] -= share;
  }
  for (const curve of found.values()) for (let at = 1; at < curve.length; at++) curve[at] += curve[at - 1];
  return found;
}

// The largest value of each of so many stretches of a curve.
const mosts = new WeakMap();
function mostsOf(curve, width) {
  if (mosts.get(curve)?.length !== width + 1) {
    mosts.set(curve, Float64Array.from({ length: width + 1 }, (_, x) => {
      const first = Math.floor((x / width) * count), last = Math.max(first + 1, Math.min(count, Math.ceil(((x + 1) / width) * count)));
      let most = 0;
      for (let at = first; at < last; at++) if (curve[at] > most) most = curve[at];
      return most;
    }));
  }
  return mosts.get(curve);
}

const peaks = new Map();
function peakOf(name) {
  if (!peaks.has(name)) {
    let peak = 0, peakAt = 0;
    for (const curve of curveOf(name).values()) for (let at = 0; at < curve.length; at++) if (curve[at] > peak) [peak, peakAt] = [curve[at], at];
    peaks.set(name, { peak, peakAt });
  }
  return peaks.get(name);
}

const known = new Map();
function curveOf(name) {
  if (!known.has(name)) known.set(name, curves(name));
  return known.get(name);
}

function timeline(name, width) {
  const memory = run.memory[name], height = 74, found = curveOf(name);
  const { peak, peakAt } = peakOf(name);
  const top = Math.max(1, peak * 1.08, Math.min(memory.usable * 1.05, peak * 4));
  const picture = canvas(width, height, (context) => {
    const y = (value) => height - (value / top) * (height - 6);
    [...found].forEach(([program, curve], number) => {
      context.fillStyle = found.size > 1 ? `hsl(${HUES[number % HUES.length]} 60% 55%)` : color("accent");
      if (found.size > 1) {
        const first = instructions.program.indexOf(program);
        context.font = "11px system-ui, sans-serif";
        context.fillText(turnText(0, program), Math.min(width - 70, (first / Math.max(1, count)) * width + 2), 11);
      }
      context.globalAlpha = 0.45;
      context.beginPath();
      context.moveTo(0, height);
      mostsOf(curve, width).forEach((most, x) => context.lineTo(x, y(most)));
      context.lineTo(width, height);
      context.fill();
      context.globalAlpha = 1;
    });
    if (memory.usable <= top) {
      context.strokeStyle = color("bad");
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(0, y(memory.usable));
      context.lineTo(width, y(memory.usable));
      context.stroke();
      context.setLineDash([]);
    }
    const x = ((state.position + 0.5) / Math.max(1, count)) * width;
    context.fillStyle = color("text");
    context.fillRect(x - 1, 0, 2, height);
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${name} in use over the run; at most ${bytes(Math.round(peak))} of each partition`);
  picture.style.cursor = "pointer";
  picture.addEventListener("click", (event) => showPosition(Math.min(count - 1, Math.floor((event.offsetX / picture.clientWidth) * count))));
  return h("div", {}, h("h4", {}, `${name} over the run`, h("span.sub", {}, ` at most ${bytes(Math.round(peak))} of the ${bytes(memory.usable)} of a partition, `,
    h("button.link", { onclick: () => showPosition(Math.min(count - 1, peakAt)) }, "show the peak"),
    found.size > 1 && `; each of the ${found.size} programs has a memory of its own`)), picture);
}

function aliveNow(name) {
  const program = instructions.program[state.position], fields = fieldsOf(name), found = [];
  for (let at = 0; at < fields[BEGIN].length; at++) {
    const begin = fields[BEGIN][at];
    if (begin <= state.position && state.position <= fields[END][at] && instructions.program[begin] === program) found.push(fields.map((each) => each[at]));
  }
  return found;
}

const hue = (storage) => HUES[storage % HUES.length];

// Across: the bytes of a partition; down: the partitions.
function map(name, width) {
  const memory = run.memory[name], lives = aliveNow(name), height = 150;
  if (!lives.length) return h("div", {}, h("h4", {}, `${name} now`, h("span.sub", {}, " empty")));
  const used = Math.max(1, ...lives.map((life) => life[BYTE] + life[BYTES]));
  const across = Math.min(Math.max(memory.bytes, used), Math.max(used * 1.15, 1024));
  const scale = width / across, row = height / memory.partitions;
  const picture = canvas(width, height, (context) => {
    context.strokeStyle = color("line");
    context.strokeRect(0.5, 0.5, width - 1, height - 1);
    for (const life of lives) {
      const x = life[BYTE] * scale, y = life[PARTITION] * row, w = Math.max(2, life[BYTES] * scale), t = Math.max(2, life[PARTITIONS] * row);
      context.fillStyle = `hsl(${hue(life[STORAGE])} 60% 55% / .55)`;
      context.fillRect(x, y, w, t);
      context.strokeStyle = `hsl(${hue(life[STORAGE])} 60% 40%)`;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(1, w - 1), Math.max(1, t - 1));
      const label = storageOf(life[STORAGE])[0];
      context.font = "12px system-ui, sans-serif";
      if (label && context.measureText(label).width < w - 6 && t > 14) {
        context.fillStyle = color("text");
        context.fillText(label, x + 4, y + 14);
      }
    }
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${name} at instruction ${state.position}: ${lives.length} tensors`);
  const sum = lives.reduce((total, life) => total + shareOf(name, life), 0);
  return h("div", {}, h("h4", {}, `${name} now`, h("span.sub", {}, ` ${bytes(Math.round(sum))} of each partition in ${lives.length} tensors; shown: bytes 0 to ${bytes(Math.round(across))}, partitions 0 to ${memory.partitions - 1}`)),
    picture, table(lives));
}

function table(lives) {
  const ranked = [...lives].sort((a, b) => b[BYTES] * b[PARTITIONS] - a[BYTES] * a[PARTITIONS]).slice(0, 12);
  if (!ranked.length) return h("p.hint", {}, "empty");
  return h("table.plain.tensors", {}, h("tbody", {}, ranked.map((life) => {
    const [name, , dtype, sizes, place] = storageOf(life[STORAGE]);
    return h("tr", {}, h("td", {}, h("i.dot", { style: `background: hsl(${hue(life[STORAGE])} 60% 55%)` })),
      h("td", {}, h("b", {}, name || "(unnamed)")), h("td", {}, `${dtype} ${shape(sizes)}`), h("td", {}, bytes(life[BYTES])),
      h("td", {}, placeText(place)), h("td", {}, life[PLACED] ? "address given" : ""),
      h("td", {}, h("button.link", { onclick: () => showPosition(life[BEGIN]) }, `from ${life[BEGIN]}`), " ",
        h("button.link", { onclick: () => showPosition(life[END]) }, `to ${life[END]}`)));
  }), lives.length > 12 && h("tr", {}, h("td", { colspan: 7 }, `and ${lives.length - 12} smaller ones`))));
}

export function draw() {
  if (!run.memory.SBUF || !count) {
    fill(element, h("p.hint", {}, "Which tensors lay where is not known of this run."));
    return;
  }
  const width = Math.max(280, Math.floor((element.clientWidth || 900) / 2 - 24));
  const moment = h("label.moment", {}, "instruction ", h("input", {
    type: "range", min: 0, max: count - 1, value: state.position, "aria-label": "Moment of the run",
    onchange: (event) => showPosition(Number(event.target.value)),
  }), ` ${state.position}: ${planOf(state.position).name}, ${placeText(instructions.place[state.position])} ${turnText(instructions.loops[state.position], instructions.program[state.position])}`);
  fill(element, moment, h("div.memories", {}, ["SBUF", "PSUM"].map((name) => h("article", {}, timeline(name, width), map(name, width)))),
    h("p.hint", {}, "A tensor is alive from its first write to its last read. Where it lies the compiler decides, unless the author gave it an address: here it takes the lowest place that is free for all its life."));
}

listen((changed) => {
  if (changed.has("position") && state.tab === "memory") draw();
});
