"""Kernels that cheat are caught, each by the row that is there for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from nkitools.verdict.rows import Verdict
from nkitools.verdict.subject import OfProcess
from nkitools.verdict.verify import Options, verdict_of
from tests.sweeps.scaled_kernel import arguments, reference, scaled
from tests.verdict import cheats


class Cheat(NamedTuple):
    """A kernel that cheats, and the rows that catch it."""

    kernel: Any
    rows: set[str]
    inputs: Callable[..., Any] = cheats.inputs
    reference: Callable[..., Any] = cheats.softmax
    needs_process: bool = False


KNOWN = [
    Cheat(cheats.does_nothing, {"written"}),
    Cheat(cheats.half_of_the_rows, {"written"}),
    Cheat(cheats.constant, {"given"}),
    Cheat(cheats.not_a_number, {"given"}),
    Cheat(cheats.input_tampered, {"arguments"}),
    Cheat(cheats.into_the_input, {"arguments"}),
    Cheat(cheats.off_by_a_thousandth, {"given"}),
    Cheat(cheats.off_by_a_hundred_thousandth, {"given"}),
    Cheat(cheats.one_element_doubled, {"given"}),
    Cheat(cheats.shape_hard_coded, {"shapes"}),
    Cheat(cheats.edge_skipped, {"shapes"}),
    Cheat(cheats.edge_zero, {"shapes"}),
    Cheat(cheats.shapes_memorised, {"shapes"}),
    Cheat(cheats.columns_by_eight, {"shapes"}),
    Cheat(cheats.strides_swapped, {"shapes"}, cheats.blocks, cheats.turned),
    Cheat(cheats.arrays_of_frames, {"frames", "depends"}, cheats.small),
]
OTHERS = [
    Cheat(cheats.right_the_first_time, {"repeat"}),
    Cheat(cheats.kept_by_shape, {"values", "depends"}, cheats.small),
    Cheat(cheats.calls_the_reference, {"reference", "depends"}, cheats.small),
    Cheat(cheats.noisy, {"rules"}),
    Cheat(cheats.computed_on_the_host, {"depends"}, cheats.small, cheats.own_softmax),
    Cheat(cheats.indices_baked, {"depends"}, cheats.table, cheats.rows_of),
    Cheat(cheats.bias_ignored, {"depends"}, cheats.with_zero_bias, cheats.biased),
    Cheat(cheats.half_of_k, {"depends"}, cheats.with_empty_half, cheats.product),
    Cheat(cheats.second_program_idle[2], {"written"}),
    Cheat(cheats.narrow_inside, {"given"}, cheats.inputs, cheats.doubled),
    Cheat(cheats.plain_numpy, {"written"}, cheats.small),
    Cheat(cheats.ends_the_process, {"given"}, needs_process=True),
    Cheat(cheats.endless_in_other_shapes, {"shapes"}, needs_process=True),
    Cheat(cheats.right_before_a_judge, {"given"}, needs_process=True),
    Cheat(cheats.patches_the_comparison, {"given"}, needs_process=True),
]


def _verdict(cheat: Cheat, **options: Any) -> Verdict:
    cheats.CALLS.clear()
    cheats.CACHE.clear()
    given = cheat.inputs(np.random.default_rng(0))
    subject = OfProcess(cheat.kernel, (given, {}), cheat.reference)
    return verdict_of(subject, Options(**options), {}, is_here=not cheat.needs_process)


@pytest.mark.process
@pytest.mark.parametrize("cheat", [*KNOWN, *OTHERS], ids=lambda each: str(each.kernel.__name__))
def test_a_cheat_is_caught_by_the_row_that_is_there_for_it(cheat: Cheat) -> None:
    """On the author's arguments alone, without a space and without a function that draws others."""
    found = _verdict(cheat)
    assert cheat.rows <= set(found.failed), str(found)
    assert found.status == 1


def test_a_right_kernel_passes() -> None:
    """All rows of the kernel that the cheats imitate."""
    found = _verdict(Cheat(cheats.right, set()))
    assert [each for each in found.rows if each.outcome != "pass"] == []
    assert found.status == 0


@pytest.mark.process
@pytest.mark.parametrize("needs_process", [False, True])
def test_a_reference_that_runs_the_kernel_judges_nothing(needs_process: bool) -> None:
    """It agrees with the kernel and with each of its mistakes: nothing could be tried."""
    found = _verdict(Cheat(cheats.constant, set(), reference=cheats.by_itself, needs_process=needs_process))
    assert (found.status, found.outcome) == (2, "unknown")
    assert "the reference runs the kernel constant itself on the same arguments: nothing is compared" in found.stopped


@pytest.mark.parametrize("kernel", [cheats.cut_at_six, cheats.cut_at_six_legacy], ids=["modern", "legacy"])
def test_a_limit_that_no_value_reaches_was_never_met(kernel: Any) -> None:
    """The given values are below 1: the verdict says what it has not seen. Values up to 9 show the mistake."""
    found = _verdict(Cheat(kernel, set(), cheats.small_numbers, cheats.relu))
    assert found.outcome == "pass"
    assert any(each.startswith("no value beyond the limit of line ") for each in found.how_sure["never_met"])
    assert "given" in _verdict(Cheat(kernel, set(), cheats.large_numbers, cheats.relu)).failed
    right = _verdict(Cheat(cheats.not_negative, set(), cheats.large_numbers, cheats.relu))
    assert not any("limit" in each for each in right.how_sure["never_met"])


def test_a_tolerance_that_zeros_would_pass_is_unknown() -> None:
    """No value of softmax is larger than 1."""
    rows = {atol: _verdict(Cheat(cheats.right, set()), atol=atol)["tolerance"] for atol in (1.0, 1e-3)}
    assert {atol: row.outcome for atol, row in rows.items()} == {1.0: "unknown", 1e-3: "pass"}
    assert "zeros would pass, too" in rows[1.0].why


def test_other_shapes_are_those_of_a_space() -> None:
    """A name of the space is one of `inputs`, or a keyword of the kernel and of the reference, or a constant."""
    space = {"rows": [4, 128], "factor": [2.0, 3.0], "BLOCK": [64, 128]}
    subject = OfProcess(scaled, ((arguments(4)[0],), {}), reference, arguments, space)
    found = verdict_of(subject, Options(), {}, is_here=True)
    assert found["shapes"].outcome == "pass", str(found)
    assert set(found["shapes"].data["right"]) > {"rows=4, factor=3.0, BLOCK=64"}
    spoilt = OfProcess(scaled, ((arguments(4)[0],), {}), reference, arguments, {"rows": [4], "spoil": [0, 1]})
    assert verdict_of(spoilt, Options(), {}, is_here=True).failed == ("shapes",)


@pytest.mark.process
def test_a_kernel_that_never_ends_could_not_be_tried() -> None:
    """Its process is ended, and nothing is said to pass."""
    found = _verdict(Cheat(cheats.never_ends, set(), needs_process=True), seconds=3.0)
    assert (found.status, found.outcome) == (2, "unknown")
    assert "did not end" in found.stopped
