"""Device prints as a sequence: filters, comparison of whole structures, and the limit up to which values are kept."""

from __future__ import annotations

import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints

X = np.arange(24, dtype=np.float32).reshape(4, 6)


@nki.jit
def rows(x: Any) -> Any:
    for m in range(2):
        for n in nl.affine_range(3):
            nl.device_print("preds", x[m : m + 1, n : n + 1])
        nl.device_print("row", x[m : m + 1, :])
    return x


@pytest.fixture(scope="module")
def prints() -> Prints:
    return nkitools.simulate(rows[2], X).prints


class TestFilters:
    """What fits, in the order of the run, in a sequence of the same kind."""

    def test_by_prefix(self, prints: Prints) -> None:
        """`prints["row"]` are those printed under it; what nobody printed is empty and says what there is."""
        assert [one.prefix for one in prints["row"]] == ["row"] * 4
        assert [one.order for one in prints["row"]] == [3, 7, 11, 15]
        assert prints["pred"] == []
        assert repr(prints["pred"]) == "<Prints: none with prefix 'pred'; there are 'preds' (12), 'row' (4)>"
        with pytest.raises(IndexError, match=r"^print 0 of 0 prints with prefix 'pred'; there are 'preds' \(12\)"):
            prints["pred"][0]
        with pytest.raises(IndexError, match=r"^print 0 of 0 prints \(there are no prints\)$"):
            Prints()["row"][0]

    def test_by_counters_program_and_line(self, prints: Prints) -> None:
        """They chain, and counters take one value or several."""
        assert [one.loops for one in prints["preds"].where(m=1).program(0)] == [
            {"m": 1, "n": 0},
            {"m": 1, "n": 1},
            {"m": 1, "n": 2},
        ]
        assert len(prints.where(n=range(2))) == 8
        assert len(prints.where(lambda one: one.max == 6.0, m=1)) == 2
        assert {one.program for one in prints.program(1)} == {(1,)}
        first = prints["preds"][0].line
        assert prints.at(first) == prints.at(f"test_print_sequence.py:{first}") == prints["preds"]
        assert prints.at(f"other.py:{first}") == []
        assert prints.where(nobody=3) == []

    def test_by_rank(self) -> None:
        """Of communicating ranks."""
        found = nkitools.simulate(lambda x: nl.device_print("x", x), (X,), (2 * X,), ranks=2).prints
        np.testing.assert_array_equal(found.rank(1).values, [2 * X])

    def test_one_dimension_of_no_grid_is_program_0(self) -> None:
        """As the place of a print says it."""
        assert len(nkitools.simulate(rows, X).prints.program(0)) == 8

    def test_like_a_list(self, prints: Prints) -> None:
        """Index, slice, length; slices and sums have the filters, too."""
        assert isinstance(prints, list)
        assert prints[-1] is list(prints)[-1]
        assert len(prints[2:5]["row"]) == 1
        assert len((prints + prints)["row"]) == 8
        assert prints.prefixes == ["preds", "row"]
        twice = Prints(prints[:2])
        twice.extend(twice)
        assert twice == [*prints[:2], *prints[:2]]
        np.testing.assert_array_equal(np.concatenate(prints["row"].program(0).values), X[:2])

    def test_the_repr_lists_them(self, prints: Prints) -> None:
        """Header and numbers of the first ones, and how many more."""
        lines = repr(prints).splitlines()
        assert lines[0] == "<Prints: 16"
        assert lines[1].startswith("  0: <Print preds [program 0, m=0, n=0, test_print_sequence.py:")
        assert lines[1].endswith("HBM float32 [1, 1] min 0 max 0 mean 0>")
        assert lines[-1] == "  ... and 4 more>"


