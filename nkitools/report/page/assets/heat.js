// The picture of a tile: colours by value, hatching and marks for what is no number.
import { canvas, color, h } from "./dom.js";
import { INF, NAN, UNWRITTEN, numbers, tile } from "./data.js";
import { cellText } from "./numbers.js";
import { shown } from "./words.js";

// Viridis and a blue-white-red, as few stops; what lies between is mixed.
const SEQUENTIAL = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
const DIVERGING = [[33, 75, 160], [98, 146, 206], [196, 215, 235], [245, 245, 245], [240, 200, 180], [210, 105, 85], [150, 20, 40]];
const ERRORS = [[235, 238, 242], [255, 214, 140], [245, 140, 60], [200, 40, 30], [110, 0, 30]];

function mixed(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.floor(at), high = Math.min(low + 1, stops.length - 1), rest = at - low;
  return stops[low].map((value, channel) => Math.round(value + (stops[high][channel] - value) * rest));
}

// How values become colours: `low` to `high`, around zero where values have both signs, by `way`: linear, by the logarithm of
// the magnitude, symmetric about zero, or by rank among a sample. `share(value)` is between 0 and 1.
export function scaleOf(low, high, kind = "", way = "linear", sample = null) {
  if (low === null || high === null || low === undefined) return { low: null, high: null, stops: SEQUENTIAL, share: () => 0 };
  const limits = kind === "error" ? { low: 0, high: Math.max(high, 0), stops: ERRORS } : limitsOf(low, high, way);
  const reach = limits.high > limits.low ? limits.high - limits.low : 0;
  if (!reach) return { ...limits, share: () => 0 };
  if (way === "quantile" && sample?.length && kind !== "error") return { low, high, way, stops: SEQUENTIAL, share: ranked(sample) };
  if (way !== "log") return { ...limits, share: (value) => (value - limits.low) / reach };
  return { ...limits, way, share: logarithmic(limits) };
}

function limitsOf(low, high, way) {
  if ((low < 0 && high > 0) || way === "symmetric") {
    const reach = Math.max(-low, high);
    return { low: -reach, high: reach, stops: DIVERGING };
  }
  return { low, high, stops: SEQUENTIAL };
}

// The share of a sorted sample that is below a value.
function ranked(sample) {
  return (value) => {
    let first = 0, last = sample.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (sample[middle] < value) first = middle + 1;
      else last = middle;
    }
    return first / sample.length;
  };
}

const DECADES = 6; // that a logarithmic scale shows

function logarithmic({ low, high }) {
  const most = Math.max(Math.abs(low), Math.abs(high));
  const size = (value) => Math.max(0, 1 + Math.log10(Math.abs(value) / most) / DECADES) || 0;
  if (low < 0 && high > 0) return (value) => 0.5 + (Math.sign(value) * size(value)) / 2;
  return (value) => (high <= 0 ? 1 - size(value) : size(value));
}

const table = new Map();
function paletteOf(stops) {
  if (!table.has(stops)) table.set(stops, Array.from({ length: 256 }, (_, at) => mixed(stops, at / 255)));
  return table.get(stops);
}

export function picture(shownTile, scale) {
  const { rows, columns, values, states } = shownTile;
  const image = new ImageData(columns, rows);
  const palette = paletteOf(scale.stops);
  for (let at = 0; at < values.length; at++) {
    const state = states[at];
    let rgb;
    if (state === NAN) rgb = [255, 0, 200];
    else if (state === UNWRITTEN) rgb = [128, 128, 128];
    else if (state === INF) rgb = [255, 140, 0];
    else rgb = palette[Math.min(255, Math.max(0, Math.round(scale.share(values[at]) * 255)))];
    image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * at);
  }
  return image;
}

// The heat map of a tile in at most so many pixels, with a cell that is marked; `point(row, column)` follows the mouse.
export const heatMap = (number, options) => heatOf(tile(number), numbers(number).mean ?? 0, options);

