"""What affine_select, range_select, select_reduce, tensor_copy_predicated and sequence_bounds compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, inside, issue, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample, words

# FP32_MIN and large integers overflow narrower floats on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")

COMMANDS = nisa.reduce_cmd
LOWEST = np.float32(-3.4028235e38)
COMPARISONS: dict[str, Any] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
IN_RANGE = [name for name in COMPARISONS if name != "not_equal"]


# --- affine_select ---------------------------------------------------------------------------------------------------


def affine(pattern: list[list[int]], offset: int, multiplier: int, partitions: int) -> np.ndarray:
    """The documented loops, in 32 bits: one row of affine values for each partition."""
    padded = [[0, 1]] * (4 - len(pattern)) + pattern
    values = np.zeros((partitions, *(count for _, count in padded)), np.int64)
    for channel, w, z, y, x in np.ndindex(*values.shape):
        steps = (place * step for place, (step, _) in zip((w, z, y, x), padded, strict=True))
        values[channel, w, z, y, x] = offset + channel * multiplier + sum(steps)
    return (values.reshape(partitions, -1) + 2**31) % 2**32 - 2**31


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=4),
    st.integers(-12, 12),
    st.integers(-3, 3),
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(1, 9),
)
@example([(2**30, 4)], 2**31 - 1, 2**30, "less", 5)
@example([(-(2**31), 2)], -(2**31), -(2**31), "greater_equal", 2)
def test_the_predicate_is_the_documented_loop(
    pattern: list[tuple[int, int]], offset: int, multiplier: int, name: str, partitions: int
) -> None:
    """Up to four steps, any sign, any comparison; 32-bit integers wrap."""
    steps = [list(pair) for pair in pattern]
    found = affine(steps, offset, multiplier, partitions)
    x = sample(found.shape)
    issued = issue(
        nisa.affine_select,
        dst=empty(x.shape),
        pattern=steps,
        channel_multiplier=multiplier,
        on_true_tile=tile(x),
        on_false_value=-1.5,
        cmp_op=getattr(nl, name),
        offset=offset,
    )
    np.testing.assert_array_equal(issued.dst, np.where(COMPARISONS[name](found, 0), x, np.float32(-1.5)))


def causal(dst: Any, data: Any, on_false: Any = LOWEST, **kwargs: Any) -> Any:
    """Keep element k of partition q where k <= q."""
    count = int(np.prod(data.shape[1:]))
    args = ([[-1, count]], 1, data, float(on_false), nl.greater_equal)
    return issue(nisa.affine_select, dst, *args, **kwargs)


@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.float16, nl.float8_e5m2, nl.int8, nl.int32], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_an_affine_selection_of_any_dtype(dtype: Any, result: Any) -> None:
    """Equal dtypes keep their elements, others go through float32; the number is cast like any float32."""
    x = words((20, 24), dtype) if dtype in INTEGERS else sample((20, 24), dtype)
    issued = causal(empty(x.shape, result), tile(x, dtype=dtype), -7.0)
    kept = x if dtype == result else held(x, result)
    expected = np.where(np.tri(20, 24, dtype=bool), kept, held(-7.0, result))
    np.testing.assert_array_equal(issued.dst, expected)


def test_the_lowest_float_becomes_minus_infinity_where_it_does_not_fit() -> None:
    """FP32_MIN in bfloat16, float16 and float8; integers saturate."""
    x = np.zeros((4, 4), np.float32)
    for dtype in (nl.bfloat16, nl.float16, nl.float8_e5m2, nl.float8_e4m3):
        assert np.isneginf(causal(empty((4, 4), dtype), tile(x)).dst[0, 1].astype(np.float32))
    assert causal(empty((4, 4), nl.int16), tile(x)).dst[0, 1] == -(2**15)
    assert causal(empty((4, 4)), tile(x)).dst[0, 1] == LOWEST


def test_nan_bits_are_copied_and_what_is_not_selected_has_no_effect() -> None:
    """A selection copies; the NaN outside of it is gone, the one inside keeps its payload."""
    bits = np.array([[0x7FC12345, 0x7F800000, 0xFFC00001]], np.uint32)
    issued = issue(nisa.affine_select, empty((1, 3)), [[1, 3]], 0, tile(bits.view(np.float32)), 2.0, nl.less, -2)
    np.testing.assert_array_equal(issued.dst.view(np.uint32), [[0x7FC12345, 0x7F800000, 0x40000000]])


def test_affine_in_place_overlapping_masked_and_of_other_shapes() -> None:
    """The destination may be the input or overlap it; masked lanes stay; free dimensions may differ."""
    x = sample((16, 16))
    where = np.tri(16, dtype=bool)
    data = tile(x)
    np.testing.assert_array_equal(causal(data, data, 9).dst, np.where(where, x, 9))
    wide = sample((16, 20))
    root = tile(wide)
    shifted = issue(
        nisa.affine_select,
        root.seen(lambda t: t[:, 2:18]),
        [[-1, 16]],
        1,
        root.seen(lambda t: t[:, :16]),
        9.0,
        nl.greater_equal,
        rules="report",
    )
    np.testing.assert_array_equal(shifted.dst, np.where(where, wide[:, :16], 9))
    kept = sample((16, 16), seed=3) > 0
    masked = tile(np.full((16, 16), 5, np.float32), view=lambda t: MaskedTensor.of(t, kept))
    np.testing.assert_array_equal(causal(masked, tile(x), 9).storages["dst"], np.where(kept, np.where(where, x, 9), 5))
    cube = issue(
        nisa.affine_select,
        empty((16, 2, 8), nl.bfloat16),
        [[-8, 2], [-1, 8]],
        1,
        tile(x.reshape(16, 4, 4)),
        9.0,
        nl.greater_equal,
    )
    np.testing.assert_array_equal(cube.dst, held(np.where(where, x, 9), nl.bfloat16).reshape(16, 2, 8))


# --- range_select ----------------------------------------------------------------------------------------------------


def ranged(x: np.ndarray, first: Any, second: Any, op0: str, op1: str, start: int) -> np.ndarray:
    """The docstring's NumPy, in float64."""
    indices = (start + np.arange(x[0].size)).astype(np.float64)
    inside_of = COMPARISONS[op0](indices, first.astype(float)) & COMPARISONS[op1](indices, second.astype(float))
    return np.where(inside_of.reshape(x.shape), float64(x), float(LOWEST))


