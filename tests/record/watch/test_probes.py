"""Probes: every write to a named tensor, or by a line, as if it had been printed there."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.legacy import language as legacy_nl
from nkitools.dialects.legacy.kernels.kernel import jit as legacy_jit
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def doubled(tile: Any) -> Any:
    result = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=result, data=tile, op0=nl.multiply, operand0=2.0)
    return result


@nki.jit
def kernel(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(3):
        tile = nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
        scores = doubled(tile)  # the call
        nisa.tensor_scalar(dst=scores[0:2], data=scores[0:2], op0=nl.add, operand0=float(m))
        nl.device_print("scores by hand", scores)
        nisa.dma_copy(dst=out, src=scores)
    return out


def line_of(text: str, function: Any = kernel.function) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def watched(watch: Any, function: Any = kernel, **kwargs: Any) -> Prints:
    with warnings.catch_warnings():
        warnings.simplefilter("error", nkitools.WatchWarning)
        return nkitools.simulate(function, X, watch=watch, **kwargs).prints


class TestTensors:
    """By the tensor's name."""

    def test_every_write_is_a_print_of_what_was_written(self) -> None:
        """The view that was written, with the values as they are then, its line and counters."""
        prints = watched("scores")
        found = prints["scores"]
        assert [(one.shape, one.loops) for one in found] == [
            (shape, {"m": m}) for m in range(3) for shape in ((4, 3), (2, 3))
        ]
        for m in range(3):
            whole, part = found.where(m=m)
            np.testing.assert_array_equal(whole.value, 2 * X)
            np.testing.assert_array_equal(part.value, 2 * X[:2] + m)
        assert {(one.memory, one.dtype, one.file) for one in found} == {("SBUF", "float32", __file__)}
        assert [one.line for one in found[:2]] == [line_of("op0=nl.multiply", doubled), line_of("op0=nl.add")]

    def test_they_stand_between_the_kernels_own_prints(self) -> None:
        """In the order in which things happened, with the number of instructions issued before."""
        prints = watched("scores")
        assert [one.prefix for one in prints] == ["scores", "scores", "scores by hand"] * 3
        assert [one.order for one in prints] == list(range(9))
        assert [one.issued for one in prints[:3]] == [2, 3, 3]

    def test_they_are_what_a_print_behind_the_write_would_be(self) -> None:
        """Of the view that was written."""

        @nki.jit
        def printing(x: Any) -> Any:
            for m in range(2):
                tile = nl.ndarray((4, 3), dtype=nl.bfloat16, buffer=nl.sbuf)
                nisa.dma_copy(dst=tile[m : m + 2], src=x[m : m + 2])
                nl.device_print("tile", tile[m : m + 2])
            return x

        assert watched("tile", printing) == [one for one in nkitools.simulate(printing, X).prints for _ in range(2)]

    def test_several_names_and_patterns(self) -> None:
        """A list, commas, or a pattern; the prefix is the name."""
        assert watched(["tile", "out"]).prefixes == watched("tile, out").prefixes == ["tile", "scores by hand", "out"]
        assert watched("t*").prefixes == ["tile", "scores by hand"]

    def test_conditions(self) -> None:
        """Counters, several values of one, or a function of the print."""
        assert [one.loops["m"] for one in watched({"tile": {"m": 1}})["tile"]] == [1]
        assert [one.loops["m"] for one in watched({"tile": {"m": (0, 2)}})["tile"]] == [0, 2]
        assert len(watched({"scores": lambda one: one.min == 2.0})["scores"]) == 1
        assert len(watched({"tile": ..., "out": "*"})) == 9

    def test_programs_and_ranks(self) -> None:
        """Each write has its own."""
        assert [one.program for one in watched({"tile": {"m": 0}}, kernel[2])["tile"]] == [(0,), (1,)]
        run = nkitools.simulate(kernel, (X,), (X + 1,), ranks=2, watch={"tile": {"m": 0}})
        assert [(one.rank, one.min) for one in run.prints["tile"]] == [(0, 0.0), (1, 1.0)]

    def test_legacy_kernels(self) -> None:
        """An assignment writes the tensor on its left, once."""

        @legacy_jit
        def legacy(x: Any) -> Any:
            out = legacy_nl.ndarray(x.shape, dtype=x.dtype, buffer=legacy_nl.shared_hbm)
            total = legacy_nl.zeros((4, 3), dtype=legacy_nl.float32, buffer=legacy_nl.sbuf)
            for m in legacy_nl.sequential_range(2):  # noqa: B007 - the name is looked at
                total[...] = legacy_nl.add(total, legacy_nl.load(x))  # sum
            legacy_nl.store(out, total)
            return out

        found = watched({"total": lambda one: one.loops}, legacy)
        assert [one.loops for one in found] == [{"m": 0}, {"m": 1}]
        np.testing.assert_array_equal(found[1].value, 2 * X)
        by_line = watched(f"test_probes.py:{line_of('# sum', legacy.function)}", legacy)
        assert [one.tensor for one in by_line].count("total") == 2

    def test_what_was_not_written_is_reported(self) -> None:
        """A whole view is shown where a mask or an index chose its elements."""

        def partly(x: Any) -> None:
            tile = nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile[0:1], src=x[0:1])
            nisa.tensor_copy(dst=tile[0:1], src=tile[0:1])

        assert [one.unwritten for one in watched("tile", partly)] == [None, None]


