"""Where tensors lie in SBUF and PSUM while they are alive."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts.generations import generation_of
from nkitools.record.columns import Columns
from nkitools.report.page.occupancy import Life, lives_of

CHIP = generation_of("trn2")


def lives(kernel: Any, *args: Any, memory: str = "SBUF") -> list[tuple[str, Life]]:
    run = nkitools.simulate(kernel, *args)
    assert run.record is not None
    found = lives_of(run.record, Columns(run.record), CHIP)[memory]
    return [(run.record.name_of(life.storage), life) for life in found]


def meet(first: Life, second: Life) -> bool:
    return (
        first.begin <= second.end
        and second.begin <= first.end
        and first.partition < second.partition + second.partitions
        and second.partition < first.partition + first.partitions
        and first.byte < second.byte + second.nbytes
        and second.byte < first.byte + first.nbytes
    )


def test_a_tensor_is_there_from_its_first_write_to_its_last_read() -> None:
    """Its bytes are free again for what comes after."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        first = nl.ndarray(x.shape, x.dtype)
        second = nl.ndarray(x.shape, x.dtype)
        third = nl.ndarray(x.shape, x.dtype)
        nisa.dma_copy(dst=first, src=x)
        nisa.tensor_copy(dst=second, src=first)
        nisa.tensor_copy(dst=third, src=second)
        nisa.dma_copy(dst=out, src=third)
        return out

    found = lives(kernel, np.ones((128, 4), np.float32))
    assert [(name, life.begin, life.end, life.byte) for name, life in found] == [
        ("first", 0, 1, 0),
        ("second", 1, 2, 16),
        ("third", 2, 3, 0),
    ]


def test_an_address_is_where_the_author_says() -> None:
    """In partitions and bytes."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf, address=(32, 4096))
        nisa.dma_copy(dst=tile, src=x)
        nisa.dma_copy(dst=out, src=tile)
        return out

    ((name, life),) = lives(kernel, np.ones((64, 4), np.float32))
    assert (name, life.partition, life.partitions, life.byte, life.nbytes, life.placed) == (
        "tile",
        32,
        64,
        4096,
        16,
        True,
    )


@given(st.lists(st.tuples(st.integers(1, 128), st.integers(1, 64), st.integers(0, 6)), min_size=1, max_size=12))
def test_no_two_tensors_share_a_byte_while_both_are_alive(tiles: list[tuple[int, int, int]]) -> None:
    """Whatever their partitions, sizes and lives."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((1, 1), nl.float32, buffer=nl.shared_hbm)
        made: list[Any] = []
        for partitions, size, age in tiles:
            tile = nl.ndarray((partitions, size), nl.float32)
            nisa.memset(tile, 1.0)
            made.append(tile)
            old = made[max(0, len(made) - 1 - age)]
            nisa.dma_copy(dst=out, src=old[0:1, 0:1])
        return out

    found = [life for _, life in lives(kernel, np.ones((1, 1), np.float32))]
    assert all(not meet(a, b) for at, a in enumerate(found) for b in found[at + 1 :])
    assert all(life.partition + life.partitions <= 128 for life in found)
