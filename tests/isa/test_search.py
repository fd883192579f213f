"""max8, nc_find_index8 and nc_match_replace8 against loops over Python lists."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Issued, empty, issue, refusal, tile
from tests.isa.oracles import held, sample

pytestmark = pytest.mark.usefixtures("each_version")

NAN, INF = math.nan, math.inf
SEARCHABLE = (nl.float32, nl.bfloat16, nl.float16, nl.tfloat32, nl.float8_e4m3, nl.int32, nl.uint32, nl.int8, nl.uint8)

# Few different values, so that there are ties.
rows = arrays.arrays(
    np.float32, st.tuples(st.integers(1, 5), st.integers(8, 40)), elements=st.sampled_from([-INF, -2, -1, 0, 1, 2, INF])
)
eights = st.lists(st.sampled_from([-INF, -2.0, -1.0, 0.0, 1.0, 2.0, INF, NAN]), min_size=8, max_size=8)


# --- max8 ------------------------------------------------------------------------------------------------------------


def largest(row: Any) -> list[float]:
    """The 8 largest of a row, NaN after the numbers."""
    values = [float(value) for value in row]
    numbers = sorted((value for value in values if value == value), reverse=True)
    return (numbers + [NAN] * 8)[:8]


def max8(values: Any, dtype: Any = nl.float32, **kwargs: Any) -> np.ndarray:
    """What nisa.max8 makes of a tile."""
    source = tile(values, **kwargs)
    return issue(nisa.max8, empty((source.shape[0], 8), dtype), source).dst


@given(rows)
def test_max8_is_the_head_of_the_sorted_row(values: np.ndarray) -> None:
    """Descending, with every duplicate."""
    np.testing.assert_array_equal(max8(values), np.sort(values, axis=1)[:, :-9:-1])


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("dtype", SEARCHABLE, ids=str)
def test_max8_of_each_dtype(dtype: Any, memory: str) -> None:
    """Compared in float32 whatever the dtype; from both memories on chip."""
    values = sample((128, 33), dtype)
    expected = [largest(row) for row in values.astype(np.float64)]
    np.testing.assert_array_equal(max8(values, memory=memory, dtype=nl.float32), expected)


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.int32, nl.uint8], ids=str)
def test_max8_casts_its_results_once(dtype: Any) -> None:
    """To the dtype of the destination: nearest even, integers saturated."""
    values = sample((3, 100), low=-300, high=300)
    expected = held([largest(row) for row in values], dtype)
    np.testing.assert_array_equal(max8(values, dtype), expected)


@pytest.mark.parametrize("shape", [(1, 8), (128, 16384), (4, 3, 5), (3, 1537), (2, 40, 41)])
def test_max8_takes_8_to_16384_elements_in_up_to_3_dimensions(shape: tuple[int, ...]) -> None:
    """At the limits, and with flattened free dimensions."""
    values = sample(shape)
    np.testing.assert_array_equal(max8(values), np.sort(values.reshape(shape[0], -1), axis=1)[:, :-9:-1])


RESULTS = [(4, 8), (4, 2, 4), (4, 1, 8), (4, 8, 1)]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from(RESULTS), st.integers(0, 99))
def test_max8_takes_5_dimensions_since_0_7(free: list[int], result: tuple[int, ...], seed: int) -> None:
    """And a destination of 3; NKI 0.6 refuses more than 3 and more than 2."""
    shape = (4, *free[:-1], 8 * free[-1])
    values = sample(shape, seed=seed)
    expected = np.sort(values.reshape(4, -1), axis=1)[:, :-9:-1]
    issued = issue(nisa.max8, empty(result), tile(values), version="0.7")
    np.testing.assert_array_equal(issued.dst.reshape(4, 8), expected)
    if len(shape) > 3 or len(result) > 2:
        assert refusal(nisa.max8, empty(result), tile(values), version="0.6").rule == "NK110"
    else:
        before = issue(nisa.max8, empty(result), tile(values), version="0.6")
        np.testing.assert_array_equal(before.dst, expected)


def test_max8_puts_nan_behind_every_number() -> None:
    """A comparison with NaN is never true, so it gets a place only where numbers are too few."""
    row = [NAN, -INF, 3, NAN, 1, 2, -1, NAN, -2, NAN]
    np.testing.assert_array_equal(max8(np.array([row], np.float32)), [[3, 2, 1, -1, -2, -INF, NAN, NAN]])


@given(st.integers(1025, 1400), st.integers(0, 1399), st.data())
def test_max8_of_long_rows(size: int, nans: int, data: st.DataObject) -> None:
    """With ties that straddle what is looked at first, and with NaN."""
    values = np.random.default_rng(size).integers(-3, data.draw(st.integers(-2, 9)), (2, size)).astype(np.float32)
    values[1, np.random.default_rng(nans).permutation(size)[:nans]] = NAN
    np.testing.assert_array_equal(max8(values), [largest(row) for row in values])


def test_max8_sees_integers_as_float32() -> None:
    """The engine converts to float32: 2**24 + 1 comes back as 2**24."""
    values = np.array([[2**24 + 1, *range(9)]], np.int32)
    assert max8(values, nl.int32)[0, 0] == 2**24


def test_max8_of_a_strided_view() -> None:
    """Only what the view shows is read."""
    values = sample((4, 40))
    source = tile(values, view=lambda tensor: tensor[:, 1:40:2])
    got = issue(nisa.max8, empty((4, 8)), source).dst
    np.testing.assert_array_equal(got, np.sort(values[:, 1::2], axis=1)[:, :-9:-1])


# --- nc_find_index8 --------------------------------------------------------------------------------------------------


def paired(row: Any, wanted: Any, slots: Any) -> list[int]:
    """Stream a row past 8 slots: each element fills the first free slot of its value, in the order of ``slots``."""
    places = [-1] * 8
    for position, value in enumerate(row):
        for slot in slots:
            if places[slot] < 0 and value == wanted[slot]:
                places[slot] = position
                break
    return places


def find(values: Any, wanted: Any, dtype: Any = nl.uint32, **kwargs: Any) -> np.ndarray:
    """What nisa.nc_find_index8 finds."""
    return issue(nisa.nc_find_index8, empty((len(wanted), 8), dtype), tile(values), tile(wanted), **kwargs).dst


@given(rows, st.data())
def test_find_gives_equal_values_ascending_positions(values: np.ndarray, data: st.DataObject) -> None:
    """The first occurrence, and for equal values the next ones; all ones for what is not there, as NaN never is."""
    wanted = np.array([data.draw(eights) for _ in values], np.float32)
    expected = [paired(row, each, range(8)) for row, each in zip(values, wanted, strict=True)]
    np.testing.assert_array_equal(find(values, wanted), np.array(expected).astype(np.uint32))


def test_find_tells_what_is_not_there_by_all_ones() -> None:
    """In the destination's own width."""
    values = np.arange(16, dtype=np.float32).reshape(1, 16)
    wanted = np.array([[5, 99, NAN, 5, 0, 15, -1, 2]], np.float32)
    for dtype, ones in ((nl.uint32, 0xFFFFFFFF), (nl.uint16, 0xFFFF)):
        assert find(values, wanted, dtype).tolist() == [[5, ones, ones, ones, 0, 15, ones, 2]]


