"""What nisa.rng, dropout, rand2 and the instructions on their seeds and states do not take, and their call form."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, issue, refusal, tile
from tests.isa.test_docstrings import named_rules

U32 = nl.uint32
VECTOR, GPSIMD = nisa.engine.vector, nisa.engine.gpsimd


# --- what is refused -------------------------------------------------------------------------------------------------


def ones(*shape: int, dtype: Any = nl.float32, memory: str = "sbuf") -> Tile:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


def state(*shape: int, dtype: Any = U32, memory: str = "sbuf") -> Tile:
    """Words of a state."""
    return ones(*shape, dtype=dtype, memory=memory)


Case = tuple[str, Any, tuple[Any, ...], str]
X, OUT = ones(8, 16), empty((8, 16))
REFUSED: dict[str, Case] = {
    "rng of floats": ("NK301", nisa.rng, (OUT,), "trn2"),
    "rng into HBM": ("NK201", nisa.rng, (empty((8, 16), U32, "shared_hbm"),), "trn2"),
    "rng on the Scalar Engine": ("NK206", nisa.rng, (empty((8, 16), U32), nisa.engine.scalar), "trn2"),
    "rng of GpSimd into PSUM": ("NK206", nisa.rng, (empty((8, 16), U32, "psum"), GPSIMD), "trn2"),
    "rng of trn1's GpSimd": ("NK606", nisa.rng, (empty((8, 16), U32), GPSIMD), "trn1"),
    "rng of 200 partitions": ("NK101", nisa.rng, (empty((200, 16), U32),), "trn2"),
    "dropout into another dtype": ("NK301", nisa.dropout, (empty((8, 16), nl.bfloat16), X, 0.5), "trn2"),
    "dropout into another shape": ("NK109", nisa.dropout, (empty((8, 17)), X, 0.5), "trn2"),
    "dropout into other partitions": ("NK102", nisa.dropout, (empty((9, 16)), X, 0.5), "trn2"),
    "dropout of HBM": ("NK201", nisa.dropout, (OUT, ones(8, 16, memory="shared_hbm"), 0.5), "trn2"),
    "dropout of packed": (
        "NK301",
        nisa.dropout,
        (
            empty((8, 16), nl.float8_e4m3fn_x4),
            Tile((8, 16), np.zeros((8, 16), nl.float8_e4m3fn_x4.dtype), nl.float8_e4m3fn_x4),
            0.5,
        ),
        "trn2",
    ),
    "dropout by a row of probabilities": ("NK109", nisa.dropout, (OUT, X, ones(8, 2)), "trn2"),
    "dropout by one partition": ("NK111", nisa.dropout, (OUT, X, ones(1, 1)), "trn2"),
    "dropout by integers": ("NK301", nisa.dropout, (OUT, X, ones(8, 1, dtype=nl.int32)), "trn2"),
    "dropout of integers by bfloat16": (
        "NK301",
        nisa.dropout,
        (empty((8, 16), nl.int32), ones(8, 16, dtype=nl.int32), ones(8, 1, dtype=nl.bfloat16)),
        "trn2",
    ),
    "probability -0.1": ("NK609", nisa.dropout, (OUT, X, -0.1), "trn2"),
    "probability NaN": ("NK609", nisa.dropout, (OUT, X, math.nan), "trn2"),
    "a tile with a probability of -2": ("NK609", nisa.dropout, (OUT, X, tile(np.full((8, 1), -2, np.float32))), "trn2"),
    "rand2 of trn2": ("NK606", nisa.rand2, (OUT, 0.0, 1.0), "trn2"),
    "rand2 of float8_e4m3fn": ("NK301", nisa.rand2, (empty((8, 16), nl.float8_e4m3fn), 0.0, 1.0), "trn3"),
    "rand2 into HBM": ("NK201", nisa.rand2, (empty((8, 16), memory="shared_hbm"), 0.0, 1.0), "trn3"),
    "rand2 with equal bounds": ("NK609", nisa.rand2, (OUT, 1.0, 1.0), "trn3"),
    "rand2 with bounds in bfloat16": ("NK301", nisa.rand2, (OUT, ones(8, 1, dtype=nl.bfloat16), 2.0), "trn3"),
    "rand2 with one bound wrong": ("NK609", nisa.rand2, (OUT, ones(8, 1), ones(8, 1)), "trn3"),
    "rand2 with other partitions": ("NK102", nisa.rand2, (OUT, ones(4, 1), 2.0), "trn3"),
    "two seeds": ("NK109", nisa.set_rng_seed, (state(1, 2),), "trn2"),
    "a seed for each partition": ("NK109", nisa.set_rng_seed, (state(2, 1),), "trn2"),
    "a seed of 16 bits": ("NK301", nisa.set_rng_seed, (state(1, 1, dtype=nl.uint16),), "trn2"),
    "a seed in HBM": ("NK201", nisa.set_rng_seed, (state(1, 1, memory="shared_hbm"),), "trn2"),
    "an unwritten seed": ("NK401", nisa.set_rng_seed, (empty((1, 1), U32),), "trn2"),
    "states on trn1": ("NK606", nisa.rand_set_state, (state(8, 6),), "trn1"),
    "states of trn2's Vector Engine": ("NK606", nisa.rand_set_state, (state(8, 24), VECTOR), "trn2"),
    "states of no engine": ("NK206", nisa.rand_set_state, (state(8, 6), nisa.engine.unknown), "trn2"),
    "24 words for GpSimd": ("NK109", nisa.rand_set_state, (state(8, 24),), "trn3"),
    "6 words for Vector": ("NK109", nisa.rand_set_state, (state(8, 6), VECTOR), "trn3"),
    "words of three dimensions": ("NK110", nisa.rand_set_state, (state(8, 4, 6), VECTOR), "trn3"),
    "signed words": ("NK301", nisa.rand_set_state, (state(8, 6, dtype=nl.int32),), "trn2"),
    "words in PSUM": ("NK201", nisa.rand_set_state, (state(8, 24, memory="psum"), VECTOR), "trn3"),
    "stored to trn2's PSUM": ("NK201", nisa.rand_get_state, (empty((8, 6), U32, "psum"),), "trn2"),
    "stored to PSUM by GpSimd": ("NK206", nisa.rand_get_state, (empty((8, 6), U32, "psum"),), "trn3"),
    "stored to signed words": ("NK301", nisa.rand_get_state, (empty((8, 6), nl.int32),), "trn2"),
    "stored to too few": ("NK109", nisa.rand_get_state, (empty((8, 5), U32),), "trn2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_docstring_does_not_allow_is_refused(name: str) -> None:
    """One finding a cause, by the most specific rule."""
    rule, instruction, args, chip = REFUSED[name]
    finding = refusal(instruction, *args, chip=chip)
    assert finding.rule == rule
    assert rule in named_rules(instruction.__doc__) | {"NK401"}
    assert instruction.__name__ in finding.message


def test_the_vector_engine_s_states_go_to_psum_from_trn3_on() -> None:
    """SBUF/PSUM (NeuronCore-v4+)."""
    assert issue(nisa.rand_get_state, empty((8, 24), U32, "psum"), VECTOR, chip="trn3").rules == []


# --- the call, the record --------------------------------------------------------------------------------------------

SIGNATURES = {
    "rng": "(dst, engine=vector, name=None)",
    "dropout": "(dst, data, prob, name=None)",
    "rand2": "(dst, min, max, name=None)",
    "set_rng_seed": "(src_seeds, name=None)",
    "rand_set_state": "(src_seeds, engine=gpsimd, name=None)",
    "rand_get_state": "(dst, engine=gpsimd, name=None)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signature_is_the_documented_one(name: str) -> None:
    """Names, order and defaults of NKI 0.6."""
    signature = str(inspect.signature(getattr(nisa, name)))
    for engine in (VECTOR, GPSIMD):
        signature = signature.replace(repr(engine), engine.name)
    assert signature == SIGNATURES[name]


COSTS: list[tuple[Callable[..., Any], tuple[Any, ...], str, float]] = [
    (nisa.rng, (empty((8, 500), U32),), "vector", 500),
    (nisa.rng, (empty((8, 500), U32), GPSIMD), "gpsimd", 650),
    (nisa.dropout, (empty((8, 500)), ones(8, 500), 0.5), "vector", 500),
    (nisa.dropout, (OUT, X, 0.5), "vector", 64),
    (nisa.rand2, (empty((8, 500)), 0.0, 1.0), "vector", 125),
]


@pytest.mark.parametrize(("instruction", "args", "engine", "cycles"), COSTS)
def test_engine_and_cost(instruction: Any, args: tuple[Any, ...], engine: str, cycles: float) -> None:
    """max(MIN_II, N) (dropout, SDK 2.26); four numbers a cycle of rand2 (trainium3_arch); the rest is inferred."""
    issued = issue(instruction, *args, chip="trn3").instruction
    assert (issued.engine, issued.cycles) == (engine, cycles)


def test_there_is_one_silicon_revision() -> None:
    """get_nc_sub_version: 0 is the first and the default."""
    assert nisa.get_nc_sub_version() == 0
