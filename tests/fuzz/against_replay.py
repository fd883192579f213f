"""A replayed run against a run in full: results, findings, instructions and dependences."""

from __future__ import annotations

from typing import Any

from tests.fuzz.against_oracle import names_of as names_of
from tests.fuzz.against_oracle import smaller as smaller
from tests.fuzz.kernel import simulated_with
from tests.oracle.programs import Program
from tests.oracle.programs import program_of as program_of

_RUNS = 3  # the first one is recorded, the others are replayed where the kernel allows it


def disagreement(program: Program) -> str:
    """Return what differs, in the first run that differs."""
    whole = simulated_with(program, ["off"])[0]
    for number, run in enumerate(simulated_with(program, ["auto"] * _RUNS)):
        said = differs(run, whole)
        if said:
            return f"run {number + 1}{' (replayed)' if run.replayed.done else ''}: {said}"
    return ""


def differs(run: Any, whole: Any) -> str:
    """Return which part of two runs is not the same."""
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
