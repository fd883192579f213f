"""nisa.NkiScalar, scalar_load and scalar_store: integers that the device computes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.careful import carefully
from tests.chip.models import refused
from tests.isa.issued import empty, inside, placed, tile
from tests.isa.loaded_scalars import WIDTHS, loaded, numbers, one, stored
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

MEMORIES = pytest.mark.parametrize("memory", ["sbuf", "private_hbm", "shared_hbm"])
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@MEMORIES
@WIDTHS
def test_every_integer_makes_the_round_trip(memory: str, dtype: Any) -> None:
    """Memory to scalar to memory: no bit of 32 or 64 is lost."""

    def body(value: int) -> Any:
        scalar = nisa.scalar_load(src=placed(one(value, dtype, memory)))
        assert scalar.dtype is dtype
        out = placed(empty((1, 1), dtype, memory))
        nisa.scalar_store(out, scalar)
        return out.array.item()

    for value in (np.iinfo(dtype.dtype).min, -1, 0, 17, np.iinfo(dtype.dtype).max):
        assert inside(lambda v=value: body(v)) == value


@pytest.mark.parametrize("swapped", [False, True], ids=["scalar first", "number first"])
@pytest.mark.parametrize("sign", OPERATIONS)
@WIDTHS
@given(data=st.data())
def test_arithmetic_wraps_as_numpy_does(data: Any, dtype: Any, sign: str, swapped: bool) -> None:
    """Sums, differences and products of two scalars, and of a scalar and an integer, are NumPy's in that dtype."""
    left, right = data.draw(numbers(dtype)), data.draw(numbers(dtype))
    compute = OPERATIONS[sign]
    with np.errstate(over="ignore"):
        expected = int(compute(np.array([left], dtype.dtype), np.array([right], dtype.dtype))[0])

    def body() -> tuple[int, int]:
        first, second = loaded(left, dtype), loaded(right, dtype)
        mixed = compute(left, second) if swapped else compute(first, right)
        return stored(compute(first, second)), stored(mixed)

    assert inside(body) == (expected, expected)


@WIDTHS
@given(data=st.data())
def test_signs_wrap_too(data: Any, dtype: Any) -> None:
    """``-`` of the smallest is the smallest, as in NumPy; ``+`` is a copy."""
    value = data.draw(numbers(dtype))
    expected = int((-np.array([value], dtype.dtype))[0])
    assert inside(lambda: (stored(-loaded(value, dtype)), stored(+loaded(value, dtype)))) == (expected, value)


def test_the_documented_products() -> None:
    """The examples of the deep dive on scalars: they wrap to what the page says."""
    assert inside(lambda: stored(loaded(100_000) * 100_000)) == 1_410_065_408
    assert inside(lambda: stored(loaded(2**31 - 1) + 1)) == -(2**31)


def test_an_index_is_computed_and_stored() -> None:
    """From a loaded i, 4 * i + 1 as both forms of the product, by NumPy's integers as well."""

    def kernel(index: Any) -> Any:
        out = nl.ndarray((3, 1), nl.int32, buffer=nl.shared_hbm)
        i = nisa.scalar_load(src=index)
        for row, value in enumerate((i * 4 + 1, 1 + 4 * i, np.int64(4) * i + np.int32(1))):
            nisa.scalar_store(dst=out[row : row + 1], value=value)
        return out

    for value in (0, 5, -3, 2**30):
        given = np.array([[value]], np.int32)
        run = nkitools.simulate(kernel, given)
        np.testing.assert_array_equal(run.outputs, np.broadcast_to(given * np.int32(4) + np.int32(1), (3, 1)))
        assert [each.name for each in run.instructions] == ["scalar_load", *["scalar_store"] * 3]


@WIDTHS
def test_scalars_address_elements_in_hbm(dtype: Any) -> None:
    """As scalar_offset, index, start of nl.ds and select, of both widths: what NumPy takes."""
    x = np.arange(40, dtype=np.float32).reshape(10, 4)

    def kernel(source: Any, at: Any) -> Any:
        out = nl.ndarray((4, 4), nl.float32, nl.shared_hbm)
        i = nisa.scalar_load(at)
        nisa.dma_copy(dst=out[0:1], src=source.ap([[4, 1], [1, 4]], scalar_offset=i * 2))
        nisa.dma_copy(dst=out[1], src=source[i])
        nisa.dma_copy(dst=out[2:3], src=source[nl.ds(2 * i + 1, 1)])
        nisa.dma_copy(dst=out[3], src=source.select(0, i - 3))
        return out

    run = nkitools.simulate(kernel, x, np.array([[3]], dtype.dtype))
    np.testing.assert_array_equal(run.outputs, x[[6, 3, 7, 0]])
    assert [each.tolist() for each in run.dependences.flow] == [[-1], *[[-1, 0]] * 4]