def test_find_takes_either_zero_for_the_other() -> None:
    """Equality is that of float32."""
    values = np.array([[1, -0.0, 2, 3, 4, 5, 6, 7]], np.float32)
    assert find(values, np.zeros((1, 8), np.float32))[0, 0] == 1


@pytest.mark.parametrize("dtype", SEARCHABLE, ids=str)
def test_find_gets_back_what_max8_found(dtype: Any) -> None:
    """The two together are the top 8 of a row with their distinct positions."""
    values = sample((16, 50), dtype)
    top = max8(values, dtype=dtype) if dtype != nl.tfloat32 else max8(values)
    positions = find(values, top).astype(np.int64)
    np.testing.assert_array_equal(
        np.take_along_axis(values, positions, axis=1).astype(np.float64), top.astype(np.float64)
    )
    assert all(len(set(row)) == 8 for row in positions.tolist())


def test_find_looks_for_values_in_three_dimensions() -> None:
    """The free dimensions of both inputs are flattened."""
    values = np.random.default_rng(1).permutation(24).astype(np.float32).reshape(1, 4, 6)
    wanted = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
    got = issue(nisa.nc_find_index8, empty((1, 8), nl.uint32), tile(values), tile(wanted, "psum")).dst
    assert values.reshape(-1)[got[0].astype(int)].tolist() == list(range(8))


