// A list of any length of which only the rows in sight are there.
import { h } from "./dom.js";

export function virtualList({ height, label, row, choose }) {
  const inner = h("div.rows");
  const element = h("div.list", { tabindex: 0, role: "listbox", "aria-label": label, onscroll: () => draw() }, inner);
  let items = [], chosen = -1, drawn = new Map();

  function draw() {
    const first = Math.max(0, Math.floor(element.scrollTop / height) - 6);
    const last = Math.min(items.length, Math.ceil((element.scrollTop + element.clientHeight) / height) + 6);
    const next = new Map();
    for (let at = first; at < last; at++) {
      let made = drawn.get(at);
      if (!made) {
        made = row(items[at], at);
        made.style.top = `${at * height}px`;
        made.style.height = `${height}px`;
        made.setAttribute("role", "option");
        made.addEventListener("click", () => pick(at));
        inner.append(made);
      }
      made.setAttribute("aria-selected", at === chosen);
      next.set(at, made);
    }
    for (const [at, made] of drawn) if (!next.has(at)) made.remove();
    drawn = next;
  }

  function pick(at) {
    if (at < 0 || at >= items.length) return;
    chosen = at;
    choose?.(items[at], at);
    reveal(at);
    draw();
  }

  function reveal(at) {
    const top = at * height, bottom = top + height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  }

  element.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(element.clientHeight / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    pick(Math.min(items.length - 1, Math.max(0, (chosen < 0 ? -Math.sign(step) : chosen) + step)));
  });

  new ResizeObserver(() => draw()).observe(element);
  return {
    element,
    show(list, at = -1) {
      items = list;
      chosen = at;
      drawn.forEach((made) => made.remove());
      drawn = new Map();
      inner.style.height = `${items.length * height}px`;
      if (at >= 0) this.mark(at);
      draw();
    },
    chosen: () => chosen,
    pick,
    mark(at) {
      chosen = at;
      const middle = at * height - element.clientHeight / 2;
      if (at * height < element.scrollTop || (at + 1) * height > element.scrollTop + element.clientHeight) {
        element.scrollTop = Math.max(0, middle);
      }
      draw();
    },
  };
}
