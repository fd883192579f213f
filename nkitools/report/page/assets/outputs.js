// Arguments and results; each result beside what it should be, with the difference and who wrote it.
import { canvas, color, fill, h } from "./dom.js";
import { cellAt, numbers, numbersText, placeText, run, tile, turnText, writeAt } from "./data.js";
import { heatMap, legend, scaleOf } from "./heat.js";
import { showArray, showPosition } from "./choose.js";
import { nameOfOutput, toleranceText } from "./overview.js";
import { set } from "./state.js";
import { counted, grouped, shape, shown } from "./words.js";

export const outputs = h("div.arrays");
export const inputs = h("div.arrays");

function figure(title, array, number, kind = "", low = null, high = null, at = null) {
  const told = numbers(number);
  const own = numbers(number);
  const scale = low === null ? scaleOf(own.low, own.high, kind) : scaleOf(low, high);
  const shownValue = { ...array, tile: number };
  const open = (flat) => {
    showArray({ ...shownValue, scale: kind }, title);
    if (flat !== null) set({ cell: cellOf(number, flat) });
  };
  return h("figure", {}, h("figcaption", {}, h("button.link", { onclick: () => open(at) }, title)), heatMap(number, { width: 250, height: 170, scale, cell: at === null ? null : cellOf(number, at), label: `${title}: ${numbersText(number)}`,
    point: () => open(at) }), legend(scale, told));
}

// The cell of a tile that holds an element, by its place in the flattened array.
function cellOf(number, flat) {
  const found = tile(number);
  return cellAt(found, Math.floor(flat / found.across), flat % found.across);
}

function output(each) {
  const name = nameOfOutput(each);
  const { comparison } = each;
  const head = h("h3", {}, name, h("span.sub", {}, ` ${each.dtype} ${shape(each.shape)}`));
  if (!comparison || comparison.message) {
    return h("article", {}, head, h("p.hint", {}, comparison?.message ?? (each.unfinished ? "The run ended before it returned this; hatched elements were never written." :
      "No reference was given: pass reference= to run_kernel, or compare the outputs with numpy.testing in the test.")),
    h("div.figures", {}, figure(name, each, each.tile)));
  }
  const ours = numbers(each.tile), theirs = numbers(comparison.expected);
  const lows = [ours.low, theirs.low].filter((each) => each !== null), highs = [ours.high, theirs.high].filter((each) => each !== null);
  const low = lows.length ? Math.min(...lows) : null, high = highs.length ? Math.max(...highs) : null;
  const wrong = comparison.count;
  const at = comparison.worst.length ? comparison.worst.reduce((flat, index, axis) => flat * each.shape[axis] + index, 0) : null;
  return h("article", {}, head,
    h("p", {}, h(`span.pill.${wrong ? "bad" : "good"}`, {}, wrong ? `${grouped(wrong)} of ${grouped(comparison.size)} differ` : comparison.tolerance === "none" ? "not judged" : "agrees"),
      ` ${toleranceText(comparison)}`),
    h("div.figures", {}, figure(name, each, each.tile, "", low, high, at), figure("Reference", each, comparison.expected, "", low, high, at),
      figure("Absolute difference", each, comparison.distance, "error", null, null, at),
      wrong > 0 && figure("Wrong elements", each, comparison.wrong, "error", null, null, at)),
    at !== null && h("p.hint", {}, `Marked: the ${wrong ? "worst element" : "largest difference"}, [${comparison.worst.join(", ")}]. A picture leads to it.`),
    wrong > 0 && h("div.details", {}, worst(each, comparison), histogram(comparison), tiles(comparison)));
}

function worst(each, { worst: at, ours, theirs, largest }) {
  return h("div", {}, h("h4", {}, "Worst element"), h("table.plain", {},
    h("tr", {}, h("th", {}, "index"), h("td", {}, `[${at.join(", ")}]`)),
    h("tr", {}, h("th", {}, "output"), h("td", {}, ours)),
    h("tr", {}, h("th", {}, "reference"), h("td", {}, theirs)),
    h("tr", {}, h("th", {}, "difference"), h("td", {}, shown(largest)))));
}

function histogram({ histogram: told }) {
  const width = 320, height = 96, most = Math.max(1, ...told.bins);
  const wide = width / Math.max(1, told.bins.length);
  const picture = canvas(width, height, (context) => {
    context.fillStyle = color("bad");
    told.bins.forEach((count, at) => {
      const tall = count ? Math.max(2, (Math.log1p(count) / Math.log1p(most)) * (height - 4)) : 0;
      context.fillRect(at * wide, height - tall, Math.max(1, wide - 1), tall);
    });
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `histogram of absolute differences from 1e${told.from} to 1e${told.to}`);
  return h("div", {}, h("h4", {}, "Differences"), picture,
    h("p.ends", {}, h("span", {}, `1e${told.from}`), h("span", {}, "absolute difference (counts: log)"), h("span", {}, `1e${told.to}`)),
    h("p.hint", {}, `${counted(told.equal, "element")} equal`, told.unknown > 0 && `, ${counted(told.unknown, "element")} NaN or infinite`));
}

function tiles({ tiles: found }) {
  const row = ([position, count], at) => h("li", {}, h("button.link", { onclick: () => showPosition(position) },
    placeText(run.instructions.place[position]), turnOf(position) && ` (${turnOf(position)})`),
  ` ${counted(count, "wrong element")}`, at === 0 && h("span.pill.bad", {}, "first"));
  return h("div", {}, h("h4", {}, "Wrong tiles, in the order of writing"), found.length
    ? h("ol", {}, found.slice(0, 40).map(row), found.length > 40 && h("li.hint", {}, `and ${found.length - 40} more`))
    : h("p.hint", {}, "Which instruction wrote them is not known."));
}

function turnOf(position) {
  return turnText(run.instructions.loops[position] || (writeAt(position)?.loops ?? 0), run.instructions.program[position]);
}

export function draw() {
  fill(outputs, run.outputs.length ? run.outputs.map(output) : h("p.hint", {}, "The run has no outputs."));
  fill(inputs, run.inputs.length ? h("div.figures", {}, run.inputs.map((each) => figure(
    `${each.name}${each.rank === null ? "" : ` (rank ${each.rank})`} ${each.dtype} ${shape(each.shape)}`, each, each.tile)))
    : h("p.hint", {}, "The values of the arguments were not kept."));
}