# --- nc_match_replace8 -----------------------------------------------------------------------------------------------


def replace(values: Any, wanted: Any, imm: float, *, indices: Any = nl.uint32, in_place: bool = False) -> Issued:
    """What nisa.nc_match_replace8 leaves."""
    data = tile(values)
    dst = data if in_place else empty(data.shape, data.dtype)
    places = None if indices is None else empty((data.shape[0], 8), indices)
    return issue(nisa.nc_match_replace8, dst=dst, data=data, vals=tile(wanted), imm=imm, dst_idx=places)


@given(rows, st.data(), st.sampled_from([-INF, 0.0, 2.0, 7.5]), st.booleans())
def test_replace_gives_equal_values_descending_positions(
    values: np.ndarray, data: st.DataObject, imm: float, in_place: bool
) -> None:
    """The last column takes the first occurrence; what it replaces is not found again, whatever ``imm`` is."""
    wanted = np.array([data.draw(eights) for _ in values], np.float32)
    places = np.array([paired(row, each, range(7, -1, -1)) for row, each in zip(values, wanted, strict=True)])
    expected = values.copy()
    for row, each in zip(expected, places, strict=True):
        row[each[each >= 0]] = imm
    issued = replace(values, wanted, imm, in_place=in_place)
    np.testing.assert_array_equal(issued.dst, expected)
    np.testing.assert_array_equal(issued.views["dst_idx"], places.astype(np.uint32))


def test_replace_as_the_docstring_shows_it() -> None:
    """Seven equal values and seven matches."""
    values = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    wanted = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    issued = replace(values, wanted, -1.0)
    assert issued.views["dst_idx"].tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]
    assert issued.dst.tolist() == [[1, 2, -1, 4, -1, -1, -1, -1, -1, -1, -1]]


def test_replace_without_indices() -> None:
    """``dst_idx`` may be left out."""
    values = np.arange(10, dtype=np.float32).reshape(1, 10)
    assert replace(values, values[:, :8], 0.5, indices=None).dst.tolist() == [[0.5] * 8 + [8, 9]]


@pytest.mark.parametrize(("dtype", "ones"), [(nl.uint16, 0xFFFF), (nl.uint32, 0xFFFFFFFF)])
def test_replace_marks_what_it_did_not_find(dtype: Any, ones: int) -> None:
    """Nothing is replaced for it, and its index is all ones."""
    values = np.array([[1, 2, 3]], np.float32)
    issued = replace(values, np.array([[2, 9, NAN, 2, 9, 9, 9, 9]], np.float32), 0.0, indices=dtype)
    assert issued.views["dst_idx"].tolist() == [[ones, ones, ones, 1, ones, ones, ones, ones]]
    assert issued.dst.tolist() == [[1, 0, 3]]


def test_replace_casts_to_the_destination() -> None:
    """Data and immediate reach another dtype through float32."""
    data = tile(np.array([[1, 2, 3, 300]], np.int32))
    wanted = tile(np.array([[1, 2, 9, 9, 9, 9, 9, 9]], np.int32))
    issued = issue(nisa.nc_match_replace8, empty((1, 4), nl.uint8), data, wanted, -7.5)
    assert issued.dst.tolist() == [[0, 0, 3, 255]]


