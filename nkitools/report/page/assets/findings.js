// All findings of the run, and those that whoever ran it accepts.
import { fill, h } from "./dom.js";
import { placeText, run, times, turnText } from "./data.js";
import { showFinding } from "./source.js";
import { counted } from "./words.js";

export const element = h("div.findings");

const MOST_TURNS = 40;

// Findings of one rule at one line are one article; those turns of them that the run has kept are links in it.
function grouped(findings) {
  const groups = new Map();
  for (const finding of findings) {
    const key = `${finding.rule}|${finding.place}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(finding);
  }
  return [...groups.values()];
}

function others(rest, more) {
  if (!more) return null;
  const linked = rest.slice(0, MOST_TURNS);
  return h("details", {}, h("summary", {}, `${counted(more, "more turn")} of this line`), h("p", {}, linked.map((each) =>
    [h("button.link", { onclick: () => showFinding(each) }, turnText(each.counters, each.program) || placeText(each.place)), " "]),
  more > linked.length && `and ${more - linked.length} more`));
}

let marked = null;

// Bring the finding that is shown into sight.
export function markFinding(finding) {
  marked = finding;
  const article = [...element.querySelectorAll("article")].find((each) => each.findings?.includes(finding));
  element.querySelectorAll("article[aria-current]").forEach((each) => each.removeAttribute("aria-current"));
  article?.setAttribute("aria-current", "true");
  article?.scrollIntoView({ block: "nearest" });
}

function one(group, reason) {
  const [finding, ...rest] = group.flatMap((each) => [each, ...each.turns.map((turn) => ({ ...each, ...turn }))]);
  const turn = turnText(finding.counters, finding.program);
  const article = h("article.finding", { "aria-current": [finding, ...rest].includes(marked) || undefined },
    h("h3", {}, h(`span.pill.${finding.severity}`, {}, finding.severity), ` ${finding.rule} ${finding.slug} `,
      h("button.link", { onclick: () => showFinding(finding) }, placeText(finding.place)), turn && h("span.sub", {}, ` ${turn}`),
      finding.expected && h("span.sub", {}, " (the test expects it)")),
    h("p", {}, finding.message), finding.remedy && h("p.remedy", {}, finding.remedy),
    reason !== undefined && h("p.hint", {}, `Accepted: ${reason || "no reason was given"}`), finding.picture && drawing(finding.picture), others(rest, times(group) - 1));
  article.findings = [finding, ...rest];
  return article;
}

export function drawing({ lines, rows, columns, across, first, meanings }) {
  const label = ([top, bottom] = ["", ""]) => (top === "" ? "" : top === bottom ? `row ${top}` : `rows ${top}..${bottom}`);
  const width = Math.max(0, ...rows.map((each) => label(each).length));
  const text = lines.map((line, at) => `${label(rows[at]).padEnd(width)}  ${line}`).join("\n");
  const signs = lines[0]?.length ?? 0;
  const legendText = Object.entries(meanings).map(([sign, meaning]) => `${sign} ${meaning}`).join(", ");
  return h("pre.drawing", {}, `${text}\n${across} ${first}..${first + columns - 1}${signs === columns ? "" : ` in ${signs} signs`}: ${legendText}`);
}

export function draw() {
  const groups = grouped(run.findings);
  fill(element,
    run.findings.length ? groups.slice(0, 300).map((each) => one(each)) : h("p.hint", {}, "No rule was broken."),
    groups.length > 300 && h("p.hint", {}, `and findings of ${groups.length - 300} more lines`),
    run.run.left_out > 0 && h("p.hint", {}, `${counted(run.run.left_out, "repeat")} were counted only.`),
    run.allowed.length > 0 && [h("h2", {}, "Accepted"), run.allowed.slice(0, 100).map((each) => one([each], each.reason))]);
}
