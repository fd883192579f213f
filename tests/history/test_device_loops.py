"""Loops on the device that turn unequally often (NK514), and lines that unroll into very many instructions (NK709)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.dialects import legacy
from nkitools.dialects.legacy import language as legacy_nl
from nkitools.history.device_loops import UNROLLED_FAR

X = np.ones((4, 2), np.float32)


def turning(*loops: tuple[Any, Any]) -> Any:
    """Return a kernel with loops on the device: of each the turns of core 0 and of core 1."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        for counts in loops:
            count = counts[nl.program_id(0)]
            if count is not None:
                nl.fori_loop(0, count, lambda i: nisa.memset(tile, 1.0))
        return x

    return kernel


def found(rule: str, run: Any) -> list[Any]:
    """Return the findings of one rule."""
    return [each for each in run.findings if each.rule == rule]


def test_unequal_turns_are_a_warning_at_the_loop() -> None:
    """With both counts, and once for a line, though its loop runs in several places."""
    run = nkitools.simulate(turning((2, 2), (1, 3), (0, 4)), X, grid=2)
    (finding,) = found("NK514", run)
    assert (finding.severity, "fori_loop" in _line(finding)) == ("warning", True)
    assert "turns once in program 0 and 3 times in program 1" in finding.message


def _line(finding: Any) -> str:
    with open(finding.file, encoding="utf-8") as file:
        return file.read().splitlines()[finding.line - 1]


@pytest.mark.parametrize(
    ("loops", "cores"),
    [
        ([(3, 3), (0, 0)], 2),
        ([(3, None)], 2),  # a branch on the core's number: one of them has no such loop
        ([(3, 3)], None),
    ],
)
def test_equal_turns_are_right(loops: list[Any], cores: int | None) -> None:
    """Nor is a loop unequal that one core alone has, or a kernel on one core."""
    assert found("NK514", nkitools.simulate(turning(*loops), X, grid=cores)) == []


def test_of_nested_loops_the_outer_one_is_unequal() -> None:
    """The inner loop has run in more turns of the outer one: one cause, one finding."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        core = nl.program_id(0)

        def outer(i: Any) -> None:
            nl.fori_loop(0, 2 + core, lambda j: nisa.memset(tile, 1.0))

        nl.fori_loop(0, 1 + core, outer)
        return x

    (finding,) = found("NK514", nkitools.simulate(kernel, X, grid=2))
    assert "outer" in _line(finding)


def test_a_while_loop_and_a_dynamic_range_count() -> None:
    """Each kind of loop on the device is compared."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        core = nl.program_id(0)
        one, count = nl.full((1, 1), 1, nl.int32), nl.full((1, 1), 1 + core, nl.int32)
        for _ in nl.dynamic_range(0, 2 + core):
            nisa.memset(tile, 1.0)
        condition = nisa.register_alloc()
        nisa.register_load(condition, count)

        def turn(_: Any) -> Any:
            nisa.tensor_tensor(count, count, one, nl.subtract)
            following = nisa.register_alloc()
            nisa.register_load(following, count)
            return following

        nl.while_loop(condition, turn)
        return x

    run = nkitools.simulate(kernel, X, grid=2, nki_version="0.6")
    assert [each.message.partition(" turns ")[2] for each in found("NK514", run)] == [
        "2 times in program 0 and 3 times in program 1",
        "once in program 0 and 2 times in program 1",
    ]


@pytest.mark.parametrize(
    ("unrolled", "on_device", "cores", "hints"),
    [
        (UNROLLED_FAR + 1, 1, None, 1),
        (UNROLLED_FAR, 1, None, 0),
        (UNROLLED_FAR // 2 + 1, 2, None, 0),  # two turns on the device are one copy of the body
        (UNROLLED_FAR // 2 + 1, 1, 2, 0),  # each core has its own instructions
    ],
)
def test_a_line_that_is_unrolled_far(unrolled: int, on_device: int, cores: int | None, hints: int) -> None:
    """NK709 at the line, from 20,001 instructions of one program on."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)

        def turn(i: Any) -> None:
            for _ in range(unrolled):
                nisa.memset(tile, 1.0)

        nl.fori_loop(0, on_device, turn)
        return x

    hinted = found("NK709", nkitools.simulate(kernel, X, grid=cores))
    assert [(each.severity, "nisa.memset" in _line(each)) for each in hinted] == [("hint", True)] * hints
    assert all(f"{unrolled:,} instructions" in each.message for each in hinted)


def test_loops_of_the_legacy_dialect_are_kept() -> None:
    """Its compiler unrolls nl.static_range alone."""

    @legacy.jit
    def kernel(x: Any) -> Any:
        out = legacy_nl.ndarray(x.shape, x.dtype, buffer=legacy_nl.shared_hbm)
        for _ in legacy_nl.sequential_range(UNROLLED_FAR + 1):
            legacy_nl.store(out, 1.0)
        return out

    assert found("NK709", nkitools.simulate(kernel, X)) == []