class TestEquality:
    """Whole structures can be asserted."""

    def test_what_a_kernel_printed_is_said_in_one_assertion(self) -> None:
        """Prefix, values, counters and program, without the line."""
        expected = [Print("row", X[m : m + 1], loops={"m": m}) for m in range(2)]
        assert nkitools.simulate(rows, X).prints["row"] == expected

    @pytest.mark.parametrize(
        "other",
        [
            Print("y", X),
            Print("x", X + 1),
            Print("x", X[:1]),
            Print("x", X.astype(np.float64)),
            Print("x", X, loops={"m": 1}),
            Print("x", X, program=(1,)),
            Print("x", X, rank=0),
            Print("x", X, mask=X > 3),
            Print("x", X, X.shape, "bfloat16"),
        ],
    )
    def test_what_differs_is_not_equal(self, other: Print) -> None:
        """In prefix, value, shape, dtype, counters, program, rank, mask."""
        assert Print("x", X) != other
        assert [Print("x", X)] != [other]

    def test_place_memory_and_order_play_no_part(self) -> None:
        """So that prints of different kernels can be compared."""
        one = Print("x", X, memory="SBUF", file="giou.py", line=3, order=5)
        assert one == Print("x", X.copy(), program=(0,))
        assert hash(one) == hash(Print("x", X.copy(), program=(0,)))
        assert one != "x"

    @pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
    def test_nan_is_equal_to_nan(self, dtype: Any) -> None:
        """As an expected value, too."""
        value = np.array([1, np.nan]).astype(dtype)
        assert Print("x", value) == Print("x", value.copy())
        assert Print("x", value) != Print("x", np.array([np.nan, 1]).astype(dtype))

    def test_masked_values_play_no_part(self) -> None:
        """What a mask left out means nothing."""
        mask = X > 3
        assert Print("x", X, mask=mask) == Print("x", np.where(mask, -1, X).astype(np.float32), mask=mask)

    def test_packed_values_are_compared_by_their_bits(self) -> None:
        """Elements of several numbers."""
        packed = np.zeros((2, 2), [("float8_e4m3fn_x4", "<u4")])
        other = packed.copy()
        other["float8_e4m3fn_x4"] = 7
        assert Print("x", packed) == Print("x", packed.copy())
        assert Print("x", packed) != Print("x", other)

    def test_text_alone(self) -> None:
        """A print without a tensor has an empty value and no numbers."""
        one = Print("here", (), program=(3,))
        assert one.text() == "here [program 3]"
        assert (one.min, one.mean, one.nan_count, one.numbers()) == (None, None, 0, "")
        assert one == Print("here", (), program=(3,))
        assert repr(one) == "<Print here [program 3]>"


class TestNumbers:
    """Computed when asked for, of what was there."""

    def test_of_finite_elements(self) -> None:
        """Minimum, maximum and mean; NaN and infinities are counted."""
        value = np.array([[1, np.nan, 3], [np.inf, -np.inf, np.nan]], np.float32)
        one = Print("x", value)
        assert (one.min, one.max, one.mean, one.nan_count, one.inf_count) == (1, 3, 2, 2, 2)
        assert repr(one) == "<Print x [program 0] float32 [2, 3] min 1 max 3 mean 2 2 NaN 2 Inf>"
        assert Print("x", np.full(3, np.nan)).min is None

    def test_masked_and_unwritten_elements_are_not_counted(self) -> None:
        """They hold no value of the kernel's."""
        value = np.array([1, 2, np.nan, 9], np.float32)
        one = Print("x", value, mask=np.array([0, 0, 0, 1], bool), unwritten=np.array([0, 0, 1, 0], bool))
        assert (one.min, one.max, one.nan_count) == (1, 2, 0)
        assert one.text().splitlines()[1:3] == ["(1 of 4 elements masked)", "(1 of 4 elements never written)"]

    def test_what_was_never_written_is_reported(self) -> None:
        """By a kernel that prints a tile too early."""

        def kernel(x: Any) -> Any:
            tile = nl.ndarray((4, 6), dtype=nl.float32, buffer=nl.sbuf)
            nki.isa.dma_copy(dst=tile[0:1], src=x[0:1])
            nl.device_print("tile", tile)

        (one,) = nkitools.simulate(kernel, X).prints
        assert one.unwritten is not None
        np.testing.assert_array_equal(one.unwritten, np.arange(24).reshape(4, 6) >= 6)
        assert (one.max, one.nan_count, one.issued) == (5, 0, 1)


