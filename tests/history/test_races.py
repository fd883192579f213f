"""NK502: programs that touch the same elements in no order, found exactly and in every order of execution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.history.racing import X, found, line_of

# --- what is said ----------------------------------------------------------------------------------------------------


class TestPlanted:
    """Races planted by hand: both lines, both programs, the tensor, the elements."""

    def test_two_writes(self) -> None:
        """Found in programs that never talk, at the later program's line."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            if nl.program_id(0) == 0:
                nisa.dma_copy(dst=out[0:5, :], src=nl.load(x[0:5, :]))
            else:
                nisa.dma_copy(dst=out[4:8, :], src=nl.load(x[4:8, :]))
            return out

        (race,) = found(kernel, X)
        assert (race.rule, race.line, race.program) == ("NK502", line_of(kernel, "out[4:8, :]"), (1,))
        assert race.message == (
            "program 1 writes 8 elements of tensor `out` (shared HBM, float32 [8, 8]) that program 0 writes at "
            f"{__file__}:{line_of(kernel, 'out[0:5, :]')}, and nothing says which of them comes first: "
            "`out[4, 0:8]`"
        )

    def test_equal_values_are_a_hint(self) -> None:
        """Both programs write the same: the result is right in any order, and the work is done twice."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.load(x))
            nl.load(out[0:4, :])
            return out

        (hint,) = (each for each in found(kernel, X) if each.rule != "NK513")
        assert (hint.rule, hint.program, hint.line) == ("NK508", (1,), line_of(kernel, "dst=out"))
        assert hint.message == (
            "program 1 writes the same values to tensor `out` (shared HBM, float32 [8, 8]) as program 0"
        )
        np.testing.assert_array_equal(nkitools.simulate(kernel, X, grid=2).outputs, X)

    def test_equal_values_clash_with_what_one_program_writes_besides(self) -> None:
        """Both clear the whole output: the later one clears what the earlier one has written to its half."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.zeros((8, 8), nl.float32))
            half = nl.ds(4 * nl.program_id(0), 4)
            nisa.dma_copy(dst=out[half, :], src=nl.load(x[half, :]))
            return out

        rules = {each.rule for each in found(kernel, X)}
        assert rules == {"NK502", "NK508"}

    def test_equal_values_that_change_clash_with_reads(self) -> None:
        """Both clear it, read it and add to it: a core may read what the other one has added already.

        One after the other they write the same. In other orders they do not, and then the writes clash as well.
        """

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.zeros((8, 8), nl.float32))
            total = nl.add(nl.load(out), nl.load(x))
            nisa.dma_copy(dst=out, src=total)
            return out

        findings = nkitools.simulate(kernel, X, grid=2, rules="report").findings
        assert {each.rule for each in findings} == {"NK502", "NK508"}
        assert {each.line for each in findings if each.rule == "NK502"} == {line_of(kernel, "nl.load(out)")}

    def test_equal_values_over_parts_clash_with_reads(self) -> None:
        """The same, where the whole is cleared and a half of it set."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.zeros((8, 8), nl.float32))
            nisa.dma_copy(dst=out[0:4, :], src=nl.load(x[0:4, :]))
            nl.load(out[2:6, :])
            return out

        (race,) = [each for each in found(kernel, X) if each.rule == "NK502"]
        assert "16 elements" in race.message
        assert "comes first: `out[2:4, 0:8]`" in race.message

    def test_each_direction_is_counted_by_itself(self) -> None:
        """Each core writes two rows and reads the two of the other one: 16 elements, not 32."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
            core = nl.program_id(0)
            nisa.dma_copy(dst=out[nl.ds(2 * core, 2), :], src=nl.load(x[nl.ds(2 * core, 2), :]))
            nl.load(out[nl.ds(2 - 2 * core, 2), :])
            return out

        (race,) = found(kernel, X)
        assert "reads 16 elements" in race.message

    def test_the_same_view_with_other_values_is_a_race(self) -> None:
        """The same line of both programs, where each computes something else."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.add(nl.load(x), float(nl.program_id(0))))
            return out

        (race,) = found(kernel, X)
        assert "program 1 writes 64 elements of tensor `out`" in race.message
        assert "let one of them write" in race.remedy
        with pytest.raises(nkitools.KernelError, match="NK502"):
            nkitools.simulate(kernel, X, grid=2)
        assert nkitools.simulate(kernel, X).findings == []

    @pytest.mark.parametrize("writer", [0, 1])
    def test_a_missing_barrier(self, writer: int) -> None:
        """At the read, whoever writes and whoever runs first; it is a race and no uninitialised read."""

        def kernel(x: Any, writer: int) -> Any:
            between = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            if nl.program_id(0) == writer:
                nisa.dma_copy(dst=between, src=nl.load(x))
            else:
                nisa.dma_copy(dst=out, src=nl.load(between[0:8, 0:8]))
            return out

        (race,) = found(kernel, X, writer)
        assert (race.rule, race.program) == ("NK502", (1 - writer,))
        assert race.line == line_of(kernel, "nl.load(between")
        assert f"program {1 - writer} reads 64 elements of tensor `between`" in race.message
        assert f"that program {writer} writes at {__file__}:{line_of(kernel, 'dst=between')}" in race.message

    def test_an_input_written_in_place(self) -> None:
        """Inputs are shared."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nl.store(x[0:2, :], nl.load(x[2:4, :]))
            else:
                nl.store(x[3:5, :], nl.load(x[5:7, :]))
            return x

        (race,) = found(kernel, X.copy())
        assert "program 0 reads 8 elements of tensor `x`" in race.message
        assert "comes first: `x[3, 0:8]`" in race.message

    def test_a_barrier_orders_its_data_only(self) -> None:
        """The finding says so."""

        def kernel(x: Any) -> Any:
            core = nl.program_id(0)
            out, other = (nl.ndarray((2, 8), nl.float32, buffer=nl.shared_hbm) for _ in range(2))
            tile = nl.load(x[nl.ds(core, 1), :])
            nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=tile)
            nisa.core_barrier(x, (0, 1))
            nisa.dma_copy(dst=other[nl.ds(core, 1), :], src=out[nl.ds(1 - core, 1), :])
            return other

        races = found(kernel, X)
        assert {each.rule for each in races} == {"NK502"}
        assert all(
            each.message.endswith("The barrier between them is that of `x`, and orders nothing else") for each in races
        )

    def test_a_barrier_comes_too_late(self) -> None:
        """What is read before it is not ordered by it."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nl.store(x[0:1, :], nl.ones((1, 8), nl.float32))
            else:
                nl.load(x[0:1, :])
            nisa.core_barrier(x, (0, 1))
            return x

        assert [each.rule for each in found(kernel, X.copy())] == ["NK502"]

    def test_loops_of_the_finding(self) -> None:
        """Counters of nl ranges at the access that is reported; a line is reported once."""

        def kernel(x: Any) -> Any:
            for m in nl.affine_range(4):
                if nl.program_id(0) == 0:
                    nl.store(x[m : m + 1, :], nl.ones((1, 8), nl.float32))
                elif m > 1:
                    nl.load(x[m : m + 1, :])
            return x

        (race,) = found(kernel, X.copy(), nki_version="0.6")
        assert race.loops == {"m": 2}
        assert "reads 16 elements" in race.message

    def test_scatters(self) -> None:
        """By the rows that the indices name when it runs."""

        def kernel(x: Any, rows: Any, more: Any) -> Any:
            table = x.vector_select(0, nl.load(rows if nl.program_id(0) == 0 else more))
            nisa.dma_copy(dst=table, src=nl.ones(table.shape, nl.float32), oob_mode=nisa.oob_mode.skip)
            return x

        first = np.array([[0], [2], [4]], np.int32)
        assert found(kernel, X.copy(), first, first + 1) == []
        assert found(kernel, X.copy(), first, np.array([[1], [-1], [9]], np.int32)) == []
        (race,) = found(kernel, X.copy(), first, np.array([[1], [4], [7]], np.int32))
        assert "writes 8 elements" in race.message
        assert "comes first: `x[4, 0:8]`" in race.message

    def test_a_scatter_that_adds_is_no_exception(self) -> None:
        """dma_compute reads, adds and writes; the reference promises nothing between two cores."""

        def kernel(x: Any, rows: Any) -> Any:
            chosen = x.vector_select(0, nl.load(rows))
            nisa.dma_compute(dst=chosen, srcs=[chosen, nl.ones(chosen.shape, nl.float32)], reduce_op=nl.add)
            return x

        (race,) = found(kernel, X.copy(), np.array([[3], [5]], np.int32))
        assert "program 1 writes 16 elements of tensor `x`" in race.message


class TestNoRace:
    """What shares a tensor, and no element."""

    @pytest.mark.parametrize("columns", [1, 2, 3])
    def test_interleaved_columns(self, columns: int) -> None:
        """Their bounding boxes overlap, their elements do not."""

        def kernel() -> Any:
            out = nl.ndarray((8, 24), nl.float32, buffer=nl.shared_hbm)
            core = nl.program_id(0)
            view = out.reshape((8, 24 // (2 * columns), 2, columns))[:, :, core, :]
            tile = nl.ndarray(view.shape, nl.float32, buffer=nl.sbuf)
            nisa.memset(tile, float(core))
            nisa.dma_copy(dst=view, src=tile)
            return out

        assert found(kernel) == []
        expected = np.tile(np.repeat([0.0, 1.0], columns), 24 // (2 * columns))
        np.testing.assert_array_equal(nkitools.simulate(kernel, grid=2).outputs, np.tile(expected, (8, 1)))

    def test_patterns_and_reinterpreted_views(self) -> None:
        """Explicit strides, and bytes as another dtype."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nisa.dma_copy(dst=x.ap([[8, 8], [2, 4]]), src=nl.ones((8, 4), nl.float32))
            else:
                halves = x.view(nl.int16)
                nisa.dma_copy(dst=halves[:, 3::4], src=nl.zeros((8, 4), nl.int16))
            return x

        assert found(kernel, X.copy()) == []

        def one_more(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nisa.dma_copy(dst=x.ap([[8, 8], [2, 4]]), src=nl.ones((8, 4), nl.float32))
            else:
                nisa.dma_copy(dst=x.view(nl.int16)[:, 5:6], src=nl.zeros((8, 1), nl.int16))
            return x

        (race,) = found(one_more, X.copy())
        assert "comes first: `x[0:8, 2]`" in race.message

    def test_private_memory(self) -> None:
        """Each program has its own."""

        def kernel(x: Any) -> Any:
            own = nl.ndarray((8, 8), nl.float32, buffer=nl.private_hbm)
            nisa.dma_copy(dst=own, src=nl.load(x))
            nl.load(own)
            return x

        assert found(kernel, X) == []

    def test_reading_alone(self) -> None:
        """Both read all."""

        def kernel(x: Any) -> Any:
            nl.load(x)
            return x

        assert found(kernel, X) == []


class TestUninitialised:
    """NK401 stays what it is where no other program writes either."""

    def test_memory_without_a_writer_is_read(self) -> None:
        """In the reader's line, before anything else; also where the others stand at a barrier."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            if nl.program_id(0) == 0:
                nl.load(out)
            nisa.core_barrier(out, (0, 1))
            nl.store(out[nl.ds(4 * nl.program_id(0), 4), :], nl.load(x[0:4, :]))
            return out

        assert [each.rule for each in found(kernel, X)] == ["NK401"]

    def test_a_part_is_written(self) -> None:
        """Each cause has its finding."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
            if nl.program_id(0) == 0:
                nl.load(out)
            else:
                nl.store(out[0:6, :], nl.load(x[0:6, :]))
            return x

        first, second = found(kernel, X)
        assert (first.rule, second.rule) == ("NK401", "NK502")
        assert "16 of 64 elements" in first.message
        assert "48 elements" in second.message
