"""A run as plain data for JSON: kernel, target, findings, and statistics of prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkitools.report.findings import finding_as_plain

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print
    from nkitools.record.run import Run


def described(run: Run) -> dict[str, Any]:
    """Kernel, target, chip, error, number of instructions, findings and prints of ``run``: docs/reference/json.md."""
    return {
        "kernel": run.kernel,
        "target": run.target,
        "chip": run.chip,
        "error": None if run.error is None else f"{type(run.error).__name__}: {run.error}",
        "instructions": len(run.instructions),
        "findings": [finding_as_plain(finding) for finding in run.findings],
        "expected": [index for index, each in enumerate(run.findings) if any(each is one for one in run.expected)],
        "allowed": [{**finding_as_plain(each), "reason": run.reasons[each.rule]} for each in run.allowed],
        "findings_left_out": run.findings_left_out,
        "prints": [_print_statistics(one) for one in run.prints],
    }


def _print_statistics(one: Print) -> dict[str, Any]:
    return {
        "prefix": one.prefix,
        "shape": list(one.shape),
        "dtype": one.dtype,
        "program": list(one.program),
        "loops": dict(one.loops),
        "rank": one.rank,
        "file": one.file,
        "line": one.line,
        "place": one.place(),
        **_statistics(one),
    }


def _statistics(one: Print) -> dict[str, Any]:
    """Return minimum, maximum and mean of the finite elements, and the numbers of NaN and infinities, without masked
    ones.

    They are null without finite elements, and for packed types, whose elements are several numbers.
    """
    if one.value.dtype.names:
        return {"min": None, "max": None, "mean": None, "nan": 0, "inf": 0}
    return {"min": one.min, "max": one.max, "mean": one.mean, "nan": one.nan_count, "inf": one.inf_count}