@given(
    st.sampled_from(IN_RANGE),
    st.sampled_from(IN_RANGE),
    st.sampled_from([(8, 12), (1, 1), (5, 3, 4), (128, 2)]),
    st.integers(-6, 20),
    st.integers(0, 99),
)
def test_a_range_is_selected_and_its_maximum_taken(
    op0: str, op1: str, shape: tuple[int, ...], start: int, seed: int
) -> None:
    """Any two comparisons with bounds of each partition, flattened free dimensions; an empty row gives FP32_MIN."""
    x = sample(shape, seed=seed)
    generator = np.random.default_rng(seed)
    bounds = [generator.integers(-6, 20, (shape[0], 1)).astype(np.float32) / 2 for _ in range(2)]
    issued = issue(
        nisa.range_select,
        dst=empty(shape),
        on_true_tile=tile(x),
        comp_op0=getattr(nl, op0),
        comp_op1=getattr(nl, op1),
        bound0=tile(bounds[0]),
        bound1=tile(bounds[1]),
        reduce_res=empty((shape[0], 1)),
        range_start=start,
    )
    expected = ranged(x, *bounds, op0, op1, start)
    np.testing.assert_array_equal(issued.dst, expected)
    np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], expected.reshape(shape[0], -1).max(axis=1))


LOW, HIGH = np.full((8, 1), 2, np.float32), np.full((8, 1), 7, np.float32)


def between(dst: Any, data: Any, low: Any = LOW, high: Any = HIGH, **kwargs: Any) -> Any:
    """Keep the elements of index 2 to 6."""
    return issue(nisa.range_select, dst, data, nl.greater_equal, nl.less, tile(low), tile(high), **kwargs)


@pytest.mark.parametrize("result", [*FLOATS, nl.int16], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_a_range_of_any_float_dtype_is_reduced_before_the_cast(dtype: Any, result: Any) -> None:
    """``dst`` holds FP32_MIN as its dtype does; a float32 ``reduce_res`` gets it exactly, whatever ``dst`` is."""
    x = sample((8, 12), dtype)
    low = np.where(np.arange(8)[:, None] < 4, np.float32(2), np.float32(50))  # nothing in the lower half
    issued = between(empty(x.shape, result), tile(x, dtype=dtype), low, reduce_res=empty((8, 1)))
    chosen = ranged(x, low, HIGH, "greater_equal", "less", 0)
    np.testing.assert_array_equal(float64(issued.dst), float64(held(chosen, result)))  # float8_e4m3fn: NaN
    np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], chosen.max(axis=1))
    assert (issued.views["reduce_res"][4:] == LOWEST).all()


