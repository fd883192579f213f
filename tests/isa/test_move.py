"""nisa.dma_copy, tensor_copy and memset: what arrives, to the bit, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, issue, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample, words

PACKED = (nl.float8_e5m2_x4, nl.float8_e4m3fn_x4, nl.float4_e2m1fn_x4)
EVERY = (*FLOATS, nl.float8_e8m0fnu, *INTEGERS, nl.bool_, *PACKED)
COPIES = pytest.mark.parametrize("copy", [nisa.dma_copy, nisa.tensor_copy], ids=["dma_copy", "tensor_copy"])


def noise(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Random bits as elements of ``dtype`` (0 and 1 of a bool); NaN among them."""
    if dtype is nl.bool_:
        return np.random.default_rng(0).random(shape) < 0.5
    raw = np.random.default_rng(0).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return raw.view(dtype.dtype)[..., 0]


def bits(values: np.ndarray) -> np.ndarray:
    """The bytes of each element."""
    return np.ascontiguousarray(values)[..., None].view(np.uint8)


# --- both copies -----------------------------------------------------------------------------------------------------


@COPIES
@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_equal_dtypes_are_copied_to_the_bit(copy: Any, dtype: Any) -> None:
    """NaN payloads, large integers and packed elements included."""
    x = noise((64, 12), dtype)
    np.testing.assert_array_equal(bits(issue(copy, empty(x.shape, dtype), tile(x, dtype=dtype)).dst), bits(x))


@COPIES
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, nl.bool_], ids=str)
@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS], ids=str)
def test_other_dtypes_go_through_float32(copy: Any, source: Any, target: Any) -> None:
    """First to float32, then to the destination's dtype: integers round to even and saturate."""
    if source is nl.bool_:
        x = noise((32, 20), source)
    else:
        x = words((32, 20), source) if source in INTEGERS else sample((32, 20), source, 1, -300, 300)
    if source is target:
        expected = x
    else:
        with np.errstate(over="ignore"):
            expected = held(x.astype(np.float32), target)
    result = issue(copy, empty(x.shape, target), tile(x, dtype=source)).dst
    np.testing.assert_array_equal(float64(result), float64(expected))


@COPIES
@given(st.permutations([2, 3, 4]), st.sampled_from([(24,), (4, 6), (2, 3, 4), (1, 24, 1)]), st.booleans())
def test_other_shapes_keep_the_order_of_the_elements(
    copy: Any, free: list[int], target: tuple[int, ...], convert: bool
) -> None:
    """Equally many elements per partition, also of permuted views and with a conversion."""
    x = sample((16, *free))
    data = tile(x, view=lambda t: t.permute((0, 3, 1, 2)))
    dtype = nl.bfloat16 if convert else nl.float32
    result = issue(copy, empty((16, *target), dtype), data).dst
    np.testing.assert_array_equal(result, held(x.transpose(0, 3, 1, 2).reshape(16, *target), dtype))


@COPIES
def test_views_masks_and_overlap(copy: Any) -> None:
    """A stepped destination, a masked one, and columns moved by one within a tile."""
    x = sample((32, 10), seed=1)
    dst = tile(np.zeros((32, 20), np.float32), view=lambda t: t[:, 1::2])
    storage = issue(copy, dst, tile(x)).storages["dst"]
    np.testing.assert_array_equal(storage[:, 1::2], x)
    assert (storage[:, ::2] == 0).all()
    where = x > 0
    dst = tile(np.full_like(x, 7), view=lambda t: MaskedTensor.of(t, where))
    np.testing.assert_array_equal(issue(copy, dst, tile(x)).storages["dst"], np.where(where, x, 7))
    data = tile(x)
    ahead, behind = data.seen(lambda t: t[:, 1:10]), data.seen(lambda t: t[:, 0:9])
    np.testing.assert_array_equal(issue(copy, ahead, behind, rules="report").dst, x[:, 0:9])


@COPIES
def test_a_copy_onto_itself_changes_nothing(copy: Any) -> None:
    """Kernels use it as a fence."""
    x = tile(sample((8, 8)))
    np.testing.assert_array_equal(issue(copy, x, x).dst, x.values)


