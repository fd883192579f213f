"""NumPy arrays on their way into a kernel: in place, copied, shared, refused."""

from __future__ import annotations

import warnings
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.launch.kernels import doubled, doubled_in_place

Pair = namedtuple("Pair", ["left", "right"])


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def refusal(kernel: Any, *args: Any, **kwargs: Any) -> nkitools.Finding:
    """The finding with which a launch is refused."""
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(kernel, *args, **kwargs)
    return raised.value.finding


class TestInPlace:
    """Modern kernels may write into the inputs that they are told to change."""

    def test_a_contiguous_array_is_used_in_place(self) -> None:
        """What the kernel writes is in the array afterwards, and returning it returns that array."""
        x = ones(8, 4)
        run = nkitools.simulate(doubled_in_place, x, mutates="x")
        assert run.outputs is x
        np.testing.assert_array_equal(x, 2 * ones(8, 4))

    @pytest.mark.parametrize("view", [np.s_[:, ::2], np.s_[::-1], np.s_[1:5, 2:6]])
    def test_what_is_written_into_a_view_is_copied_back(self, view: Any) -> None:
        """Strided, reversed and inner views: the elements of the view change, the others do not."""
        base = np.arange(64, dtype=np.float32).reshape(8, 8)
        expected = base.copy()
        expected[view] *= 2
        x = base[view]
        assert nkitools.simulate(doubled_in_place, x, mutates="x").outputs is x
        np.testing.assert_array_equal(base, expected)

    def test_a_transposed_array_is_copied_back(self) -> None:
        """Fortran order is an order like others."""
        x = np.arange(32, dtype=np.float32).reshape(4, 8).T
        expected = x * 2
        nkitools.simulate(doubled_in_place, x, mutates="x")
        np.testing.assert_array_equal(x, expected)

    def test_strides_of_dimensions_of_size_one_are_those_of_the_shape(self) -> None:
        """NumPy leaves them as they come; the array is used in place all the same."""
        x = np.ones((4, 1), np.float32).T
        assert x.strides == (4, 4)
        seen: list[Any] = []

        def kernel(x: Any) -> Any:
            seen.append(x.strides)
            return doubled_in_place(x)

        assert nkitools.simulate(kernel, x, mutates="x").outputs is x
        assert seen == [(4, 1)]
        np.testing.assert_array_equal(x, 2 * ones(1, 4))

    def test_one_array_passed_twice_is_one_storage(self) -> None:
        """What is written through one parameter is read through the other, also of two views of the same elements."""

        def kernel(x: Any, y: Any) -> Any:
            doubled_in_place(x)
            return doubled(y)

        x = ones(8, 4)
        np.testing.assert_array_equal(nkitools.simulate(kernel, x, x, mutates="x").outputs, 4 * ones(8, 4))
        base = ones(8, 8)
        np.testing.assert_array_equal(
            nkitools.simulate(kernel, base[:, ::2], base[:, ::2], mutates="x").outputs, 4 * ones(8, 4)
        )
        np.testing.assert_array_equal(base[:, ::2], 2 * ones(8, 4))

    def test_a_copied_argument_that_was_only_read_is_not_copied_back(self) -> None:
        """It may overlap with another one that was written."""

        def kernel(x: Any, y: Any) -> Any:
            doubled_in_place(x)
            return doubled(y)

        base = ones(8, 8)
        nkitools.simulate(kernel, base[:, 0:8:2], base[:, 0:7], mutates="x")
        np.testing.assert_array_equal(base[:, ::2], 2 * ones(8, 4))
        np.testing.assert_array_equal(base[:, 1::2], ones(8, 4))

    def test_a_part_of_an_argument_comes_back_as_a_copy(self) -> None:
        """Nobody writes into an argument through a result."""
        x = np.arange(32, dtype=np.float32).reshape(8, 4)

        def kernel(x: Any) -> Any:
            return x[0:2, :], x[:, 0:2], x.reshape((4, 8))

        for part in nkitools.simulate(kernel, x).outputs:
            assert not np.shares_memory(part, x)
        first, left, reshaped = nkitools.simulate(kernel, x).outputs
        np.testing.assert_array_equal(first, x[0:2])
        np.testing.assert_array_equal(left, x[:, 0:2])
        np.testing.assert_array_equal(reshaped, x.reshape(4, 8))


