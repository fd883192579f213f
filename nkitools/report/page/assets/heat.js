// The picture of a tile: colours by value, hatching and marks for what is no number.
import { canvas, color, h } from "./dom.js";
import { INF, NAN, UNWRITTEN, tile } from "./data.js";
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

// How values become colours: `low` to `high`, around zero where values have both signs.
export function scaleOf(low, high, kind = "") {
  if (low === null || high === null || low === undefined) return { low: null, high: null, stops: SEQUENTIAL };
  if (kind === "error") return { low: 0, high: high || 1, stops: ERRORS };
  if (low < 0 && high > 0) {
    const reach = Math.max(-low, high);
    return { low: -reach, high: reach, stops: DIVERGING };
  }
  return { low, high, stops: SEQUENTIAL };
}

const table = new Map();
function paletteOf(stops) {
  if (!table.has(stops)) table.set(stops, Array.from({ length: 256 }, (_, at) => mixed(stops, at / 255)));
  return table.get(stops);
}

export function picture(shownTile, scale) {
  const { rows, columns, values, states } = shownTile;
  const image = new ImageData(columns, rows);
  const palette = paletteOf(scale.stops), reach = scale.high > scale.low ? 255 / (scale.high - scale.low) : 0;
  for (let at = 0; at < values.length; at++) {
    const state = states[at];
    let rgb;
    if (state === NAN) rgb = [255, 0, 200];
    else if (state === UNWRITTEN) rgb = [128, 128, 128];
    else if (state === INF) rgb = [255, 140, 0];
    else rgb = palette[Math.min(255, Math.max(0, Math.round((values[at] - scale.low) * reach)))];
    image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * at);
  }
  return image;
}

// The heat map of a tile in at most so many pixels, with a cell that is marked; `point(row, column)` follows the mouse.
export function heatMap(number, { width, height, scale, cell, point, label }) {
  const found = tile(number);
  const { rows, columns, down, across } = found;
  // In about the tile's own proportions, but no cell becomes too narrow or too flat to be seen or hit.
  const ratio = down / across;
  let wide = width, high = wide * ratio;
  if (high > height) [wide, high] = [height / ratio, height];
  wide = Math.round(Math.min(width, Math.max(wide, Math.min(width * 0.75, across * 22), 30)));
  high = Math.round(Math.min(height, Math.max(high, Math.min(height * 0.6, down * 16), 24)));
  const source = document.createElement("canvas");
  [source.width, source.height] = [columns, rows];
  source.getContext("2d").putImageData(picture(found, scale), 0, 0);
  const element = canvas(wide, high, (context) => {
    context.imageSmoothingEnabled = false;
    context.drawImage(source, 0, 0, wide, high);
    hatch(context, found, wide / columns, high / rows);
    if (cell) outline(context, cell, wide / columns, high / rows);
  });
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", label ?? "heat map");
  if (point) {
    const told = (event) => {
      const box = element.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
      const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
      if (row >= 0 && column >= 0 && row < rows && column < columns) point(row, column);
    };
    element.addEventListener("click", told);
    element.style.cursor = "crosshair";
  }
  return element;
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
    scale.low !== null && [h("span", {}, shown(scale.low, 4)), scale.high > scale.low && [bar, h("span", {}, shown(scale.high, 4))]],
    nan > 0 && mark("nan", `NaN ${nan}`), inf > 0 && mark("inf", `inf ${inf}`),
    unwritten > 0 && mark("unwritten", `${hidden} ${unwritten}`));
}

export const pale = () => color("faint");