# --- dma_copy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", list(itertools.product(["hbm", "shared_hbm", "sbuf"], repeat=2)), ids="-".join)
def test_dma_goes_between_hbm_and_sbuf_in_any_direction(route: tuple[str, str]) -> None:
    """Also within one of them."""
    x = sample((64, 12))
    result = issue(nisa.dma_copy, dst=empty(x.shape, memory=route[1]), src=tile(x, route[0])).dst
    np.testing.assert_array_equal(result, x)


def test_dma_may_move_data_between_partitions() -> None:
    """As long as the number of elements in total is the same: a row of HBM becomes a column, and partitions merge."""
    x = sample((48,))
    np.testing.assert_array_equal(issue(nisa.dma_copy, empty((48, 1)), tile(x, "hbm")).dst[:, 0], x)
    np.testing.assert_array_equal(issue(nisa.dma_copy, empty((4, 12)), tile(x, "hbm")).dst, x.reshape(4, 12))
    row = issue(
        nisa.dma_copy, empty((128, 6)), tile(x[:6].reshape(1, 6), "hbm", view=lambda t: t.broadcast(0, 128))
    ).dst
    np.testing.assert_array_equal(row, np.repeat(x[None, :6], 128, axis=0))


def test_dma_may_begin_at_any_partition() -> None:
    """The rule of start partitions is the engines'."""
    x = sample((128, 4))
    dst, src = empty(x.shape, view=lambda t: t[17:50]), tile(x, view=lambda t: t[3:102:3])
    np.testing.assert_array_equal(issue(nisa.dma_copy, dst, src).dst, x[3:102:3])


def test_every_argument_of_dma_copy() -> None:
    """Who generates descriptors, on which queue, with which priority, changes no value."""
    x = sample((8, 8))
    hwdge = {"dge_mode": nisa.dge_mode.hwdge}
    for chip, keywords in (
        ("trn1", {"dge_mode": nisa.dge_mode.swdge, "oob_mode": nisa.oob_mode.error}),
        ("trn1", {"dge_mode": nisa.dge_mode.none}),
        ("trn1", {"dge_mode": 3}),  # the value of a member, as production kernels pass it
        ("trn2", {**hwdge, "engine": nisa.engine.sync}),
        ("trn2", {**hwdge, "engine": nisa.engine.scalar, "name": "load"}),
        ("trn3", {"priority": 0}),
        ("trn3", {"priority": np.int32(3)}),
    ):
        np.testing.assert_array_equal(issue(nisa.dma_copy, empty((8, 8)), tile(x, "hbm"), **keywords, chip=chip).dst, x)


def test_nothing_is_skipped_where_addresses_are_known() -> None:
    """NK621: dma_compute "ensures oob_mode.skip is used only with indirect indexing", "mirroring" dma_copy."""
    x = sample((8, 8))
    issued = issue(nisa.dma_copy, empty((8, 8)), tile(x, "hbm"), oob_mode=nisa.oob_mode.skip)
    assert [(each.rule, each.severity) for each in issued.findings] == [("NK621", "hint")]
    np.testing.assert_array_equal(issued.dst, x)