class TestReadOnly:
    """Arrays that may not be written can be read, and writing into them is refused by name."""

    @staticmethod
    def frozen() -> Any:
        x = ones(8, 4)
        x.flags.writeable = False
        return x

    @pytest.mark.parametrize("make", [frozen.__func__, lambda: np.broadcast_to(np.float32(1), (8, 4))])
    def test_they_are_read(self, make: Any) -> None:
        """In place or copied."""
        np.testing.assert_array_equal(nkitools.simulate(doubled, make()).outputs, 2 * ones(8, 4))

    @pytest.mark.parametrize("level", ["error", "off"])
    @pytest.mark.parametrize(
        "make",
        [
            frozen.__func__,
            lambda: TestReadOnly.frozen()[:, ::2],
            lambda: np.broadcast_to(np.float32(1), (8, 4)),
            lambda: np.lib.stride_tricks.as_strided(ones(4), (8, 4), (0, 4)),
        ],
    )
    def test_writing_into_one_is_refused(self, make: Any, level: str) -> None:
        """The refusal names the argument and the line that writes, and the array keeps its values."""
        x = make()
        finding = refusal(doubled_in_place, x, rules=level)
        assert finding.rule == "NK609"
        assert finding.message == "the kernel writes into its argument `x`, an array that is read-only"
        assert finding.function == "doubled_in_place"
        assert finding.line == doubled_in_place.function.__code__.co_firstlineno + 5
        np.testing.assert_array_equal(x, np.ones_like(x))

    def test_the_destination_is_named_among_read_only_operands(self) -> None:
        """The source is read-only, too, and not to blame."""

        def kernel(source: Any, target: Any) -> Any:
            nisa.dma_copy(dst=target, src=source)
            return target

        assert "`target`" in refusal(kernel, self.frozen(), self.frozen()).message

    def test_report_collects_it_and_ends(self) -> None:
        """There is nothing to go on with."""
        run = nkitools.simulate(doubled_in_place, self.frozen(), rules="report")
        assert [finding.rule for finding in run.findings] == ["NK609"]
        assert run.outputs is None

    def test_the_authors_own_numpy_error_is_theirs(self) -> None:
        """Only what an instruction was writing is refused."""

        def kernel(x: Any) -> Any:
            self.frozen()[0] = 1
            return x

        with pytest.raises(ValueError, match="read-only") as raised:
            nkitools.simulate(kernel, self.frozen())
        assert type(raised.value) is ValueError


class TestContainers:
    """Arrays inside of lists, tuples, dictionaries and dataclasses."""

    @pytest.mark.parametrize(
        ("make", "take"),
        [
            (lambda x: [x, 3], lambda given: given[0]),
            (lambda x: (1, (x,)), lambda given: given[1][0]),
            (lambda x: {"w": x, "n": None}, lambda given: given["w"]),
            (lambda x: Pair(x, "right"), lambda given: given.left),
            (lambda x: [{"deep": (x,)}], lambda given: given[0]["deep"][0]),
        ],
    )
    def test_arrays_inside_become_tensors(self, make: Any, take: Any) -> None:
        """Everything else stays, the kind of the container included."""
        x = ones(8, 4)
        seen: list[Any] = []

        def kernel(given: Any) -> Any:
            seen.append(given)
            return doubled(take(given))

        given = make(x)
        np.testing.assert_array_equal(nkitools.simulate(kernel, given).outputs, 2 * x)
        assert type(seen[0]) is type(given)
        assert take(given) is x

    def test_dataclasses_and_configuration_objects_are_searched(self) -> None:
        """Frozen ones, too; the author's own object keeps its arrays."""

        @dataclass(frozen=True)
        class Weights:
            w: Any
            name: str = "w"

        class Config(nl.NKIObject):
            weights: Any
            factor: float

        def kernel(config: Any) -> Any:
            assert config.factor == 2.0
            assert config.weights.name == "w"
            return doubled(config.weights.w)

        config = Config(weights=Weights(ones(8, 4)), factor=2.0)
        np.testing.assert_array_equal(nkitools.simulate(kernel, config).outputs, 2 * ones(8, 4))
        assert isinstance(config.weights.w, np.ndarray)

    def test_what_holds_no_array_is_passed_as_it_is(self) -> None:
        """The very same object: kernels compare configurations, and may be given what holds itself."""
        seen: list[Any] = []

        def kernel(x: Any, *given: Any, **named: Any) -> Any:
            seen.extend((*given, *named.values()))
            return x

        endless: list[Any] = [1]
        endless.append(endless)
        values = [[1, 2], {"a": (3,)}, endless, nl.add, None, "text", nl.float32, np.float32(3)]
        nkitools.simulate(kernel, ones(8, 4), *values, last=values[1])
        assert all(mine is theirs for mine, theirs in zip(seen, [*values, values[1]], strict=True))

    def test_refusals_name_the_place_inside(self) -> None:
        """`weights[1]`, `tiles['left']`, `config.bias`."""

        @dataclass
        class Config:
            bias: Any

        wrong = ones(4, 4, dtype=np.float64)

        def kernel(weights: Any = (), tiles: Any = None, config: Any = None, **others: Any) -> None:
            pass

        assert refusal(kernel, [1, wrong]).message.startswith("argument `weights[1]` is an array of float64")
        assert refusal(kernel, tiles={"left": wrong}).message.startswith("argument `tiles['left']` is")
        assert refusal(kernel, config=Config(wrong)).message.startswith("argument `config.bias` is")
        assert refusal(kernel, other=wrong).message.startswith("argument `other` is")

    def test_each_of_several_is_named_by_its_place(self) -> None:
        """Findings call the tensor what the call called it."""

        def kernel(tiles: Any) -> Any:
            nl.add(tiles[1], tiles[1])

        assert "tensor `tiles[1]` (HBM" in refusal(kernel, [ones(8, 4), ones(4, 4)]).message


