// What bounds a run by its estimate: engines, roofline, traffic, critical path and advice; of Pallas calls a row for each.
import { canvas, color, h } from "./dom.js";
import { placeText, run } from "./data.js";
import { lineOf, showLine } from "./choose.js";
import { itemsAt } from "./series.js";
import { bytes, grouped, shown } from "./words.js";

const { time } = run;

export function summary() {
  const row = (name, value) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value));
  const busy = time.engines.filter((each) => each.busy_us > 0).sort((a, b) => b.busy_us - a.busy_us).slice(0, 8);
  const cores = new Set(time.engines.map((each) => each.core)).size;
  return h("div.bounds", {},
    h("article", {}, h("h4", {}, "Estimate"), h("table.plain", {}, h("tbody", {},
      row("latency", `${shown(time.latency_us, 4)} µs (${shown(time.lower_us, 3)} to ${shown(time.upper_us, 3)})`),
      row("busiest engine alone", `${shown(time.busiest_us, 4)} µs`), row("one after the other", `${shown(time.serial_us, 4)} µs`),
      busy.map((each) => row(cores > 1 ? `core ${each.core} ${each.engine}` : each.engine, `${shown(each.busy_us, 3)} µs, ${Math.round(each.share * 100)} %`)))),
      h("p.hint", {}, time.how_good)),
    h("article", {}, h("h4", {}, "Roofline"), roofline(), h("p.hint", {}, `${shown(time.roofline.flops / 1e6, 3)} MFLOP over ${bytes(time.roofline.hbm_bytes)} of HBM: ${shown(time.roofline.intensity, 3)} a byte; bound by ${time.roofline.roof}, ${Math.round(time.roofline.share * 100)} % of its roof`)),
    h("article", {}, h("h4", {}, "HBM traffic"), h("table.plain", {}, h("thead", {}, h("tr", {}, ["tensor", "read", "loads", "written"].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, time.traffic.slice(0, 8).map((each) => h("tr", {}, h("td", {}, (each.tensor || "(unnamed)") + (each.spilled ? ", spilled" : "")), h("td", {}, bytes(each.read_bytes)),
        h("td", {}, each.nbytes ? `${shown(each.read_bytes / each.nbytes, 3)}×` : ""), h("td", {}, bytes(each.written_bytes))))))),
    h("article", {}, h("h4", {}, "Critical path"), h("table.plain", {}, h("tbody", {}, time.critical_path.slice(0, 8).map((each) => h("tr", {},
      h("td", {}, toLine(each)), h("td", {}, each.instruction), h("td", {}, `${Math.round(each.share * 100)} %`), h("td", {}, each.waits_for && `after ${each.waits_for}`)))))),
    h("article", {}, h("h4", {}, "Advice"), time.advice.length ? h("ul.advice", {}, time.advice.map((each) => h("li", {}, toLine(each), " ",
      h("b", {}, `${each.rule}: −${Math.round(each.share * 100)} %`), ` at most. ${each.message} `, h("span.hint", {}, each.remedy))))
      : h("p.hint", {}, time.advised ? "No single change would save a twentieth of the latency." : "Left out of so long a run; nkitools estimate has it.")));
}

const placeOf = ({ file, line }) => run.places.findIndex(([path, at]) => path === file && at === line);

function toLine(each) {
  const place = placeOf(each), line = place < 0 ? null : lineOf(place);
  return line ? h("button.link", { onclick: () => showLine(line, itemsAt(line)[0]) }, placeText(place)) : `line ${each.line}`;
}

function roofline() {
  const width = 250, height = 130, { intensity, flops } = time.roofline, ridge = time.peak_flops / time.bytes_per_second;
  const reached = flops / (time.latency_us * 1e-6), lowest = Math.min(ridge, intensity || ridge) / 10, highest = Math.max(ridge, intensity) * 10;
  const x = (value) => 8 + (Math.log10(value / lowest) / Math.log10(highest / lowest)) * (width - 16);
  const least = Math.min(time.bytes_per_second * lowest, reached || Infinity) / 2;
  const y = (value) => height - 8 - (Math.log10(value / least) / Math.log10((time.peak_flops * 2) / least)) * (height - 16);
  const found = canvas(width, height, (context) => {
    context.strokeStyle = color("soft");
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x(lowest), y(time.bytes_per_second * lowest));
    context.lineTo(x(ridge), y(time.peak_flops));
    context.lineTo(x(highest), y(time.peak_flops));
    context.stroke();
    context.fillStyle = color("bad");
    if (flops && intensity) {
      context.beginPath();
      context.arc(x(intensity), y(reached), 5, 0, 7);
      context.fill();
    }
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = color("soft");
    context.fillText(`${shown(time.peak_flops / 1e12, 3)} TFLOP/s`, width - 86, y(time.peak_flops) + 14);
  });
  found.setAttribute("role", "img");
  found.setAttribute("aria-label", flops ? `Roofline: ${shown(reached / 1e12, 3)} of ${shown(time.peak_flops / 1e12, 3)} TFLOP/s at ${shown(intensity, 3)} flops a byte` : "Roofline: no matmul");
  return found;
}

// The estimates of Pallas calls: one row for each call and chip.
export function calls() {
  const cell = (value) => h("td", {}, value);
  const row = (each) => h("tr", {}, h("th", { scope: "row" }, each.kernel), cell(each.chip),
    each.latency_us === null ? h("td", { colspan: 6 }, `no estimate: ${each.left_out}`) : [
      cell(`${shown(each.latency_us, 4)} µs`), cell(each.bound), cell(`${shown(each.compute_us, 4)} µs`), cell(`${shown(each.memory_us, 4)} µs (${bytes(each.hbm_bytes)})`),
      cell(each.profiled_steps < each.steps ? `${grouped(each.steps)} (${grouped(each.profiled_steps)} profiled)` : grouped(each.steps)),
      cell(Object.entries(each.units).filter(([, share]) => share > 0).map(([unit, share]) => `${unit} ${Math.round(share * 100)} %`).join(", "))]);
  return [h("div.wide", { tabindex: 0, role: "group", "aria-label": "Estimates of Pallas calls" }, h("table.plain.calls", {}, h("thead", {}, h("tr", {}, ["Pallas call", "chip", "estimate", "bound by", "compute", "HBM", "grid points", "slots filled"].map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, time.kernels.map(row)))),
  h("p.hint", {}, "By the TPU compiler's static profile and the peak of the HBM, the greater of both; nothing was measured.")];
}