X = np.ones((32, 8), np.float32)
DST = empty((32, 8))
TALL = np.ones((256, 2), np.float32)
LONG = np.ones((1, 70000), np.float32)
HWDGE = {"dge_mode": nisa.dge_mode.hwdge}
Refused = tuple[str, str, tuple[Any, ...], dict[str, Any], str]
DMA_REFUSED: dict[str, Refused] = {
    "from PSUM": ("NK201", "`src`", (DST, tile(X, "psum")), {}, "trn2"),
    "to PSUM": ("NK201", "`dst`", (empty((32, 8), memory="psum"), tile(X)), {}, "trn2"),
    "elements": ("NK109", "`dst`", (empty((32, 4)), tile(X, "hbm")), {}, "trn2"),
    "from 256 partitions": ("NK101", "`src`", (empty(TALL.shape, memory="hbm"), tile(TALL)), {}, "trn2"),
    "from a long tile": ("NK107", "`src`", (empty(LONG.shape, memory="hbm"), tile(LONG)), {}, "trn2"),
    "packed into floats": ("NK301", "`src`", (DST, tile(np.zeros((32, 8), PACKED[0].dtype))), {}, "trn2"),
    "floats into packed": ("NK301", "`dst`", (empty((32, 8), PACKED[0]), tile(X)), {}, "trn2"),
    "priority of 4": ("NK609", "`priority`", (DST, tile(X)), {"priority": 4}, "trn3"),
    "priority of truth": ("NK609", "`priority`", (DST, tile(X)), {"priority": True}, "trn3"),
    "priority before v4": ("NK606", "`priority`", (DST, tile(X)), {"priority": 1}, "trn2"),
    "hwdge before v3": ("NK606", "`dge_mode`", (DST, tile(X)), HWDGE, "trn1"),
    "conversion by hwdge": ("NK301", "`dge_mode`", (empty((32, 8), nl.bfloat16), tile(X, "hbm")), HWDGE, "trn2"),
    "mode of no member": ("NK609", "`dge_mode`", (DST, tile(X)), {"dge_mode": 4}, "trn2"),
    "hwdge by value before v3": ("NK606", "`dge_mode`", (DST, tile(X)), {"dge_mode": 2}, "trn1"),
    "mode of text": ("NK609", "`dge_mode`", (DST, tile(X)), {"dge_mode": "hwdge"}, "trn2"),
    "other mode": ("NK609", "`oob_mode`", (DST, tile(X)), {"oob_mode": "skip"}, "trn2"),
    "engine without hwdge": ("NK609", "`engine`", (DST, tile(X)), {"engine": nisa.engine.sync}, "trn2"),
    "other engine": ("NK206", "`engine`", (DST, tile(X)), {**HWDGE, "engine": nisa.engine.vector}, "trn2"),
    "number": ("NK609", "`src`", (DST, 1.0), {}, "trn2"),
}


@pytest.mark.parametrize("case", DMA_REFUSED)
def test_what_dma_copy_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs, chip = DMA_REFUSED[case]
    finding = refusal(nisa.dma_copy, *args, **kwargs, chip=chip)
    assert finding.rule == rule
    assert named in finding.message


def test_a_tile_of_256_partitions_that_is_only_filled_is_refused_in_the_end() -> None:
    """An instruction that reads it would say what is wrong with it; without one, NK101 comes when the run has ended."""
    with pytest.raises(AssertionError, match=r"has 256 partitions; a NeuronCore has 128 \(NK101"):
        issue(nisa.dma_copy, empty(TALL.shape), tile(TALL, "hbm"))


# --- tensor_copy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "engine", "source", "target"),
    [
        *[
            (chip, "vector", *route)
            for chip in ("trn1", "trn2")
            for route in itertools.product(["sbuf", "psum"], repeat=2)
        ],
        ("trn1", "gpsimd", "sbuf", "sbuf"),
        ("trn2", "scalar", "psum", "sbuf"),
        ("trn3", "scalar", "sbuf", "psum"),
    ],
)
def test_every_engine_copies_to_the_bit(chip: str, engine: str, source: str, target: str) -> None:
    """int32 beyond 2**24 too: the Scalar Engine has bit-accurate copies since NeuronCore-v3."""
    x = words((128, 6), nl.int32)
    issued = issue(
        nisa.tensor_copy, empty(x.shape, nl.int32, target), tile(x, source), getattr(nisa.engine, engine), chip=chip
    )
    np.testing.assert_array_equal(issued.dst, x)
    assert issued.instruction.engine == engine


COPY_REFUSED: dict[str, Refused] = {
    "partitions": ("NK102", "`dst`", (empty((16, 8)), tile(X)), {}, "trn2"),
    "elements": ("NK109", "`dst`", (empty((32, 4)), tile(X)), {}, "trn2"),
    "256 partitions": ("NK101", "`src`", (empty(TALL.shape), tile(TALL)), {}, "trn2"),
    "long": ("NK107", "`src`", (empty(LONG.shape), tile(LONG)), {}, "trn2"),
    "start": ("NK108", "`src`", (DST, tile(np.ones((64, 8), np.float32), view=lambda t: t[2:34, :])), {}, "trn2"),
    "HBM": ("NK201", "`src`", (DST, tile(X, "hbm")), {}, "trn2"),
    "to HBM": ("NK201", "`dst`", (empty((32, 8), memory="hbm"), tile(X)), {}, "trn2"),
    "GpSimd in PSUM": ("NK206", "`src`", (DST, tile(X, "psum")), {"engine": nisa.engine.gpsimd}, "trn2"),
    "GpSimd into PSUM": (
        "NK206",
        "`dst`",
        (empty((32, 8), memory="psum"), tile(X)),
        {"engine": nisa.engine.gpsimd},
        "trn2",
    ),
    "Tensor Engine": ("NK206", "`engine`", (DST, tile(X)), {"engine": nisa.engine.tensor}, "trn2"),
    "Scalar Engine of v2": ("NK606", "`engine`", (DST, tile(X)), {"engine": nisa.engine.scalar}, "trn1"),
    "packed": ("NK301", "`src`", (DST, tile(np.zeros((32, 8), PACKED[0].dtype))), {}, "trn2"),
}