class TestDtypes:
    """What NKI has, and what it has not."""

    @pytest.mark.parametrize(
        "dtype",
        [np.int8, np.uint8, np.int32, np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, np.bool_],
    )
    def test_arrays_keep_their_dtype(self, dtype: Any) -> None:
        """In and out."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=x)
            return out

        x = np.arange(32).reshape(8, 4).astype(dtype)
        out = nkitools.simulate(kernel, x).outputs
        assert out.dtype == x.dtype
        assert out.tobytes() == x.tobytes()

    @pytest.mark.parametrize(
        "array",
        [
            np.ones((4, 4), np.float64),
            np.ones((4, 4), np.complex64),
            np.array([[None, "a"]], dtype=object),
            np.ones((4, 4), ">f4"),
            np.array(["2024-01-01"], dtype="M8[D]"),
            np.array([["a", "b"]]),
            np.zeros((4, 4), [("x", "f4"), ("y", "f4")]),
        ],
        ids=lambda array: str(array.dtype),
    )
    def test_what_nki_lacks_is_refused_by_name(self, array: Any) -> None:
        """NK301 names the argument and its dtype, at the line of the call."""
        finding = refusal(doubled, array)
        assert finding.rule == "NK301"
        assert finding.message == f"argument `x` is an array of {array.dtype}, which NKI does not have"
        assert "x.astype(np.float32)" in finding.remedy
        assert ("x.astype(np.int32)" in finding.remedy) == (array.dtype == np.int64)
        assert finding.file == __file__

    def test_a_refusal_has_no_other_error_behind_it(self) -> None:
        """The search for the dtype is ours."""
        with pytest.raises(nkitools.KernelError) as raised:
            nkitools.simulate(doubled, np.ones((4, 4), np.float64))
        assert raised.value.__context__ is None

    @pytest.mark.parametrize(
        ("array", "said"),
        [
            (np.array(1.0, np.float32), "argument `x` is an array without dimensions"),
            (np.ones((0, 4), np.float32), "argument `x` has shape [0, 4]; every size must be at least 1"),
            (np.ma.MaskedArray(np.ones(4, np.float32)), "argument `x` is a masked array; a kernel knows no masks"),
        ],
    )
    def test_arrays_without_a_meaning_are_refused(self, array: Any, said: str) -> None:
        """NK609: no dimensions, no elements, a mask that would be lost."""
        finding = refusal(doubled, array)
        assert (finding.rule, finding.message) == ("NK609", said)

    def test_matrices_are_arrays(self) -> None:
        """A subclass of ndarray is taken as the array that it is, and comes back where it is returned."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            x = np.matrix(ones(8, 4))
        np.testing.assert_array_equal(nkitools.simulate(doubled, x).outputs, 2 * ones(8, 4))
        assert nkitools.simulate(doubled_in_place, x, mutates="x").outputs is x


class TestOtherRuns:
    """A tensor lives as long as its run."""

    def test_a_tensor_of_a_finished_run_is_no_argument(self) -> None:
        """NK609 says where results are."""
        kept: list[Any] = []

        def keep(x: Any) -> None:
            kept.append(nl.load(x))

        nkitools.simulate(keep, ones(8, 4))
        finding = refusal(doubled, kept[0])
        assert (finding.rule, finding.message) == ("NK609", "argument `x` is a tensor of another run, which has ended")

    @pytest.mark.parametrize("place", ["dst", "data1", "data2"])
    def test_a_tensor_of_a_finished_run_is_no_operand(self, place: str) -> None:
        """NK611 at the line that uses it."""
        kept: list[Any] = []

        def keep(x: Any) -> None:
            kept.append(nl.load(x))

        def use(x: Any) -> None:
            tile = nl.load(x)
            nisa.tensor_tensor(**{**dict.fromkeys(("dst", "data1", "data2"), tile), place: kept[0]}, op=nl.add)

        nkitools.simulate(keep, ones(8, 4))
        finding = refusal(use, ones(8, 4))
        assert finding.rule == "NK611"
        assert finding.message.startswith("tensor_tensor: operand ")
        assert finding.message.endswith(" (SBUF, float32 [8, 4]) is a tensor of another run, which has ended")
        assert finding.function == "use"

    def test_outside_of_a_kernel_it_is_no_operand_either(self) -> None:
        """NK611: there is no core; the message leaves no marks of the name that nobody knows."""
        kept: list[Any] = []

        def keep(x: Any) -> None:
            kept.append(nl.load(x))

        nkitools.simulate(keep, ones(8, 4))
        with pytest.raises(nkitools.KernelError) as raised:
            nisa.memset(kept[0], 0)
        assert raised.value.finding.rule == "NK611"
        with pytest.raises(nkitools.KernelError) as raised:
            bool(kept[0])
        assert "\x00" not in raised.value.finding.message
        assert raised.value.finding.message.startswith("the truth value of tensor (SBUF, float32 [8, 4])")
        assert raised.value.finding.file == __file__