@pytest.mark.parametrize("view", ["scalar_offset", "nl.ds", "select"])
@WIDTHS
def test_scalars_reach_beyond_4_gb_in_hbm(dtype: Any, view: str) -> None:
    """Rows of 4 KiB on either side of the 4 GB that a 32-bit offset names; one of 32 bits with a hint (NK621)."""
    rows = 2**20 + 4  # pages that nothing touches take no memory
    x = np.zeros((rows, 4096), np.uint8)
    x[rows - 5], x[rows - 4], x[rows - 1], x[0], x[3] = 1, 2, 3, 4, 5

    def kernel(source: Any, at: Any) -> Any:
        out = nl.ndarray((2, 16), nl.uint8, nl.shared_hbm)
        for row, back in enumerate((0, 4)):
            i = nisa.scalar_load(at) - back
            seen = {
                "scalar_offset": lambda i=i: source.ap([[4096, 1], [1, 16]], scalar_offset=i),
                "nl.ds": lambda i=i: source[nl.ds(i, 1), 0:16],
                "select": lambda i=i: source.select(0, i).reshape((1, 4096))[:, 0:16],
            }[view]()
            nisa.dma_copy(dst=out[row : row + 1], src=seen)
        return out

    for last, expected, hints in ((rows - 1, [3, 1], 1), (rows - 4, [2, 0], 1), (rows - 5, [1, 0], 0), (4, [0, 4], 0)):
        run = nkitools.simulate(kernel, x, np.array([[last]], dtype.dtype))
        assert run.outputs[:, 0].tolist() == expected
        found = [each.rule for each in run.findings]
        assert found == (["NK621"] * hints if dtype is nl.int32 else [])


def test_scalars_of_32_bits_address_elements_on_chip() -> None:
    """In SBUF as scalar_offset, nl.ds and index; one of 64 bits is refused (NK301), not narrowed."""

    def body(dtype: Any, view: Callable[[Any, Any], Any]) -> Any:
        source = placed(tile(np.arange(16, dtype=np.float32).reshape(2, 8)))
        out = placed(empty((2, 1)))
        nisa.tensor_copy(dst=out, src=view(source, loaded(2, dtype)))
        return out.array[:, 0].tolist()

    views: list[Callable[[Any, Any], Any]] = [
        lambda source, i: source[:, nl.ds(i + 1, 1)],
        lambda source, i: source.ap([[8, 2], [1, 1]], offset=1, scalar_offset=i, indirect_dim=1),
        lambda source, i: source.select(1, i + 1),
    ]
    for view in views:
        assert inside(lambda v=view: body(nl.int32, v)) == [3.0, 11.0]
        with refused("NK301", "needs an integer of 32 bits, it is given a scalar of int64"):
            inside(lambda v=view: body(nl.int64, v))


def test_an_address_out_of_bounds_is_refused() -> None:
    """NK402, with the value that the scalar has when it is used."""

    def kernel(x: Any, at: Any) -> Any:
        out = nl.ndarray((1, 4), nl.float32, nl.shared_hbm)
        nisa.dma_copy(dst=out, src=x[nl.ds(nisa.scalar_load(at), 1)])
        return out

    with refused("NK402", "index 4 of"):
        nkitools.simulate(kernel, np.zeros((4, 4), np.float32), np.array([[4]], np.int32))


def test_a_scalar_keeps_its_value() -> None:
    """A tensor that is written after the load does not change the scalar that was loaded from it."""

    def body() -> tuple[int, int]:
        source = placed(one(3))
        first = nisa.scalar_load(source)
        nisa.scalar_store(source, first + 7)
        return stored(first), stored(nisa.scalar_load(source))

    assert inside(body) == (3, 10)


def test_registers_and_scalars_side_by_side() -> None:
    """A sum of both is a register; a register takes a scalar's value; iota counts from a scalar."""

    def body() -> Any:
        scalar, register = loaded(5), nisa.register_alloc(2)
        both = [scalar + register, register + scalar, scalar - register, register - scalar, scalar * register]
        assert {type(each) for each in both} == {nisa.VirtualRegister}
        nisa.register_move(register, scalar)
        counted = placed(empty((1, 3), nl.int32))
        nisa.iota(dst=counted, pattern=[[1, 3]], offset=scalar)
        return [each.value for each in both], register.value, counted.array.tolist()

    assert inside(body) == ([7, 7, 3, -3, 10], 5, [[5, 6, 7]])


def test_an_affine_selection_begins_at_a_scalar() -> None:
    """Beyond a scalar's value it selects; a scalar of 64 bits is refused, as iota refuses it."""

    def selected(offset: Any) -> Any:
        dst = placed(empty((2, 4)))
        nisa.affine_select(dst, [[1, 4]], 1, placed(tile(np.ones((2, 4), np.float32))), 0.0, nl.greater, offset)
        return dst.array.tolist()

    assert inside(lambda: selected(loaded(-2))) == [[0, 0, 0, 1], [0, 0, 1, 1]]
    with pytest.raises(nkitools.KernelError, match="NK301"):
        inside(lambda: selected(loaded(-2, nl.int64)))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_both_ways_of_issuing_agree(dtype: Any) -> None:
    """The fast path and the careful one give one result, one record and the same dependences."""

    def kernel(x: Any, at: Any) -> Any:
        out = nl.ndarray((6, 1), at.dtype, nl.shared_hbm)
        total = nisa.scalar_load(at)
        for row in range(6):
            total = total * 3 + nisa.scalar_load(at)
            nisa.scalar_store(out[row : row + 1], total)
        return out

    given = np.zeros((2, 2), np.float32), np.array([[11]], dtype)
    fast = nkitools.simulate(kernel, *given)
    with carefully():
        careful = nkitools.simulate(kernel, *given)
    expected, value = [], 11
    for _ in range(6):
        value = value * 3 + 11
        expected.append([value])
    for run in (fast, careful):
        assert run.outputs.tolist() == expected
        assert [each.tolist() for each in run.dependences.flow][1:] == [
            [-1] if step % 2 == 0 else [0, *range(1, step + 1, 2)] for step in range(12)
        ]
    assert list(fast.instructions) == list(careful.instructions)