@pytest.mark.parametrize("case", COPY_REFUSED)
def test_what_tensor_copy_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs, chip = COPY_REFUSED[case]
    finding = refusal(nisa.tensor_copy, *args, **kwargs, chip=chip)
    assert finding.rule == rule
    assert named in finding.message


# --- memset ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("value", [0, 1, -3, 2.5, 300, np.float32(0.1)], ids=str)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_memset_fills_every_dtype(dtype: Any, value: Any, memory: str) -> None:
    """The number as the dtype holds it; integers hold no fractions (NKI 0.3)."""
    if dtype in INTEGERS and isinstance(value, (float, np.floating)):
        assert refusal(nisa.memset, empty((128, 3), dtype, memory), value).rule == "NK301"
        return
    result = issue(nisa.memset, empty((128, 3), dtype, memory), value).dst
    np.testing.assert_array_equal(result, held(np.full((128, 3), value), dtype))


@pytest.mark.parametrize("dtype", [nl.int32, nl.uint32], ids=str)
def test_memset_of_words_is_exact_and_saturates(dtype: Any) -> None:
    """An integer does not go through float32."""
    limits = np.iinfo(dtype.dtype)
    for value, expected in (
        (limits.max, limits.max),
        (2**24 + 1, 2**24 + 1),
        (limits.min, limits.min),
        (2**80, limits.max),
        (-(2**80), limits.min),
        (np.uint32(2**31 + 5), min(2**31 + 5, limits.max)),
    ):
        assert (issue(nisa.memset, empty((4, 4), dtype), value).dst == expected).all()


def test_memset_of_integers_takes_whole_floats() -> None:
    """0.0 and 3.0 fill integers, with NK621 at each; after an integer, and after each other, fractions are NK301."""
    for value in (0.0, np.float32(3.0), -2.0):
        assert (issue(nisa.memset, empty((4, 4), nl.int32), 7).dst == 7).all()
        issued = issue(nisa.memset, empty((4, 4), nl.int32), value)
        np.testing.assert_array_equal(issued.dst, np.full((4, 4), value, np.int32))
        assert [(each.rule, each.severity) for each in issued.findings] == [("NK621", "hint")]
        assert refusal(nisa.memset, empty((4, 4), nl.int32), value + 0.5).rule == "NK301"
        assert refusal(nisa.memset, empty((4, 4), nl.int32), np.inf).rule == "NK301"


@pytest.mark.parametrize("operand", ["dst", "src"])
def test_a_view_of_no_element_may_be_made_and_is_not_moved(operand: str) -> None:
    """``t[:, nl.ds(2, 0)]`` has the shape (4, 0); a copy of it is NK109, and beyond the end it is NK402 as ever."""
    whole = tile(np.ones((4, 6), np.float32))
    nothing = tile(np.ones((4, 6), np.float32), view=lambda t: t[:, nl.ds(6, 0)])
    operands = {"dst": whole, "src": whole, operand: nothing}
    finding = refusal(nisa.dma_copy, **operands)
    assert finding.rule == "NK109"
    assert f"`{operand}`" in finding.message
    assert "[4, 0]" in finding.message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0])
def test_memset_of_special_floats(value: float) -> None:
    """NaN, infinities and the sign of zero."""
    result = issue(nisa.memset, empty((4, 4)), value).dst
    np.testing.assert_array_equal(result, np.full((4, 4), value, np.float32))
    assert (np.signbit(result) == np.signbit(np.float32(value))).all()


