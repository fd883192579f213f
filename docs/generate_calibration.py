"""The page of all published latencies that the timing model was fitted on, with its estimates."""

from __future__ import annotations

from nkitools.timing.calibration import calibration_rows, quality, variant_pairs
from nkitools.timing.knobs import KNOBS

_UNITS = {
    "launch_us": "microseconds before the first instruction and after the last one",
    "dma_latency_ns": "nanoseconds between the last byte of a transfer and the instruction that waits for it",
    "dma_bandwidth": "of the published bandwidth of a core's DMA engines",
    "descriptor_ns": "nanoseconds of a DMA engine for one descriptor, at least",
    "dma_issue_ns": "nanoseconds between the starts of two transfers, at least",
    "matmul_gap_cycles": "cycles between two passes of matmuls",
    "instruction_gap_cycles": "cycles between two instructions of the Vector, Scalar or GpSimd Engine",
    "result_ns": "nanoseconds between the end of an instruction and the start of one that reads its result",
}


def calibration_page() -> str:
    """Return the page as Markdown."""
    good = quality()
    lines = [
        "# Published latencies and estimates",
        "",
        f"{good.rows} rows count: median error {good.median:.1%}, nine of ten within {good.p90:.1%}, rank correlation "
        f"{good.rank:.3f}. Fitted without the row's family, the median error is {good.left_out_median:.1%}. "
        f"{good.not_fitted} other rows are shown for the order of variants, and no fit has used them: their median "
        f"error is {good.not_fitted_median:.1%}. What the numbers mean: "
        "[how time is estimated](../explanation/time.md).",
        "",
        "| kernel | family | chip | shape | published, us | estimate, us | error | without its family |",
        "|---|---|---|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row.id}{'' if row.counts else ' (not fitted)'} | {row.family} | {row.chip} | {row.shape} {row.dtype} "
        f"| {row.published_us:,g} | {row.estimate_us:,g} | {row.error:+.0%} | {row.left_out_error:+.0%} |"
        for row in calibration_rows()
    ]
    pairs = variant_pairs()
    right = sum(pair.is_right for pair in pairs)
    close = [pair for pair in pairs if 0.99 < pair.slow.estimate_us / pair.fast.estimate_us < 1.01]
    lines += [
        "",
        "## Order of variants",
        "",
        f"The estimates order {right} of {len(pairs)} pairs as published. They are less than 1 % apart in {len(close)} "
        f"pairs, {sum(pair.is_right for pair in close)} of them in the published order.",
        "",
    ]
    lines += ["| variants of | slower | faster | published, us | estimate, us | order |", "|---|---|---|--:|--:|---|"]
    lines += [
        f"| {slow.variants_of} | {slow.id} | {fast.id} | {slow.published_us:,g} / {fast.published_us:,g} "
        f"| {slow.estimate_us:,g} / {fast.estimate_us:,g} | {'right' if pair.is_right else 'wrong'} |"
        for pair in pairs
        for slow, fast in [(pair.slow, pair.fast)]
    ]
    lines += ["", "## Knobs", "", "| knob | value | what it is |", "|---|--:|---|"]
    lines += [f"| {name} | {value:g} | {_UNITS[name]} |" for name, value in KNOBS["common"].items()]
    for generation, values in KNOBS["by_generation"].items():
        lines += [f"| {name}, {generation} | {value:g} | {_UNITS[name]} |" for name, value in values.items()]
    return "\n".join([*lines, "", "Sources:", "", *(f"- {row.id}: {row.source}" for row in calibration_rows()), ""])
