// The first look: what is wrong with this run, gravest first, each with a way to where it happened.
import { fill, h } from "./dom.js";
import { count, differs, nameOf, otherName, numbers, placeText, run, storageOf, times, turnText, writeAt, writes } from "./data.js";
import { showItem, showPosition } from "./choose.js";
import { drawing } from "./findings.js";
import { heatMap, scaleOf } from "./heat.js";
import { firstStrange } from "./series.js";
import { showFinding } from "./source.js";
import { set } from "./state.js";
import { counted, grouped, shown } from "./words.js";

export const element = h("div.overview");

function turnOf(position) {
  const loops = run.instructions.loops[position] || (writeAt(position)?.loops ?? 0);
  return turnText(loops, run.instructions.program[position]);
}

function card(kind, headline, text, action) {
  return h(`article.card.${kind}`, {}, h("h3", {}, headline), h("p", {}, text), action);
}

const go = (text, onclick) => h("button.go", { onclick }, text);

function differences() {
  return run.outputs.filter((each) => each.comparison).map((output) => {
    const { message, count, size, worst, largest, tiles, ours, theirs, tolerance } = output.comparison;
    const name = nameOfOutput(output);
    if (message) return card("warning", `${name} was not compared`, message);
    const within = toleranceText(output.comparison);
    if (!count && tolerance === "none") return card("hint", `${name} beside the reference`, [`The test has passed and states no tolerance to run_kernel. ${
      worst.length ? `The largest difference, ${shown(largest)}, is at [${worst.join(", ")}].` : "Every element is equal."}`]);
    if (!count) return card("good", `${name} agrees with ${otherName}`, `All ${grouped(size)} elements, within ${within}.`);
    const first = tiles[0]?.[0];
    const turn = first === undefined ? "" : turnOf(first);
    return card("error", `${name} differs from ${otherName}`,
      [`${grouped(count)} of ${counted(size, "element")}; the worst at [${worst.join(", ")}]: ${ours}, where ${otherName} has ${theirs}`,
        largest === null ? "." : ` (off by ${shown(largest)}).`, ` The tolerance: ${within}.`,
        first !== undefined && [" The first wrong tile was written by ", h("b", {}, placeText(run.instructions.place[first])),
          turn && [" in the turn ", h("b", {}, turn)], "."]],
      h("p", {}, first !== undefined && go("Show the first wrong tile", () => showPosition(first)),
        go("Show the difference", () => set({ tab: "outputs" }))));
  });
}

// The tolerance of a comparison, and where it comes from.
export function toleranceText({ rtol, atol, tolerance }) {
  if (tolerance === "none") return "no tolerance";
  return tolerance === "stated" ? `${shown(atol)} + ${shown(rtol)} * |reference|, as stated`
    : `what the dtype rounds: ${shown(rtol)} relative (no tolerance was stated)`;
}

export function nameOfOutput(output) {
  const tensor = output.storage === undefined ? "" : storageOf(output.storage)[0];
  const rank = typeof output.rank === "number" ? ` of rank ${output.rank}` : "";
  return `${tensor ? `Output ${tensor}` : output.name === "outputs" ? "The output" : `Output ${output.name.replace(/^outputs/, "")}`}${rank}`;
}

// The rules about elements that nothing has written: what is NaN where one of them is broken has its cause there.
const UNWRITTEN = new Set(["CO106", "NK401", "NK403", "NK405", "PL205", "PL207"]);
const isExplained = () => run.findings.some((each) => UNWRITTEN.has(each.rule));

// Outputs of a run that ended before it returned them, as it left them.
function unfinished() {
  return run.outputs.filter((each) => each.unfinished).map((output) => card("error", `${nameOfOutput(output)} as the run left it`,
    `${grouped(numbers(output.tile).unwritten)} of ${counted(output.shape.reduce((product, each) => product * each, 1), "element")} were never written; they are hatched.`,
    h("p", {}, heatMap(output.tile, { width: 250, height: 130, scale: scaleOf(numbers(output.tile).low, numbers(output.tile).high), label: "the output as the run left it" }), " ", go("Show the output", () => set({ tab: "outputs" })))));
}