def test_range_registers_go_on_from_tile_to_tile() -> None:
    """reset_reduce, reduce without and with a result tile, reset; a narrower result tile is cast to."""
    x = sample((8, 3, 12))
    chosen = x[:, :, 2:7].max(axis=2)

    def body() -> list[np.ndarray]:
        data, dst, bounds = placed(tile(x)), placed(empty((8, 12))), (placed(tile(LOW)), placed(tile(HIGH)))
        result, half, seen = placed(empty((8, 1))), placed(empty((8, 1), nl.bfloat16)), []

        def call(k: int, into: Any = None, **kwargs: Any) -> None:
            nisa.range_select(dst, data[:, k], nl.greater_equal, nl.less, *bounds, reduce_res=into, **kwargs)
            if into is not None:
                seen.append(np.array(into.array)[:, 0])

        call(0)
        call(1, reduce_cmd=COMMANDS.reduce)
        call(2, result, reduce_cmd=COMMANDS.reduce)
        call(1, half)
        call(1, result, reduce_cmd=COMMANDS.reset)
        call(0, result, reduce_cmd=COMMANDS.reduce)
        return seen

    wanted = [chosen.max(axis=1), held(chosen[:, 1], nl.bfloat16), np.full(8, -np.inf), chosen[:, 0]]
    for found, expected in zip(inside(body), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kwargs", [{}, {"rules": "report"}], ids=["error", "report"])
def test_an_idle_command_leaves_registers_that_nothing_can_be_read_from(kwargs: dict[str, Any]) -> None:
    """NK507 is said, and the result is NaN."""
    x = sample((8, 12))
    first = between(empty((8, 12)), tile(x), reduce_cmd=COMMANDS.idle, reduce_res=empty((8, 1)), **kwargs)
    p = np.ones((8, 12), np.uint8)
    second = issue(nisa.select_reduce, empty((8, 12)), tile(p), tile(x), 0.0, reduce_res=empty((8, 1)), **kwargs)
    for issued in (first, second):
        assert issued.rules == ["NK507"]
        assert np.isnan(issued.views["reduce_res"]).all()


def test_a_range_in_place_and_in_psum() -> None:
    """The destination may be the input; bounds of a view of the destination are read before it is written."""
    x = sample((8, 12))
    x[:, 0], x[:, 1] = 2, 7
    expected = ranged(x, LOW, HIGH, "greater_equal", "less", 0)
    data = tile(x, "psum")
    low, high = data.seen(lambda t: t[:, 0:1]), data.seen(lambda t: t[:, 1:2])
    issued = issue(nisa.range_select, data, data, nl.greater_equal, nl.less, low, high, reduce_res=empty((8, 1)))
    np.testing.assert_array_equal(issued.dst, expected)
    np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], expected.max(axis=1))


# --- select_reduce ---------------------------------------------------------------------------------------------------

SELECTED = [each for each in (*FLOATS, *INTEGERS) if each not in (nl.tfloat32, nl.int32, nl.uint32)]
PREDICATES = [nl.int8, nl.uint8, nl.int16, nl.uint16, nl.bool]


def chances(shape: tuple[int, ...], dtype: Any, seed: int = 5) -> np.ndarray:
    """Zeros and any other values of a predicate's dtype, negative ones among them."""
    generator = np.random.default_rng(seed)
    return (generator.integers(-3, 4, shape) * generator.integers(0, 2, shape)).astype(dtype.dtype)


@given(
    st.sampled_from(PREDICATES),
    st.sampled_from(SELECTED),
    st.sampled_from([*FLOATS, *INTEGERS]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(16, 10), (4, 2, 5)]),
    st.integers(0, 99),
)
def test_a_predicate_selects(
    predicate: Any, dtype: Any, result: Any, vector: bool, reverse: bool, reduces: bool, shape: Any, seed: int
) -> None:
    """Any documented dtypes, number or vector, either direction, with and without the maximum."""
    p, x = chances(shape, predicate, seed), sample(shape, dtype, seed)
    v = sample((shape[0], 1), nl.float32, seed + 1)
    other = v.reshape(shape[0], *[1] * (len(shape) - 1)) if vector else np.float32(-2.5)
    issued = issue(
        nisa.select_reduce,
        dst=empty(shape, result),
        predicate=tile(p, dtype=predicate),
        on_true=tile(x, dtype=dtype),
        on_false=tile(v) if vector else -2.5,
        reduce_res=empty((shape[0], 1)) if reduces else None,
        reduce_cmd=COMMANDS.reset_reduce if reduces else COMMANDS.idle,
        reduce_op=nl.max,
        reverse_pred=reverse,
    )
    expected = np.where((p == 0) if reverse else (p != 0), float64(x), float64(other))
    np.testing.assert_array_equal(issued.dst, held(expected, result))
    if reduces:
        highest = expected.reshape(shape[0], -1).max(axis=1)
        np.testing.assert_array_equal(issued.views["reduce_res"][:, 0], highest)