class TestLines:
    """By a line of the source."""

    def test_every_write_by_it(self) -> None:
        """The prefix is the line, the tensor is named beside it."""
        place = f"test_probes.py:{line_of('op0=nl.add')}"
        found = watched(place)[place]
        assert [(one.tensor, one.loops["m"]) for one in found] == [("scores", m) for m in range(3)]
        assert found[0].text().startswith(f"{place} [program 0, m=0, {place}] `scores` SBUF float32 [2, 3]\n")

    def test_a_line_that_calls_a_function_has_its_writes(self) -> None:
        """Of the lines of the callee."""
        found = watched(f"test_probes.py:{line_of('# the call')}")
        assert [one.tensor for one in found if one.tensor] == ["result"] * 3


class TestComplaints:
    """A watch that records nothing says so, with the names that are near."""

    @pytest.mark.parametrize(
        ("watch", "said"),
        [
            ("score", "no tensor of that name was written; did you mean 'scores'"),
            ("TILE", "did you mean 'tile'"),
            ("nobody", "no tensor of that name was written; written were out, result, scores, tile"),
            ("test_probes.py:1", "no instruction at that line wrote a tensor; "),
            ({"tile": {"m": 7}}, "it was written, but never where its condition holds"),
        ],
    )
    def test_it_is_a_warning(self, watch: Any, said: str) -> None:
        """At the line that calls simulate; the run is what it is."""
        with pytest.warns(nkitools.WatchWarning, match=re.escape(said)) as caught:
            run = nkitools.simulate(kernel, X, watch=watch)
        assert [each.filename for each in caught] == [__file__]
        np.testing.assert_array_equal(run.outputs[2:], 2 * X[2:])

    @pytest.mark.parametrize("watch", [7, [7], [""], {"tile": 3}, {"tile": "sometimes"}])
    def test_what_is_no_watch_is_reported(self, watch: Any) -> None:
        """Before anything runs."""
        with pytest.raises((TypeError, ValueError), match=r"^watch.*Say watch="):
            nkitools.simulate(kernel, X, watch=watch)

    def test_a_kernel_that_fails_has_its_prints(self) -> None:
        """Up to where it failed, and no warning on top of its error."""

        def failing(x: Any) -> None:
            tile = nl.ndarray((4, 3), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x)
            raise RuntimeError("the kernel's own")

        with nkitools.capture_prints() as prints, pytest.raises(RuntimeError, match="the kernel's own"):
            nkitools.simulate(failing, X, watch=["tile", "nobody"])
        assert prints == [Print("tile", X)]


class TestOption:
    """The option watches in every run, by whatever way in."""

    def test_all_ways_in(self, capsys: pytest.CaptureFixture[str]) -> None:
        """And they show as they come, where the way in shows prints; the option warns of nothing in a single run."""
        with options.override(watch="tile,nobody"), nkitools.capture_prints() as prints:
            nkitools.simulate(kernel, X)
            nki.simulate(kernel)(X)
        assert len(prints["tile"]) == 6
        assert capsys.readouterr().out.count("tile [program 0, m=") == 3

    def test_nothing_is_kept_without_it(self) -> None:
        """The record is the plain one."""
        run = nkitools.simulate(kernel, X)
        assert run.record is not None
        assert type(run.record).__name__ == "Record"
        assert run.probes == []

    def test_values_beyond_the_limit_are_reduced(self) -> None:
        """As those of any print."""
        with options.override(print_limit="0"):
            found = watched("tile")["tile"]
        assert [(one.is_whole, one.max) for one in found] == [(False, 11.0)] * 3