@given(arrays.arrays(np.float32, (3, 32), elements=st.sampled_from([-1.5, 0, 0.25, 1, 3])))
def test_rounds_of_max8_and_replace_sort_a_row(values: np.ndarray) -> None:
    """As kernels do it, in place with -inf: all values in descending order, and each position once."""
    rest, sorted_values, positions = values, [], []
    for _ in range(4):
        top = max8(rest)
        issued = replace(rest, top, -INF, in_place=True)
        rest = issued.dst
        sorted_values.append(top)
        positions.append(issued.views["dst_idx"])
    np.testing.assert_array_equal(np.hstack(sorted_values), np.sort(values, axis=1)[:, ::-1])
    assert all(sorted(row) == list(range(32)) for row in np.hstack(positions).tolist())


# --- what is refused -------------------------------------------------------------------------------------------------

f32 = nl.float32
bf16 = nl.bfloat16


def ones(*shape: int, dtype: Any = f32, memory: str = "sbuf") -> Any:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


MAX8: dict[str, Any] = {
    "too few elements": ("NK107", empty((4, 8)), ones(4, 7)),
    "too many elements": ("NK107", empty((4, 8)), ones(4, 16385)),
    "six dimensions": ("NK110", empty((4, 8)), ones(4, 2, 2, 2, 1, 1)),
    "dst of four dimensions": ("NK110", empty((4, 1, 1, 8)), ones(4, 8)),
    "dst of nine elements": ("NK109", empty((4, 9)), ones(4, 16)),
    "other partitions": ("NK102", empty((5, 8)), ones(4, 16)),
    "source in HBM": ("NK201", empty((4, 8)), ones(4, 16, memory="shared_hbm")),
    "destination in HBM": ("NK201", empty((4, 8), memory="shared_hbm"), ones(4, 16)),
    "packed": ("NK301", empty((4, 8)), tile(np.zeros((4, 16), nl.float8_e4m3fn_x4.dtype), dtype=nl.float8_e4m3fn_x4)),
    "129 partitions": ("NK101", empty((129, 8)), ones(129, 16)),
}
FIND: dict[str, Any] = {
    "too few elements": ("NK107", empty((4, 8), nl.uint32), ones(4, 7), ones(4, 8)),
    "too many elements": ("NK107", empty((4, 8), nl.uint32), ones(4, 16385), ones(4, 8)),
    "data of four dimensions": ("NK110", empty((4, 8), nl.uint32), ones(4, 2, 2, 2), ones(4, 8)),
    "vals of four dimensions": ("NK110", empty((4, 8), nl.uint32), ones(4, 8), ones(4, 2, 2, 2)),
    "nine values": ("NK109", empty((4, 8), nl.uint32), ones(4, 8), ones(4, 9)),
    "dst of nine elements": ("NK109", empty((4, 9), nl.uint32), ones(4, 8), ones(4, 8)),
    "dst of three dimensions": ("NK110", empty((4, 2, 4), nl.uint32), ones(4, 8), ones(4, 8)),
    "signed dst": ("NK301", empty((4, 8), nl.int32), ones(4, 8), ones(4, 8)),
    "float dst": ("NK301", empty((4, 8)), ones(4, 8), ones(4, 8)),
    "one row of values": ("NK111", empty((4, 8), nl.uint32), ones(4, 8), ones(1, 8)),
    "other partitions of vals": ("NK102", empty((4, 8), nl.uint32), ones(4, 8), ones(3, 8)),
    "other partitions of dst": ("NK102", empty((3, 8), nl.uint32), ones(4, 8), ones(4, 8)),
    "data in HBM": ("NK201", empty((4, 8), nl.uint32), ones(4, 8, memory="private_hbm"), ones(4, 8)),
}
REPLACE: dict[str, Any] = {
    "too many elements": ("NK107", empty((4, 16385)), ones(4, 16385), ones(4, 8), 0.0),
    "seven values": ("NK109", empty((4, 8)), ones(4, 8), ones(4, 7), 0.0),
    "vals of four dimensions": ("NK110", empty((4, 8)), ones(4, 8), ones(4, 2, 2, 2), 0.0),
    "data of six dimensions": ("NK110", empty((4, 8)), ones(4, 2, 2, 2, 1, 1), ones(4, 8), 0.0),
    "shorter dst": ("NK109", empty((4, 7)), ones(4, 8), ones(4, 8), 0.0),
    "other partitions of dst": ("NK102", empty((5, 8)), ones(4, 8), ones(4, 8), 0.0),
    "other partitions of vals": ("NK102", empty((4, 8)), ones(4, 8), ones(5, 8), 0.0),
    "other partitions of dst_idx": ("NK102", empty((4, 8)), ones(4, 8), ones(4, 8), 0.0, empty((5, 8), nl.uint32)),
    "seven indices": ("NK109", empty((4, 8)), ones(4, 8), ones(4, 8), 0.0, empty((4, 7), nl.uint32)),
    "float indices": ("NK301", empty((4, 8)), ones(4, 8), ones(4, 8), 0.0, empty((4, 8))),
    "dst_idx in HBM": ("NK201", empty((4, 8)), ones(4, 8), ones(4, 8), 0.0, empty((4, 8), nl.uint32, "shared_hbm")),
    "a tensor for imm": ("NK609", empty((4, 8)), ones(4, 8), ones(4, 8), ones(4, 1)),
    "no imm": ("NK609", empty((4, 8)), ones(4, 8), ones(4, 8), None),
}


