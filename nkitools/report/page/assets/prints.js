// The device prints in their order; a word in the box keeps those that have it.
import { fill, h } from "./dom.js";
import { numbersText, placeText, prints, turnText } from "./data.js";
import { showItem } from "./choose.js";
import { virtualList } from "./list.js";
import { listen, state } from "./state.js";
import { counted, shape } from "./words.js";

let kept = prints;
const list = virtualList({
  height: 30, label: "Device prints", choose: (print) => showItem(print),
  row: (print) => h("div.row", {}, h("b.cut", {}, print.prefix || "(no prefix)"),
    h("span.cut", {}, turnText(print.loops, print.program)), h("span.cut.place", {}, placeText(print.place)),
    h("span.cut", {}, `${print.memory} ${print.dtype} ${shape(print.shape)}`),
    h("span.cut", {}, print.tile === null ? "" : numbersText(print.tile))),
});
const count = h("span.hint");
const box = h("input", { type: "search", placeholder: "filter by prefix, counter or line", "aria-label": "Filter prints", oninput: filter });
export const element = h("div.pane.prints", {}, h("div.tools", {}, box, count), list.element);

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  kept = prints.filter((print) => {
    const text = `${print.prefix} ${turnText(print.loops, print.program)} ${placeText(print.place)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  fill(count, kept.length === prints.length ? counted(prints.length, "print") : `${kept.length} of ${counted(prints.length, "print")}`);
  list.show(kept, kept.indexOf(state.item));
}

listen((changed) => {
  if (changed.has("item") && state.item?.kind === "print") {
    const at = kept.indexOf(state.item);
    if (at >= 0) list.mark(at);
  }
});

export const draw = filter;