export function heatOf(whole, mean, { width, height, scale, cell, point, label, lit, sizes = null }) {
  const { down, across } = whole;
  if (!down || !across) return h("p.hint", {}, "no elements");
  // In about the tile's own proportions, but no cell becomes too narrow or too flat to be seen or hit.
  const ratio = down / across;
  let wide = width, high = wide * ratio;
  if (high > height) [wide, high] = [height / ratio, height];
  wide = Math.round(Math.min(width, Math.max(wide, Math.min(width * 0.75, across * 22), 30)));
  high = Math.round(Math.min(height, Math.max(high, Math.min(height * 0.6, down * 16), 24)));
  const found = pooled(whole, Math.max(1, high), Math.max(1, wide), mean);
  const { rows, columns } = found;
  const source = document.createElement("canvas");
  [source.width, source.height] = [columns, rows];
  source.getContext("2d").putImageData(picture(found, scale), 0, 0);
  const element = canvas(wide, high, (context) => {
    context.imageSmoothingEnabled = false;
    context.drawImage(source, 0, 0, wide, high);
    hatch(context, found, wide / columns, high / rows);
    if (sizes) divide(context, whole, sizes, wide, high);
    if (lit) light(context, whole, found, lit, wide, high);
    if (cell) outline(context, cell, wide / whole.columns, high / whole.rows);
  });
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label ?? "heat map");
  if (point) {
    const told = (event) => {
      const box = element.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * whole.columns);
      const row = Math.floor(((event.clientY - box.top) / box.height) * whole.rows);
      return row >= 0 && column >= 0 && row < whole.rows && column < whole.columns ? [row, column] : null;
    };
    element.addEventListener("click", (event) => told(event) && point(...told(event)));
    element.addEventListener("mousemove", (event) => hover(event, told(event) ? cellText(whole, told(event), sizes) : ""));
    element.addEventListener("mouseleave", (event) => hover(event, ""));
    element.style.cursor = "crosshair";
  }
  return element;
}

// What lies under the mouse, beside it.
const hovered = h("div.hover", { hidden: true, "aria-hidden": "true" });
document.body.append(hovered);
function hover({ clientX, clientY }, text) {
  hovered.hidden = !text;
  if (!text) return;
  hovered.textContent = text;
  hovered.style.left = `${Math.min(clientX + 14, window.innerWidth - hovered.offsetWidth - 4)}px`;
  hovered.style.top = `${Math.min(clientY + 16, window.innerHeight - hovered.offsetHeight - 4)}px`;
}

// Of a tensor of more than two dimensions, lines where the second one goes on.
function divide(context, { columns, across }, sizes, wide, high) {
  const each = sizes.slice(2).reduce((product, size) => product * size, 1);
  if (sizes.length < 3 || sizes[1] > 64 || sizes[1] < 2 || columns !== across) return;
  context.fillStyle = "rgba(255,255,255,.8)";
  for (let at = each; at < across; at += each) context.fillRect((at / across) * wide - 0.5, 0, 1, high);
}

// Some cells lit: the others covered, and a line around those that are.
function light(to, whole, { rows, columns }, lit, width, height) {
  const cover = document.createElement("canvas"), context = Object.assign(cover, { width: columns, height: rows }).getContext("2d");
  context.globalAlpha = 0.7;
  context.fillStyle = color("raised");
  context.fillRect(0, 0, columns, rows);
  const kept = new Uint8Array(rows * columns);
  for (const cell of lit) {
    const row = Math.floor((Math.floor(cell / whole.columns) * rows) / whole.rows);
    const column = Math.floor(((cell % whole.columns) * columns) / whole.columns);
    kept[row * columns + column] = 1;
    context.clearRect(column, row, 1, 1);
  }
  to.drawImage(cover, 0, 0, width, height);
  to.fillStyle = color("accent");
  const wide = width / columns, high = height / rows, is = (row, column) => row >= 0 && column >= 0 && row < rows && column < columns && kept[row * columns + column];
  kept.forEach((each, at) => {
    if (!each) return;
    const row = Math.floor(at / columns), column = at % columns, x = column * wide, y = row * high;
    if (!is(row - 1, column)) to.fillRect(x - 1, y - 1, wide + 2, 2);
    if (!is(row + 1, column)) to.fillRect(x - 1, y + high - 1, wide + 2, 2);
    if (!is(row, column - 1)) to.fillRect(x - 1, y - 1, 2, high + 2);
    if (!is(row, column + 1)) to.fillRect(x + wide - 1, y - 1, 2, high + 2);
  });
}

