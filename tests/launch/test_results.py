"""What a kernel returns: containers, memories, and elements that nobody wrote."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.launch.kernels import doubled

X = np.arange(32, dtype=np.float32).reshape(8, 4)
Pair = namedtuple("Pair", ["left", "right"])


def simulate(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    return nkitools.simulate(kernel, *args, **kwargs).outputs


class TestContainers:
    """Results come in the containers that the kernel put them in."""

    def test_none_is_none(self) -> None:
        """A kernel may return nothing."""
        assert simulate(lambda x: None, X) is None

    def test_tuples_lists_and_dictionaries_are_kept(self) -> None:
        """With whatever else is in them."""
        first, (second, number), third = simulate(lambda x: (doubled(x), [doubled(x), 3], {"x": x, "s": "t"}), X)
        np.testing.assert_array_equal(first, 2 * X)
        np.testing.assert_array_equal(second, 2 * X)
        assert number == 3
        assert third == {"x": X, "s": "t"} or (third["x"] is X and third["s"] == "t")

    def test_named_tuples_and_dataclasses_are_kept(self) -> None:
        """Their fields become arrays."""

        @dataclass(frozen=True)
        class Result:
            y: Any
            n: int

        pair, result = simulate(lambda x: (Pair(doubled(x), 1), Result(doubled(x), 2)), X)
        assert type(pair) is Pair
        assert type(result) is Result
        np.testing.assert_array_equal(pair.left, 2 * X)
        np.testing.assert_array_equal(result.y, 2 * X)
        assert (pair.right, result.n) == (1, 2)

    def test_one_tensor_returned_twice_is_one_array(self) -> None:
        """No matter how often."""

        def kernel(x: Any) -> Any:
            y = doubled(x)
            return y, y

        first, second = simulate(kernel, X)
        assert np.shares_memory(first, second)

    def test_a_view_of_an_output_comes_back_as_what_it_shows(self) -> None:
        """Permuted and sliced."""

        def kernel(x: Any) -> Any:
            y = doubled(x)
            return y.permute((1, 0)), y[2:4, :]

        turned, rows = simulate(kernel, X)
        np.testing.assert_array_equal(turned, 2 * X.T)
        np.testing.assert_array_equal(rows, 2 * X[2:4])
        assert turned.flags.c_contiguous


@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum])
def test_a_result_on_chip_is_refused(buffer: Any) -> None:
    """NK201 names the tensor by the variable that the kernel had for it."""

    def kernel(x: Any) -> Any:
        tile = nl.ndarray((8, 4), dtype=nl.float32, buffer=buffer)
        nisa.memset(tile, 0)
        return [tile]

    with pytest.raises(nkitools.KernelError) as raised:
        simulate(kernel, X)
    finding = raised.value.finding
    assert finding.rule == "NK201"
    memory = buffer.name.upper()
    assert finding.message == f"the kernel returns tensor `tile` ({memory}, float32 [8, 4]); results must be in HBM"


def test_a_generator_is_no_kernel() -> None:
    """NK601: nothing of it would have run, and nobody would have noticed."""

    def kernel(x: Any) -> Any:
        yield doubled(x)

    async def coroutine(x: Any) -> Any:
        return doubled(x)

    for wrong, name in ((kernel, "generator"), (coroutine, "coroutine")):
        with pytest.raises(nkitools.KernelError, match=f"the kernel returns a {name}") as raised:
            simulate(wrong, X)
        assert (raised.value.finding.rule, raised.value.finding.file) == ("NK601", __file__)


class TestUnwritten:
    """NK403, at the line where the output was made."""

    @staticmethod
    def filled(shape: tuple[int, ...], *written: Any) -> Any:
        def kernel() -> Any:
            out = nl.ndarray(shape, dtype=nl.float32, buffer=nl.shared_hbm)
            for part in written:
                view = out[part]
                tile = nl.ndarray((1, view.size), dtype=nl.float32)
                nisa.memset(tile, 1.0)
                nisa.dma_copy(dst=view, src=tile)
            return out

        return kernel

    @pytest.mark.parametrize(
        ("shape", "written", "said"),
        [
            ((882,), [np.s_[0:875]], "`out[875:882]` never written (7 of 882 elements)"),
            ((882,), [np.s_[0:881]], "`out[881]` never written (1 of 882 elements)"),
            ((8, 4), [np.s_[0:6, :]], "`out[6:8, 0:4]` never written (8 of 32 elements)"),
            ((8, 4), [np.s_[0:7, :]], "`out[7, 0:4]` never written (4 of 32 elements)"),
            ((8, 4), [], "`out[0:8, 0:4]` never written (32 of 32 elements)"),
            ((8, 4), [np.s_[:, 0:3]], "`out[0:8, 3]` never written (8 of 32 elements)"),
            ((8, 4), [np.s_[0:6, :], np.s_[6:8, 0:2]], "`out[6:8, 2:4]` never written (4 of 32 elements)"),
            ((8, 4), [np.s_[1:7, :]], "`out[0, 0:4]`, `out[7, 0:4]` never written (8 of 32 elements)"),
            ((4, 2, 2), [np.s_[0:3]], "`out[3, 0:2, 0:2]` never written (4 of 16 elements)"),
            ((5, 2), [np.s_[:, 0:1], np.s_[2:3]], "`out[0:2, 1]`, `out[3:5, 1]` never written (4 of 10 elements)"),
            (
                (8, 2),
                [np.s_[0:1], np.s_[2:3], np.s_[4:5], np.s_[6:7]],
                "`out[1, 0:2]`, `out[3, 0:2]`, `out[5, 0:2]` and 2 more elements never written (8 of 16 elements)",
            ),
        ],
    )
    def test_the_elements_are_reported(self, shape: Any, written: Any, said: str) -> None:
        """As boxes in the indices of the output."""
        run = nkitools.simulate(self.filled(shape, *written), rules="report")
        (finding,) = run.findings
        assert finding.rule == "NK403"
        assert finding.message == f"output tensor `out` (shared HBM, float32 {list(shape)}): {said}"
        assert (finding.file, finding.function) == (__file__, "kernel")

    def test_the_rest_is_given_and_what_is_missing_is_not_a_number(self) -> None:
        """Under "report" the author sees both."""
        out = simulate(self.filled((4, 2), np.s_[0:3]), rules="report")
        np.testing.assert_array_equal(out, [[1, 1], [1, 1], [1, 1], [np.nan, np.nan]])

    def test_it_is_an_error(self) -> None:
        """Under "error" it is raised; a tensor returned twice is told once."""
        with pytest.raises(nkitools.KernelError, match="NK403"):
            simulate(self.filled((4, 2), np.s_[0:3]))
        kernel = self.filled((4, 2), np.s_[0:3])
        run = nkitools.simulate(lambda: [kernel(), kernel()] + [kernel()] * 2, rules="report")
        assert [each.count for each in run.findings] == [3]

    def test_a_name_given_at_creation_is_the_name(self) -> None:
        """`name=` says what the author wants to read."""

        def kernel() -> Any:
            return nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.shared_hbm, name="scores")

        (finding,) = nkitools.simulate(kernel, rules="report").findings
        assert finding.message.startswith("output tensor `scores` (shared HBM")

    def test_private_outputs_of_two_programs_are_explained(self) -> None:
        """Program 0's half is all that it has: the remedy is shared_hbm."""

        def kernel() -> Any:
            out = nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.hbm)
            tile = nl.zeros((2, 2), dtype=nl.float32)
            nl.store(out[nl.ds(nl.program_id(0) * 2, 2), :], tile)
            return out

        (finding,) = nkitools.simulate(kernel, grid=2, rules="report").findings
        assert finding.message.endswith("`out[2:4, 0:2]` never written (4 of 8 elements)")
        assert "nl.shared_hbm" in finding.remedy
