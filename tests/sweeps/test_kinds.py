"""Every kind of kernel is swept alike: the legacy dialect, ranks, two cores, Pallas, custom operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from kernels import references
from kernels.nki.legacy.relu import relu
from kernels.nki.ring_all_gather import ring_all_gather
from kernels.nki.rotary import rotary
from nkitools.sweeps.checked_call import Case, CheckedCall, kind_of
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.sweep import check_names, chips_of, run_cases
from tests import cases


def swept(kernel: Any, arguments: Any, reference: Any, chip: str, **values: Any) -> dict[str, Any]:
    """Return the row of one case."""
    call = CheckedCall(kernel, kind_of(kernel), arguments, reference)
    check_names(call, values)
    (row,) = run_cases(call, [Case(values, chip)], InProcess()).rows
    return row


def matrix(rows: int, columns: int) -> tuple[Any, ...]:
    """Numbers of both signs."""
    return (np.random.default_rng(0).standard_normal((rows, columns), np.float32),)


def test_a_legacy_kernel() -> None:
    """With its estimate and a reference that a wrong result differs from."""
    row = swept(relu, matrix, references.relu, "trn1", rows=128, columns=512)
    assert (row["outcome"], row["max_error"]) == ("pass", 0.0)
    assert row["estimate_us"] == nkitools.simulate(relu, *matrix(128, 512), chip="trn1").estimate().latency_us
    wrong = swept(relu, matrix, lambda x: np.maximum(x, 0) + 1, "trn1", rows=128, columns=512)
    assert (wrong["outcome"], wrong["max_error"]) == ("wrong", 1.0)


def test_cores_and_ranks_are_names_of_a_space() -> None:
    """``grid`` is that of the launch; the arguments of ranks are one tuple each, and the reference takes them all."""

    def heads(size: int) -> tuple[Any, ...]:
        angles = np.arange(256)[:, None] / 10_000 ** (np.arange(size // 2)[None] / (size // 2))
        x = np.random.default_rng(0).standard_normal((256, 2, size), np.float32)
        return x, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    row = swept(rotary, heads, references.rotary, "trn2", size=32, grid=2)
    assert row["outcome"] == "pass", row
    parts = [np.full((4, 5), rank, np.float32) for rank in range(3)]
    given = [(part, 3) for part in parts]
    found = swept(ring_all_gather, lambda ranks: given, references.gathered, "trn2", ranks=3)
    assert (found["outcome"], found["max_error"]) == ("pass", 0.0), found


@pytest.mark.soak
@pytest.mark.frameworks
@pytest.mark.process
@pytest.mark.skipif(not cases.FULL, reason="some seconds of JAX: make soak")
def test_a_pallas_function() -> None:
    """In a worker of its own, which finds it by its name; its chips are TPUs."""
    pytest.importorskip("jax")
    from kernels.pallas.running_sum import running_sum

    assert chips_of("pallas", None) == ("v5e",)
    found = nkitools.sweep(
        running_sum,
        {"rows": [16], "columns": [128]},
        arguments=matrix,
        reference=references.running_sum,
        atol=1e-4,
        workers=1,
    )
    (row,) = found.rows
    assert row["error"] == ""
    assert (row["outcome"], row["findings"], row["chip"]) == ("pass", [], "v5e")
    assert 0 < row["max_error"] < 1e-4


@pytest.mark.process
def test_a_custom_operator() -> None:
    """Without an estimate."""
    from cpp_ops.relu.build import library

    operator = library("element").relu_forward
    row = swept(operator, matrix, references.relu, "trn1", rows=3, columns=40)
    assert (row["outcome"], row["max_error"], row["estimate_us"]) == ("pass", 0.0, None)