def test_select_registers_are_the_vector_engines() -> None:
    """What range_select reduces, select_reduce continues."""
    x, y = sample((8, 12)), sample((8, 12), seed=1)
    p = chances((8, 12), nl.uint8)

    def body() -> np.ndarray:
        dst, result = placed(empty((8, 12))), placed(empty((8, 1)))
        bounds = placed(tile(LOW)), placed(tile(HIGH))
        nisa.range_select(dst, placed(tile(x)), nl.greater_equal, nl.less, *bounds)
        nisa.select_reduce(dst, placed(tile(p)), placed(tile(y)), -100.0, result, COMMANDS.reduce)
        return np.array(result.array)[:, 0]

    highest = np.maximum(x[:, 2:7].max(axis=1), np.where(p != 0, y, -100).max(axis=1))
    np.testing.assert_array_equal(inside(body), highest)


def test_select_in_place_with_operands_that_overlap_the_destination() -> None:
    """``dst`` may be ``on_true``, hold the vector, or be the predicate."""
    x, p = sample((16, 8)), chances((16, 8), nl.uint8)
    data = tile(x)
    column = data.seen(lambda t: t[:, 3:4])
    for kwargs in ({}, {"reduce_cmd": COMMANDS.reset_reduce, "reduce_res": empty((16, 1))}):
        issued = issue(nisa.select_reduce, data, tile(p), data, column, **kwargs)
        np.testing.assert_array_equal(issued.dst, np.where(p != 0, x, x[:, 3:4]))
    flags = tile(p)
    small = np.arange(128, dtype=np.uint8).reshape(16, 8)
    issued = issue(nisa.select_reduce, flags, flags, tile(small), 200.0)
    np.testing.assert_array_equal(issued.dst, np.where(p != 0, small, 200))


def test_select_keeps_bits_without_a_reduction_and_copies_what_is_chosen_only() -> None:
    """Equal dtypes: payloads of NaN survive, and NaN that is not chosen is nowhere."""
    bits = np.array([[0x7FC12345, 0x7F800000, 0xFFC00001]], np.uint32)
    p = np.array([[1, 1, 0]], np.uint8)
    x = tile(bits.view(np.float32))
    issued = issue(nisa.select_reduce, empty((1, 3)), tile(p), x, 2.0)
    np.testing.assert_array_equal(issued.dst.view(np.uint32), [[0x7FC12345, 0x7F800000, 0x40000000]])
    issued = issue(nisa.select_reduce, empty((1, 3)), tile(1 - p), x, 2.0, empty((1, 1)), COMMANDS.reset_reduce)
    np.testing.assert_array_equal(issued.dst[0, :2], [2, 2])


# --- sequence_bounds -------------------------------------------------------------------------------------------------


def bounds_of(ids: list[int]) -> list[list[int]]:
    """Start and end of each element's run, by walking outward from it."""
    count, starts, ends = len(ids), [], []
    for place, segment in enumerate(ids):
        first = last = place
        while first > 0 and ids[first - 1] == segment:
            first -= 1
        while last < count - 1 and ids[last + 1] == segment:
            last += 1
        starts.append(first if segment else count)
        ends.append(last + 1 if segment else -1)
    return [starts, ends]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.sampled_from([nl.float32, nl.int32]),
    st.sampled_from([nl.float32, nl.int32]),
)
@example([0, 1, 1, 2, 2, 2, 0, 3, 3], nl.int32, nl.int32)
def test_bounds_are_those_of_runs_of_equal_ids(ids: list[int], dtype: Any, result: Any) -> None:
    """Any ids, sorted or not; 0 is padding; both documented dtypes either way."""
    issued = issue(nisa.sequence_bounds, empty((1, 2, len(ids)), result), tile(np.array([ids], dtype.dtype)))
    np.testing.assert_array_equal(issued.dst, [bounds_of(ids)])