class TestLimit:
    """A value beyond it is a summary and its corners, and says so; nothing is dropped."""

    def test_a_large_value_keeps_its_corners(self) -> None:
        """With the numbers of all elements, and the text that NumPy would have given."""
        x = np.random.default_rng(1).normal(size=(128, 40)).astype(np.float32)
        whole = nkitools.simulate(lambda x: nl.device_print("x", x), x).prints[0]
        with options.override(print_limit="0.01"):
            one = nkitools.simulate(lambda x: nl.device_print("x", x), x).prints[0]
        assert (whole.is_whole, one.is_whole) == (True, False)
        ends = [0, 1, 2, -3, -2, -1]
        np.testing.assert_array_equal(one.value, x[ends][:, ends])
        assert (one.shape, one.size, one.nbytes) == ((128, 40), 128 * 40, 4 * 128 * 40)
        assert (one.min, one.max) == (float(x.min()), float(x.max()))
        assert one.mean == pytest.approx(x.mean(dtype=np.float64), rel=1e-6)
        lines = one.text().splitlines()
        assert lines[1] == "(20,480 bytes, beyond the print limit: only the corners are kept)"
        assert lines[3:] == whole.text().splitlines()[1:]
        assert one != whole

    def test_of_a_run_sixteen_times_as_much_is_kept(self) -> None:
        """A print in a long loop does not fill the memory either."""

        def kernel(x: Any) -> Any:
            for _ in range(20):
                nl.device_print("x", x)

        with options.override(print_limit=str(X.nbytes / 2**20)):
            found = nkitools.simulate(kernel, X).prints
        assert [one.is_whole for one in found] == [True] * 16 + [False] * 4
        assert {one.max for one in found} == {23.0}

    def test_prints_of_other_kernels_keep_to_it(self) -> None:
        """Those that are handed over as records."""
        found = Prints()
        with options.override(print_limit="0"):
            found.extend([Print("x", X), Print("text", ())])
        assert [(one.order, one.is_whole) for one in found] == [(0, False), (1, True)]

    def test_four_gib_do_not_end_the_run(self) -> None:
        """One element seen 2**30 times, and 64 MiB of their own, cost next to nothing."""

        def kernel(x: Any) -> Any:
            nl.device_print("huge", x[0:1, 0:1].broadcast(1, 2**30))
            nl.device_print("large", x)

        x = np.ones((4096, 4096), np.float32)
        x[7, 9], x[8, 9] = np.nan, 5
        tracemalloc.start()
        try:
            with options.override(print_limit="1"):
                huge, large = nkitools.simulate(kernel, x).prints
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert (huge.nbytes, huge.mean, huge.is_whole) == (2**32, 1.0, False)
        assert (large.nan_count, large.max) == (1, 5)
        assert peak < x.nbytes / 4
        assert "4,294,967,296 bytes" in huge.text()

    @pytest.mark.parametrize("shape", [(5,), (7, 1), (3, 200), (4, 8, 9), (2, 3, 4, 5)])
    @pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8, np.bool_])
    def test_the_numbers_are_numpys(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Of every shape and dtype, read in blocks."""
        value = (np.random.default_rng(2).normal(size=shape) * 9).astype(dtype)
        one, exact = Print("x", value), value.astype(np.float64)
        assert (one.min, one.max) == (exact.min(), exact.max())
        assert one.mean == pytest.approx(exact.mean(), rel=1e-6, abs=1e-6)

    def test_integers_are_exact(self) -> None:
        """Those of 32 bits, too."""
        one = Print("x", np.array([2**31 - 1, -(2**31) + 1, 7], np.int32))
        assert (one.min, one.max, one.mean) == (-(2**31) + 1, 2**31 - 1, 7 / 3)

    @pytest.mark.parametrize("said", ["much", "-1", "nan", "inf"])
    def test_a_limit_that_is_none_is_reported(self, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
        """By its variable."""
        monkeypatch.setenv("NKITOOLS_PRINT_LIMIT", said)
        with pytest.raises(ValueError, match=f"NKITOOLS_PRINT_LIMIT is '{said}'; it must be a number"):
            nkitools.simulate(rows, X)
