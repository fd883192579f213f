"""Copies of results that nothing else reads take no time of their own; those of results that are used twice do."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.facts.generations import GENERATIONS
from nkitools.record.run import Run
from nkitools.timing.durations import ENGINES, LEFT_OUT
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import timeline_of

X = np.arange(128 * 32, dtype=np.float32).reshape(128, 32)


@nki.jit
def narrowed(x: Any, of_load: bool = False, also_sums: bool = False) -> Any:
    """Return x or its exponential in bfloat16, by a copy."""
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    wide = nl.load(x)
    if not of_load:
        wide = nisa.activation(nl.exp, wide)
    narrow = nisa.tensor_copy(wide, dtype=nl.bfloat16)
    if also_sums:
        narrow = nl.add(narrow, nisa.tensor_reduce(np.add, wide, axis=(1,), keepdims=True), dtype=nl.bfloat16)
    nl.store(out, narrow)
    return out


def left_out(run: Run, name: str) -> list[bool]:
    """Return of each instruction of a name whether it takes no time."""
    chip = GENERATIONS["trn1"]
    engines = timeline_of(run, chip, knobs_of(chip)).work.engines % len(ENGINES)
    return [bool(engines[at] == LEFT_OUT) for at, one in enumerate(run.instructions) if one.name == name]


@pytest.mark.parametrize(
    ("options", "expected"), [({}, [True]), ({"also_sums": True}, [False]), ({"of_load": True}, [False])]
)
def test_a_copy_of_a_result_that_nothing_else_reads_takes_no_time(
    options: dict[str, bool], expected: list[bool]
) -> None:
    """The engine writes the copy's dtype itself; a transfer does not."""
    run = nkitools.simulate(narrowed, X / 4096, chip="trn1", **options)
    assert left_out(run, "tensor_copy") == expected


def test_the_copies_of_a_modern_kernel_take_their_time() -> None:
    """Its instructions are the chip's: no compiler changes them."""
    import nki as modern
    import nki.isa as isa
    import nki.language as language

    @modern.jit
    def copied(x: Any) -> Any:
        tile, wide, narrow = (
            language.ndarray(x.shape, dtype=dtype, buffer=language.sbuf)
            for dtype in (x.dtype, language.float32, language.bfloat16)
        )
        out = language.ndarray(x.shape, dtype=language.bfloat16, buffer=language.shared_hbm)
        isa.dma_copy(dst=tile, src=x)
        isa.activation(dst=wide, op=language.exp, data=tile)
        isa.tensor_copy(dst=narrow, src=wide)
        isa.dma_copy(dst=out, src=narrow)
        return out

    assert left_out(nkitools.simulate(copied, X / 4096, chip="trn1"), "tensor_copy") == [False]