def test_memset_one_after_the_other_takes_each_number_as_it_is() -> None:
    """Both zeros, equal numbers of other types, and one that bfloat16 does not hold, which is reported each time."""
    zero, huge = -0.0, 3.4e38
    for number in (zero, 0.0, 0, zero, zero, np.float32(0), False, 1, True, 1.0, huge, huge, zero):
        issued = issue(nisa.memset, empty((2, 4), nl.bfloat16), number)
        np.testing.assert_array_equal(issued.dst, held(np.full((2, 4), number, np.float32), nl.bfloat16))
        assert (np.signbit(issued.dst) == np.signbit(np.float32(number))).all()
        assert [each.rule for each in issued.findings] == (["NK304"] if number is huge else [])


@pytest.mark.parametrize("dtype", PACKED, ids=str)
def test_memset_of_packed_elements_takes_zero_only(dtype: Any) -> None:
    """ "For x4 packed types, only value=0 is supported", in whichever order the values come."""
    assert (bits(issue(nisa.memset, empty((8, 4), dtype), 0).dst) == 0).all()
    finding = refusal(nisa.memset, empty((8, 4), dtype), 1)
    assert finding.rule == "NK301"
    assert "`value`" in finding.message


def test_memset_of_bool_and_of_views() -> None:
    """Anything but 0 is true; only the view is written; the GpSimd Engine can do it too."""
    assert issue(nisa.memset, empty((4, 4), nl.bool_), 2).dst.all()
    dst = tile(np.zeros((32, 10), np.float32), view=lambda t: t[:, ::3])
    issued = issue(nisa.memset, dst=dst, value=4.0, engine=nisa.engine.gpsimd)
    np.testing.assert_array_equal(issued.storages["dst"], np.tile([4, 0, 0, 4, 0, 0, 4, 0, 0, 4], (32, 1)))
    assert issued.instruction.engine == "gpsimd"


MEMSET_REFUSED: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "256 partitions": ("NK101", "`dst`", (empty(TALL.shape), 0), {}),
    "long": ("NK107", "`dst`", (empty(LONG.shape), 0), {}),
    "long in PSUM": ("NK107", "`dst`", (empty((1, 4097), memory="psum"), 0), {}),
    "start": ("NK108", "`dst`", (empty((128, 2), view=lambda t: t[16:48, :]), 0), {}),
    "start of a half": ("NK108", "`dst`", (empty((128, 2), view=lambda t: t[32:96, :]), 0), {}),
    "every second partition": ("NK108", "`dst`", (empty((128, 2), view=lambda t: t[0:64:2, :]), 0), {}),
    "stepping out": ("NK101", "`dst`", (empty((256, 2), view=lambda t: t[64:256:64, :]), 0), {}),
    "start of most": ("NK108", "`dst`", (empty((128, 2), view=lambda t: t[32:128, :]), 0), {}),
    "HBM": ("NK201", "`dst`", (empty((4, 4), memory="hbm"), 0), {}),
    "GpSimd in PSUM": ("NK206", "`dst`", (empty((4, 4), memory="psum"), 0), {"engine": nisa.engine.gpsimd}),
    "Scalar Engine": ("NK206", "`engine`", (empty((4, 4)), 0), {"engine": nisa.engine.scalar}),
    "tensor": ("NK609", "`value`", (empty((4, 4)), tile(np.ones((4, 1), np.float32))), {}),
    "text": ("NK609", "`value`", (empty((4, 4)), "0"), {}),
    "float into integers": ("NK301", "`value`", (empty((4, 4), nl.int32), 2.5), {}),
}


@pytest.mark.parametrize("case", MEMSET_REFUSED)
def test_what_memset_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = MEMSET_REFUSED[case]
    finding = refusal(nisa.memset, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


@pytest.mark.parametrize(
    ("first", "count"), [(0, 128), (0, 65), (0, 64), (64, 64), (64, 33), (0, 32), (32, 32), (64, 1), (96, 32)]
)
def test_starts_that_the_hardware_allows(first: int, count: int) -> None:
    """0 for more than 64 partitions, 0 or 64 for more than 32, else any multiple of 32."""
    dst = empty((128, 2), view=lambda t: t[first : first + count, :])
    assert issue(nisa.memset, dst, 1.0).rules == []
