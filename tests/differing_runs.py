"""Which part of two runs of one kernel is not the same: results, findings, instructions, dependences."""

from __future__ import annotations

from typing import Any


def differs(run: Any, whole: Any) -> str:
    """Return which part of two runs is not the same; '' where all of it is."""
    if bits(run.outputs) != bits(whole.outputs):
        return "results"
    if run.findings != whole.findings:
        return f"findings: {run.findings} and {whole.findings}"
    if run.instructions[:] != whole.instructions[:]:
        return "instructions"
    for kind in ("flow", "output", "anti"):
        rows, others = (getattr(each.dependences, kind) for each in (run, whole))
        if rows.starts.tobytes() != others.starts.tobytes() or rows.sources.tobytes() != others.sources.tobytes():
            return f"dependences: {kind}"
    return ""


def bits(outputs: Any) -> Any:
    """Return the dtypes, shapes and bytes of results."""
    if isinstance(outputs, (tuple, list)):
        return [bits(each) for each in outputs]
    return outputs.dtype, outputs.shape, outputs.tobytes()
