// Lanes of events in the order in which they were simulated, which is no time, or in estimated time: bars from one place to another.
import { canvas, color, fill, h } from "./dom.js";
import { showPosition } from "./choose.js";
import { state } from "./state.js";
import { shown } from "./words.js";

export const KINDS = {
  point: "#6b7785", pipeline: "#3d7de0", kernel: "#2e9e5b", dma: "#d04a6a", semaphore: "#9b59d0", read: "#3d7de0", write: "#d04a6a", tcm: "#e08a1e", element: "#2e9e5b", stream: "#9b59d0",
};
const LABELS = 150, LANE = 18, AXIS = 16;

// Where the marks of an axis stand: steps of 1, 2 or 5, about so many.
export function marks(from, to, many) {
  const rough = (to - from) / many, power = 10 ** Math.floor(Math.log10(rough)), found = [];
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

// `lanes`: name and slices, each { from, to, position, kind } in places from 0 to `length`, with `share` as high as that;
// `bands`: [from, to] that are shaded; `unit`: that of places in time.
export function orderLanes(lanes, length, width, { label, bands = [], unit = null, sentence }) {
  const top = unit ? AXIS : 0, height = lanes.length * LANE + 4 + top, reach = length || 1, per = (width - LABELS) / reach;
  const told = h("p.hint.told", { "aria-live": "polite" });
  const picture = canvas(width, height, (context) => {
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = color("raised");
    for (const [from, to] of bands) context.fillRect(LABELS + from * per, 0, Math.max(1, (to - from) * per), height);
    for (const at of unit ? marks(0, reach, Math.max(2, width / 130)) : []) {
      context.fillStyle = color("line");
      context.fillRect(LABELS + at * per, 0, 1, height);
      context.fillStyle = color("soft");
      context.fillText(`${shown(at, 4)} ${unit}`, LABELS + at * per + 3, 11);
    }
    lanes.forEach(({ name, slices }, at) => {
      const y = top + at * LANE + 2;
      context.fillStyle = color("soft");
      context.fillText(name, 2, y + 12, LABELS - 8);
      context.fillStyle = color("line");
      context.fillRect(LABELS, y + LANE - 3, width - LABELS, 1);
      for (const { from, to, position, kind, share = 1 } of slices) {
        context.fillStyle = KINDS[kind];
        const here = position === state.position, x = LABELS + from * per, wide = Math.max(1, (to - from) * per - (per * (to - from) > 3 ? 1 : 0)), high = Math.max(1, (LANE - 5) * share);
        context.globalAlpha = here ? 1 : 0.8;
        context.fillRect(x, y + LANE - 4 - high, wide, high);
        context.globalAlpha = 1;
        if (!here) continue;
        context.fillStyle = color("text");
        context.fillRect(x - 1, y - 1, Math.max(3, wide + 2), 2);
        context.fillRect(x - 1, y + LANE - 4, Math.max(3, wide + 2), 2);
      }
    });
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  picture.style.cursor = "pointer";
  const under = (event) => {
    const lane = lanes[Math.floor((event.offsetY - 2 - top) / LANE)], at = (event.offsetX - LABELS) / per, near = 3 / per;
    if (!lane || at < -near) return -1;
    let best = null;
    for (const each of lane.slices) {
      const away = at < each.from ? each.from - at : at > each.to ? at - each.to : 0;
      if (away <= near && (!best || away < best.away)) best = { away, position: each.position };
    }
    return best?.position ?? -1;
  };
  picture.addEventListener("mousemove", (event) => fill(told, under(event) < 0 ? "" : sentence(under(event))));
  picture.addEventListener("click", (event) => under(event) >= 0 && showPosition(under(event)));
  return h("div.order", {}, h("div", { tabindex: 0, role: "group", "aria-label": label }, picture), told);
}