const ORDER = [0, 2, 3, 1]; // of states, the one that is shown of several: NaN before unwritten before infinite

// At most so many rows and columns of cells: of several together the one that is no number, else the one farthest from the mean.
function pooled(found, most, widest, mean) {
  if (found.rows <= most && found.columns <= widest) return found;
  const rows = Math.min(found.rows, most), columns = Math.min(found.columns, widest);
  const values = new Float64Array(rows * columns).fill(mean), states = new Uint8Array(rows * columns);
  const across = Uint32Array.from({ length: found.columns }, (_, at) => Math.floor((at * columns) / found.columns));
  for (let row = 0, at = 0; row < found.rows; row++) {
    const first = Math.floor((row * rows) / found.rows) * columns;
    for (let column = 0; column < found.columns; column++, at++) {
      const to = first + across[column], state = found.states[at];
      if (state) states[to] = ORDER[state] > ORDER[states[to]] ? state : states[to];
      else if (Math.abs(found.values[at] - mean) >= Math.abs(values[to] - mean)) values[to] = found.values[at];
    }
  }
  return { rows, columns, values, states };
}

// Not by colour alone: NaN crossed, infinite with a bar, unwritten hatched.
function hatch(context, { rows, columns, states }, wide, high) {
  if (!states.some((state) => state)) return;
  context.lineWidth = 1;
  const every = Math.max(1, Math.ceil(7 / Math.min(wide, high)));
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const state = states[row * columns + column];
      if (!state || (row % every) + (column % every)) continue;
      const x = column * wide, y = row * high, w = wide * every, t = high * every;
      context.strokeStyle = state === UNWRITTEN ? "rgba(255,255,255,.75)" : "rgba(0,0,0,.85)";
      context.beginPath();
      if (state === NAN) {
        context.moveTo(x + 1, y + 1); context.lineTo(x + w - 1, y + t - 1);
        context.moveTo(x + w - 1, y + 1); context.lineTo(x + 1, y + t - 1);
      } else if (state === UNWRITTEN) {
        context.moveTo(x, y + t); context.lineTo(x + w, y);
      } else {
        context.moveTo(x, y + t / 2); context.lineTo(x + w, y + t / 2);
      }
      context.stroke();
    }
  }
}

function outline(context, [row, column], wide, high) {
  const size = Math.max(6, wide), tall = Math.max(6, high);
  const x = column * wide + wide / 2 - size / 2, y = row * high + high / 2 - tall / 2;
  context.lineWidth = 3;
  context.strokeStyle = "rgba(0,0,0,.9)";
  context.strokeRect(x - 1, y - 1, size + 2, tall + 2);
  context.lineWidth = 1.5;
  context.strokeStyle = "#fff";
  context.strokeRect(x - 1, y - 1, size + 2, tall + 2);
}

export function legend(scale, { nan, inf, unwritten }, hidden = "unwritten") {
  const bar = canvas(140, 10, (context) => {
    const gradient = context.createLinearGradient(0, 0, 140, 0);
    scale.stops.forEach((rgb, at) => gradient.addColorStop(at / (scale.stops.length - 1), `rgb(${rgb})`));
    context.fillStyle = gradient;
    context.fillRect(0, 0, 140, 10);
  });
  const mark = (kind, text) => h("span.mark", {}, h(`i.swatch.${kind}`), text);
  return h("div.legend", {},
    scale.low !== null && [h("span", {}, shown(scale.low, 4)), scale.high > scale.low && [bar, h("span", {}, shown(scale.high, 4)), scale.way === "log" && h("span", {}, `(${DECADES} decades)`), scale.way === "quantile" && h("span", {}, "(by rank)")]],
    nan > 0 && mark("nan", `NaN ${nan}`), inf > 0 && mark("inf", `inf ${inf}`),
    unwritten > 0 && mark("unwritten", `${hidden} ${unwritten}`));
}

export const pale = () => color("faint");