// Outputs with NaN that no reference and no finding explains.
function strangeOutputs() {
  return isExplained() ? [] : run.outputs.filter((each) => (!each.comparison || each.comparison.message) && numbers(each.tile).nan > 0).map((output) =>
    card("warning", `${nameOfOutput(output)} has ${counted(numbers(output.tile).nan, "NaN", "NaN")}`,
      `${grouped(numbers(output.tile).nan)} of ${counted(output.shape.reduce((product, each) => product * each, 1), "element")}. Without a reference the page cannot say whether they belong there.`,
      go("Show the output", () => set({ tab: "outputs" }))));
}

function strange() {
  if (!firstStrange || isExplained()) return null;
  const place = placeText(firstStrange.place), turn = turnText(firstStrange.loops, firstStrange.program);
  const { nan } = numbers(firstStrange.tile);
  return card("warning", nan ? "The first NaN" : "The first infinite element",
    [`is in ${nameOf(firstStrange)}, written by `, h("b", {}, place), turn && [" in the turn ", h("b", {}, turn)], "."],
    go(nan ? "Show the NaN" : "Show it", () => showItem(firstStrange)));
}

function findings() {
  const grouped = new Map();
  for (const finding of run.findings) {
    const key = `${finding.rule}|${finding.place}`;
    if (!grouped.has(key)) grouped.set(key, []);
    grouped.get(key).push(finding);
  }
  const order = { error: 0, warning: 1, hint: 2 };
  const ranked = [...grouped.values()].sort((a, b) => order[a[0].severity] - order[b[0].severity]);
  return ranked.slice(0, 12).map((all, at) => card(all[0].severity,
    `${all[0].rule} ${all[0].slug}`,
    [all[0].message, " ", h("span.hint", {}, placeText(all[0].place), times(all) > 1 && ` ×${times(all)}`)],
    [all[0].remedy && h("p.remedy", {}, all[0].remedy), at === 0 && all[0].picture && drawing(all[0].picture), go("Show the line", () => showFinding(all[0]))]));
}

// What differs from the other run, line by line, the first write first.
function against() {
  if (!run.against) return null;
  const { unknown, alone } = run.against, first = [...differs.values()].map((each) => each.position).sort((a, b) => a - b)[0];
  const rest = [unknown > 0 && ` Of ${counted(unknown, "write")} only summaries were kept: they are not compared.`, alone > 0 && ` ${counted(alone, "write")} ${otherName} has not.`];
  if (first === undefined) return card("good", `No write differs from ${otherName}`, ["Compared by tensor, program and counters.", rest]);
  return card("error", `${counted(differs.size, "write")} ${differs.size === 1 ? "differs" : "differ"} from ${otherName}`,
    ["The first: ", h("b", {}, placeText(run.instructions.place[first])), turnOf(first) && [" in the turn ", h("b", {}, turnOf(first))], ".", rest],
    go("Show the first difference", () => showPosition(first)));
}

export function draw() {
  const { error, reduced, watched } = run.run;
  const cards = [against(), differences(), findings(), unfinished(), strangeOutputs(), strange()].flat().filter(Boolean);
  fill(element,
    error && !run.findings.length && card("error", "The run ended with an error", error),
    cards.length ? cards : card("good", "Nothing was found",
      "No rule was broken and no element is NaN. Without a reference the page cannot say whether the values are right."),
    !watched && count > 0 && card("hint", "No values were kept", [
      "This run was not watched: the page shows instructions, memory, prints and findings, but no tiles.", run.title ? "" :
        " Run it with --nki-report, with nkitools view, or inside nkitools.watching()."]),
    !count && !error && card("hint", "What is known of this run", `It ran on ${run.run.target}, which shows its prints, findings and outputs and none of its instructions.`),
    Object.keys(run.left_out_modes).length > 0 && card("hint", "Ways of checking that were left out", Object.entries(run.left_out_modes).map(([mode, why]) => h("div", {}, h("b", {}, mode), `: ${why}`))),
    reduced > 0 && card("hint", "Some values are summaries",
      `Of ${counted(reduced, "value")} only a coarse picture was kept, as the budget was used up; ${grouped(writes.length)} writes were seen.`));
}