def _each(table: dict[str, Any], instruction: Any) -> list[Any]:
    return [
        pytest.param(instruction, *case[:1], case[1:], id=f"{instruction.__name__}-{what}")
        for what, case in table.items()
    ]


@pytest.mark.parametrize(
    ("instruction", "rule", "args"),
    [*_each(MAX8, nisa.max8), *_each(FIND, nisa.nc_find_index8), *_each(REPLACE, nisa.nc_match_replace8)],
)
def test_what_the_docstring_does_not_allow_is_refused(instruction: Any, rule: str, args: tuple[Any, ...]) -> None:
    """One finding a cause, by the most specific rule, that begins with the instruction's name."""
    finding = refusal(instruction, *args)
    assert finding.rule == rule
    assert instruction.__name__ in finding.message


# --- the call, the record --------------------------------------------------------------------------------------------

SIGNATURES = {
    nisa.max8: "(dst, src, name=None)",
    nisa.nc_find_index8: "(dst, data, vals, name=None)",
    nisa.nc_match_replace8: "(dst, data, vals, imm, dst_idx=None, name=None)",
}


@pytest.mark.parametrize(("instruction", "signature"), SIGNATURES.items(), ids=lambda value: getattr(value, "name", ""))
def test_the_signature_is_the_documented_one(instruction: Any, signature: str) -> None:
    """Names, order and defaults of NKI 0.6."""
    assert str(inspect.signature(instruction)) == signature


@pytest.mark.parametrize(
    ("instruction", "args", "engine", "cycles"),
    [
        (nisa.max8, (empty((4, 8)), ones(4, 20)), "vector", 20),
        (nisa.nc_find_index8, (empty((4, 8), nl.uint32), ones(4, 200), ones(4, 8)), "vector", 200),
        (nisa.nc_match_replace8, (empty((4, 20)), ones(4, 20), ones(4, 8), 0.0), "vector", 64),
        (nisa.nc_match_replace8, (empty((4, 200)), ones(4, 200), ones(4, 8), 0.0), "vector", 200),
    ],
)
def test_engine_and_cost(instruction: Any, args: tuple[Any, ...], engine: str, cycles: float) -> None:
    """As the docstrings of SDK 2.26 say."""
    issued = issue(instruction, *args).instruction
    assert (issued.engine, issued.cycles) == (engine, cycles)
