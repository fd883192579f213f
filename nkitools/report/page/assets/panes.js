// The borders between the panes: they are dragged, or moved with the arrow keys.
import { h } from "./dom.js";

// `name`: the style's variable that has the share of the pane before the border, of the box that `whole()` returns.
export function border(name, label, isUpright, share, whole) {
  let now = share;
  const set = (next) => {
    now = Math.min(85, Math.max(15, next));
    document.documentElement.style.setProperty(name, `${now}%`);
    element.setAttribute("aria-valuenow", String(Math.round(now)));
  };
  const element = h("div.border", {
    role: "separator", tabindex: 0, "aria-label": label, "aria-orientation": isUpright ? "vertical" : "horizontal", "aria-valuemin": 15, "aria-valuemax": 85, "aria-valuenow": share,
    ondblclick: () => set(share),
    onkeydown: (event) => {
      const way = (isUpright ? { ArrowLeft: -3, ArrowRight: 3 } : { ArrowUp: -3, ArrowDown: 3 })[event.key];
      if (!way && event.key !== "Home") return;
      event.preventDefault();
      event.stopPropagation();
      set(way ? now + way : share);
    },
    onpointerdown: (event) => {
      event.preventDefault();
      element.setPointerCapture(event.pointerId);
    },
    onpointermove: (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const { left, top, width, height } = whole().getBoundingClientRect();
      set(isUpright ? ((event.clientX - left) / width) * 100 : ((event.clientY - top) / height) * 100);
    },
  });
  return element;
}
