// All findings of the run, and those that whoever ran it accepts.
import { fill, h } from "./dom.js";
import { placeText, run, turnText } from "./data.js";
import { showFinding } from "./source.js";
import { counted } from "./words.js";

export const element = h("div.findings");

function one(finding, reason) {
  const turn = turnText(finding.counters, finding.program);
  return h("article.finding", { class: undefined },
    h("h3", {}, h(`span.pill.${finding.severity}`, {}, finding.severity), ` ${finding.rule} ${finding.slug} `,
      h("button.link", { onclick: () => showFinding(finding) }, placeText(finding.place)), turn && h("span.sub", {}, ` ${turn}`),
      finding.expected && h("span.sub", {}, " (the test expects it)")),
    h("p", {}, finding.message), finding.remedy && h("p.remedy", {}, finding.remedy),
    reason !== undefined && h("p.hint", {}, `Accepted: ${reason || "no reason was given"}`), finding.picture && drawing(finding.picture));
}

function drawing({ lines, rows, columns, meanings }) {
  const label = ([first, last]) => (first === last ? `row ${first}` : `rows ${first}..${last}`);
  const width = Math.max(...rows.map((each) => label(each).length));
  const text = lines.map((line, at) => `${label(rows[at]).padEnd(width)}  ${line}`).join("\n");
  const legendText = Object.entries(meanings).map(([sign, meaning]) => `${sign} ${meaning}`).join(", ");
  return h("pre.drawing", {}, `${text}\n${columns}: ${legendText}`);
}

export function draw() {
  const shownFindings = run.findings.slice(0, 300);
  fill(element,
    run.findings.length ? shownFindings.map((each) => one(each)) : h("p.hint", {}, "No rule was broken."),
    run.findings.length > 300 && h("p.hint", {}, `and ${run.findings.length - 300} more`),
    run.run.left_out > 0 && h("p.hint", {}, `${counted(run.run.left_out, "repeat")} were counted only.`),
    run.allowed.length > 0 && [h("h2", {}, "Accepted"), run.allowed.slice(0, 100).map((each) => one(each, each.reason))]);
}
