"""nc_stream_shuffle against a loop over partitions."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.bits import DTYPES, bits, same_bits
from tests.isa.issued import empty, issue, placed, refusal, tile
from tests.isa.oracles import sample, words

ROTATED = [(i - 1) % 32 for i in range(32)]
masks = st.lists(st.one_of(st.integers(0, 31), st.just(255)), min_size=32, max_size=32)


def shuffled(before: np.ndarray, source: np.ndarray, mask: list[int]) -> np.ndarray:
    """The definition, partition by partition."""
    result = before.copy()
    for partition in range(len(before)):
        entry = mask[partition % 32]
        if entry != 255:
            result[partition] = source[partition // 32 * 32 + entry]
    return result


@given(masks, st.sampled_from([32, 64, 96, 128]), st.booleans())
def test_shuffle_is_its_definition(mask: list[int], partitions: int, in_place: bool) -> None:
    """In every quadrant the same; 255 leaves a partition as it was; in place too."""
    source, before = words((partitions, 3), nl.int32, 1), words((partitions, 3), nl.int32, 2)
    if in_place:
        data = tile(source)
        got, before = issue(nisa.nc_stream_shuffle, data, data, mask).dst, source
    else:
        got = issue(nisa.nc_stream_shuffle, tile(before), tile(source), mask).dst
    np.testing.assert_array_equal(got, shuffled(before, source, mask))


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_shuffle_moves_bits(dtype: Any, memory: str) -> None:
    """In both memories on chip, whatever the dtype."""
    source = bits((64, 5), dtype)
    issued = issue(nisa.nc_stream_shuffle, empty((64, 5), dtype, memory), tile(source, memory, dtype), ROTATED)
    same_bits(issued.dst, source[[i // 32 * 32 + ROTATED[i % 32] for i in range(64)]])


def test_shuffle_broadcasts_one_partition() -> None:
    """Source and destination may have different numbers of partitions, and different quadrants."""
    row = sample((1, 6))
    part = empty((128, 6), view=lambda tensor: tensor[96:116, :])
    np.testing.assert_array_equal(
        issue(nisa.nc_stream_shuffle, part, tile(row), [0] * 32).dst, np.repeat(row, 20, axis=0)
    )


def test_shuffle_within_one_tile() -> None:
    """Source and destination may overlap: the first row to all of its quadrant."""
    values = sample((32, 4))
    whole = tile(values)
    first = whole.seen(lambda tensor: tensor[0:1, :])
    np.testing.assert_array_equal(
        issue(nisa.nc_stream_shuffle, whole, first, (0,) * 32).dst, np.repeat(values[:1], 32, 0)
    )


def test_shuffle_to_another_shape_of_as_many_elements() -> None:
    """Only the number of elements per partition counts."""
    source = sample((32, 2, 3))
    issued = issue(nisa.nc_stream_shuffle, empty((32, 6)), tile(source), ROTATED)
    np.testing.assert_array_equal(issued.dst, source.reshape(32, 6)[ROTATED])


def test_shuffle_reads_and_writes_only_what_the_mask_names() -> None:
    """Of a source of which partition 16 alone was written, to partition 0; the others of both stay unwritten."""

    def body() -> None:
        tensor = placed(empty((32, 2)))
        nisa.memset(dst=tensor[0:1, :], value=1.0)
        nisa.dma_copy(dst=tensor[16:17, :], src=tensor[0:1, :])
        result = placed(empty((32, 2)))
        nisa.nc_stream_shuffle(dst=result, src=tensor, shuffle_mask=[16] + [255] * 31)
        unwritten = result.storage.unwritten(result.layout, result.byte_offset)
        assert not unwritten[0].any()
        assert unwritten[1:].all()
        nisa.nc_stream_shuffle(dst=result, src=tensor, shuffle_mask=[17] + [255] * 31)
        assert result.storage.unwritten(result.layout, result.byte_offset).all()

    assert nkitools.simulate(body, rules="report").findings == []


def test_shuffle_reads_no_partition_that_was_not_passed() -> None:
    """The mask names partition 1 of a source of one, or the second quadrant of a source of one."""
    row = tile(np.ones((1, 4), np.float32))
    finding = refusal(nisa.nc_stream_shuffle, empty((32, 4)), row, [0, 1] + [0] * 30)
    assert finding.rule == "NK402"
    assert "partition 1 of `dst` is to come from partition 1 of `src` (`shuffle_mask[1]`=1" in finding.message
    finding = refusal(nisa.nc_stream_shuffle, empty((64, 4)), row, [0] * 32)
    assert "partition 32 of `dst` is to come from partition 32 of `src`" in finding.message
    assert issue(nisa.nc_stream_shuffle, empty((64, 4)), row, [255] * 32).rules == []


@pytest.mark.parametrize(
    ("count", "source_at", "allowed"),
    [
        (32, 0, {0, 32, 64, 96}),
        (32, 64, {0, 32, 64, 96}),
        (64, 0, {0, 64}),
        (33, 64, {0, 64}),
        (65, 0, {0}),
        (128, 0, {0}),
    ],
)
def test_shuffle_begins_where_the_taller_tile_allows(count: int, source_at: int, allowed: set[int]) -> None:
    """The destination has one partition and begins anywhere; the source has ``count``, and they go by the larger."""
    mask = [0] + [255] * 31
    source = tile(np.ones((128, 4), np.float32), view=lambda tensor: tensor[source_at : source_at + count, :])
    for first in range(0, 128, 16):
        dst = empty((128, 4), view=lambda tensor, first=first: tensor[first : first + 1, :])
        if first in allowed:
            assert issue(nisa.nc_stream_shuffle, dst, source, mask).rules == []
        else:
            finding = refusal(nisa.nc_stream_shuffle, dst, source, mask)
            assert (finding.rule, f"begins at partition {first};" in finding.message) == ("NK108", True)


# --- what is refused -------------------------------------------------------------------------------------------------


def ones(*shape: int, dtype: Any = nl.float32, memory: str = "sbuf") -> Any:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


SHUFFLE: dict[str, Any] = {
    "31 entries": ("NK609", empty((32, 4)), ones(32, 4), [0] * 31),
    "an entry of 32": ("NK609", empty((32, 4)), ones(32, 4), [0] * 31 + [32]),
    "an entry of 254": ("NK609", empty((32, 4)), ones(32, 4), [254] + [0] * 31),
    "an entry of -1": ("NK609", empty((32, 4)), ones(32, 4), [-1] + [0] * 31),
    "an entry of 1.0": ("NK609", empty((32, 4)), ones(32, 4), [1.0] + [0] * 31),
    "an entry of True": ("NK609", empty((32, 4)), ones(32, 4), [True] + [0] * 31),
    "no list": ("NK609", empty((32, 4)), ones(32, 4), 0),
    "another dtype": ("NK301", empty((32, 4), nl.bfloat16), ones(32, 4), ROTATED),
    "another size": ("NK109", empty((32, 5)), ones(32, 4), ROTATED),
    "source in HBM": ("NK201", empty((32, 4)), ones(32, 4, memory="shared_hbm"), ROTATED),
    "destination in HBM": ("NK201", empty((32, 4), memory="shared_hbm"), ones(32, 4), ROTATED),
    "160 partitions": ("NK101", empty((160, 4)), ones(160, 4), ROTATED),
    "six dimensions": ("NK110", empty((32, 4)), ones(32, 2, 2, 1, 1, 1), ROTATED),
}


@pytest.mark.parametrize(("rule", "args"), [pytest.param(case[0], case[1:], id=what) for what, case in SHUFFLE.items()])
def test_what_the_docstring_does_not_allow_is_refused(rule: str, args: tuple[Any, ...]) -> None:
    """One finding a cause, by the most specific rule, that begins with the instruction's name."""
    finding = refusal(nisa.nc_stream_shuffle, *args)
    assert finding.rule == rule
    assert "nc_stream_shuffle" in finding.message


# --- the call, the record --------------------------------------------------------------------------------------------


def test_the_signature_is_the_documented_one() -> None:
    """Names, order and defaults of NKI 0.6."""
    assert str(inspect.signature(nisa.nc_stream_shuffle)) == "(dst, src, shuffle_mask, name=None)"


@pytest.mark.parametrize(("size", "cycles"), [(4, 64), (400, 400)])
def test_engine_and_cost(size: int, cycles: float) -> None:
    """As the docstring of SDK 2.26 says."""
    issued = issue(nisa.nc_stream_shuffle, empty((32, size)), ones(32, size), ROTATED).instruction
    assert (issued.engine, issued.cycles) == ("vector", cycles)
