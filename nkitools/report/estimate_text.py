"""An estimate as a page of text, with a bar for each engine; several of one kernel side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nkitools.rules.shown_text import shown_file

if TYPE_CHECKING:
    from nkitools.record.time_estimate import EngineUse, Estimate
    from nkitools.timing.measured import Beside, Measured

_BAR = 30  # characters of an engine that is always busy
_LINES = 8  # of the critical path that are shown
_TENSORS = 6  # whose traffic is shown
_MEASURED_LINES = 20  # with an engine each, that stand beside their measured times
_LEAST_CHANGE = 0.05  # microseconds of a line that two estimates must differ by
_LEAST = 0.005  # of the latency, which a line of the critical path must have to be shown


def estimate_text(estimate: Estimate) -> str:
    """Return the page of an estimate."""
    return "\n".join(_page(estimate))


def _page(estimate: Estimate) -> Iterator[str]:
    between = f"{us(estimate.lower_us)} to {us(estimate.upper_us)}"
    yield f"{estimate.kernel} on {estimate.chip}: {us(estimate.latency_us)} (estimated), band {between}"
    yield f"  {estimate.how_good}"
    yield f"  bounds: the busiest engine alone {us(estimate.busiest_us)}, in series {us(estimate.serial_us)}"
    yield f"  launch {us(estimate.launch_us)}; {estimate.instructions:,} instructions"
    yield "  at least, each alone, and the distance to it:"
    for name, value in estimate.named_bounds.items():
        yield f"    {name:28} {us(value):>8}  {us(estimate.latency_us - value):>8}"
    for gap in estimate.gaps:
        place = f" ({shown_file(gap.file, whole=False)}:{gap.line})" if gap.line else ""
        yield f"  gap: {gap.bound} would save {us(gap.us)} ({gap.share:.0%}){place}"
    if estimate.left_out_bytes:
        yield (
            f"  loads counted once: {estimate.left_out_bytes:,} of {estimate.loaded_bytes:,} bytes are in SBUF since "
            "an earlier load, and the compiler is assumed to leave them out (the kernel as written: --as-written)"
        )
    if estimate.spilled_bytes:
        cost = f"{us(estimate.spill_us)} of the latency"
        yield f"  spills: {estimate.spilled_bytes:,} bytes for which SBUF has no room (NK202), {cost}"
    yield ""
    several = max(each.core for each in estimate.engines) > 0
    for use in estimate.engines:
        if use.busy_us:
            yield _bar(use, with_core=several)
    yield ""
    yield from _roofline(estimate)
    yield from _traffic(estimate)
    yield ""
    yield "critical path:"
    for each in estimate.critical_path[:_LINES]:
        if each.share >= _LEAST:
            waits = f", waits for {each.waits_for}" if each.waits_for else ""
            place = f"{shown_file(each.file, whole=False)}:{each.line}"
            yield f"  {place}: {each.share:.0%} {us(each.us)}, {each.instruction} ({each.engine}){waits}"
    yield from _advice(estimate)
    yield ""
    yield f"assumed: {estimate.assumed}"


def _advice(estimate: Estimate) -> Iterator[str]:
    if estimate.advice:
        yield ""
        yield "what would save time, each hint alone:"
    for each in estimate.advice:
        place = f"{shown_file(each.file, whole=False)}:{each.line}"
        yield f"  {place}: {each.rule} up to {us(each.us)} ({each.share:.0%}): {each.message}"
        yield f"    {each.remedy}"


def _bar(use: EngineUse, *, with_core: bool) -> str:
    name = f"core {use.core} {use.engine}" if with_core else use.engine
    filled = "#" * round(_BAR * min(use.share, 1.0))
    return f"  {name:14} {filled:{_BAR}} {use.share:4.0%}  {us(use.busy_us)}"


def _roofline(estimate: Estimate) -> Iterator[str]:
    roof = estimate.roofline
    yield (
        f"roofline: {roof.flops:,} flops of matmuls, {roof.hbm_bytes:,} bytes of HBM, {roof.intensity:.3g} flops a "
        f"byte; {roof.share:.0%} of the {roof.roof} roof"
    )


def _traffic(estimate: Estimate) -> Iterator[str]:
    for each in estimate.traffic[:_TENSORS]:
        again = f", each byte {each.loads:.3g} times" if each.loads > 1 else ""
        name = (each.tensor or "(no name)") + ", spilled" * each.spilled
        yield f"  {name}: {each.read_bytes:,} bytes read{again}, {each.written_bytes:,} written, of {each.nbytes:,}"


def side_by_side(estimates: Sequence[Estimate]) -> str:
    """Return the estimates of one kernel on several chips as a table."""
    lines = [f"{'':22}" + "".join(f"{each.chip:>14}" for each in estimates)]
    rows = {
        "latency": [us(each.latency_us) for each in estimates],
        "  at least": [us(each.lower_us) for each in estimates],
        "  at most": [us(each.upper_us) for each in estimates],
        "spills": [us(each.spill_us) for each in estimates],
        "busiest engine": [us(each.busiest_us) for each in estimates],
        "one after the other": [us(each.serial_us) for each in estimates],
        "calibrated": ["yes" if each.is_calibrated else "no" for each in estimates],
    }
    for engine in dict.fromkeys(use.engine for use in estimates[0].engines):
        shares = [max(use.share for use in each.engines if use.engine == engine) for each in estimates]
        if any(shares):
            rows[engine] = [f"{share:.0%}" for share in shares]
    lines += [f"{name:22}" + "".join(f"{value:>14}" for value in values) for name, values in rows.items()]
    return "\n".join(lines)


def changed_lines_text(
    before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], now: Mapping[int, int]
) -> list[str]:
    """Return the lines of two critical paths whose time differs, the largest difference first, as a list in Markdown.

    ``now``: the lines of the file before that are still there, and where they stand.
    """
    found: dict[tuple[str, str], float] = {}
    for path, sign in ((before, -1), (after, 1)):
        for each in path:
            line = each["line"] if sign > 0 else now.get(each["line"])
            place = f"line {line}" if line else f"line {each['line']}, which is gone"
            key = place, each["engine"]
            found[key] = found.get(key, 0.0) + sign * each["us"]
    ordered = sorted(found.items(), key=lambda each: -abs(each[1]))
    return [
        f"- {place}: {'+' if change > 0 else '-'}{us(abs(change))} {engine}"
        for (place, engine), change in ordered[:_LINES]
        if abs(change) >= _LEAST_CHANGE
    ]


def measured_text(measured: Measured) -> str:
    """Return measured figures beside the estimated ones."""
    instance = f", {measured.instance}" * bool(measured.instance)
    kind = "simulated by the compiler, nothing was measured" if measured.is_simulated else "measured"
    lines = [f"{kind} (Neuron Explorer, schema {measured.schema}{instance}), beside the estimate:"]
    lines.append(f"  {'':34}{'measured':>14}{'estimated':>14}")
    known = [each for each in measured.lines if each.measured is not None]
    rows = [measured.latency, *measured.engines, *measured.traffic, *measured.lines[:_MEASURED_LINES]]
    lines += [beside_text(each) for each in rows]
    lines.append(f"  the latency lies {'inside' if measured.is_within_band else 'outside'} the band of the estimate")
    if not known:
        lines.append("  the profile names no source lines: compile with NKI_DEBUG_INFO=True")
    return "\n".join(lines)


def beside_text(each: Beside) -> str:
    """Return one figure, measured and estimated, with the error of the estimate."""
    shown = [
        "-" if value is None else us(value) if each.unit == "us" else f"{value:,.0f}"
        for value in (each.measured, each.estimated)
    ]
    error = "" if each.error is None else f"{each.error:+8.0%}"
    return f"  {each.name:34}{shown[0]:>14}{shown[1]:>14}{error}"


def us(value: float) -> str:
    """Return microseconds as a text with three digits."""
    return f"{value / 1e3:.3g} ms" if value >= 1e3 else f"{value:.3g} us"
