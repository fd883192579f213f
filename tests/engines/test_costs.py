"""What instructions cost: the formulas of the SDK's docstrings (2.20 to 2.26), and what later generations do faster.

``N`` is the number of elements per partition and ``MIN_II`` 64 cycles; DMA is counted in nanoseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, issue, tile

F32, BF16, F16 = nl.float32, nl.bfloat16, nl.float16
SUM = {"reduce_op": nl.add, "reduce_cmd": nisa.reduce_cmd.reset_reduce}


def ones(n: int, dtype: Any = F32, memory: str = "sbuf", partitions: int = 32) -> Tile:
    """A tile of N elements per partition."""
    return tile(np.ones((partitions, n), dtype.dtype), memory)


def to(n: int, dtype: Any = F32, memory: str = "sbuf", partitions: int = 32) -> Tile:
    """A destination of N elements per partition."""
    return empty((partitions, n), dtype, memory)


def strided(n: int, dtype: Any, memory: str = "sbuf") -> Tile:
    """A tile of N elements per partition, of which every second one is taken."""
    return tile(np.ones((32, 2 * n), dtype.dtype), memory, view=lambda t: t[:, ::2])


# formula: (instruction, arguments, keywords, cycles on NeuronCore-v2)
DOCUMENTED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], float]] = {
    "activation: max(MIN_II, N)": (nisa.activation, (to(1000), nl.exp, ones(1000)), {}, 1000),
    "activation: MIN_II": (nisa.activation, (to(10), nl.exp, ones(10)), {}, 64),
    "activation and its registers: max(MIN_II, N) + MIN_II": (
        nisa.activation,
        (to(1000), nl.exp, ones(1000)),
        {**SUM, "reduce_res": to(1)},
        1064,
    ),
    "activation into its registers: max(MIN_II, N)": (nisa.activation, (to(1000), nl.exp, ones(1000)), SUM, 1000),
    "iota: 150 + N": (nisa.iota, (to(100), [[1, 100]]), {}, 250),
    "memset: max(MIN_II, N)": (nisa.memset, (to(1000), 1.0), {}, 1000),
    "memset of zero in 16 bits: max(MIN_II, N/2)": (nisa.memset, (to(1000, BF16), 0), {}, 500),
    "memset on GpSimd": (nisa.memset, (to(1000, BF16), 0, nisa.engine.gpsimd), {}, 1000),
    "reciprocal: max(MIN_II, 8*N)": (nisa.reciprocal, (to(100), ones(100)), {}, 800),
    "tensor_copy: max(MIN_II, N)": (nisa.tensor_copy, (to(1000), ones(1000)), {}, 1000),
    "tensor_copy of 16 bits": (nisa.tensor_copy, (to(1000, BF16), ones(1000, BF16)), {}, 1000),
    "tensor_scalar: max(MIN_II, N)": (nisa.tensor_scalar, (to(1000), ones(1000), nl.add, 1.0), {}, 1000),
    "tensor_scalar, two operators as one": (
        nisa.tensor_scalar,
        (to(1000), ones(1000), nl.add, 1.0, False, nl.multiply, 2.0),
        {},
        1000,
    ),
    "tensor_tensor: max(MIN_II, 2N)": (nisa.tensor_tensor, (to(1000), ones(1000), ones(1000), nl.add), {}, 2000),
    "tensor_tensor, one input in PSUM: max(MIN_II, N)": (
        nisa.tensor_tensor,
        (to(1000), ones(1000, memory="psum"), ones(1000), nl.add),
        {},
        1000,
    ),
    "tensor_tensor of bfloat16: max(MIN_II, N)": (
        nisa.tensor_tensor,
        (to(1000, BF16), ones(1000, BF16), ones(1000, BF16), nl.subtract),
        {},
        1000,
    ),
    "tensor_tensor of bfloat16, another operator": (
        nisa.tensor_tensor,
        (to(1000, BF16), ones(1000, BF16), ones(1000, BF16), nl.maximum),
        {},
        2000,
    ),
    "tensor_tensor of bfloat16 with strides": (
        nisa.tensor_tensor,
        (to(1000, BF16), strided(1000, BF16), ones(1000, BF16), nl.add),
        {},
        2000,
    ),
    "tensor_tensor of float16": (
        nisa.tensor_tensor,
        (to(1000, F16), ones(1000, F16), ones(1000, F16), nl.add),
        {},
        2000,
    ),
    "tensor_reduce: N": (nisa.tensor_reduce, (to(1), nl.add, ones(1000), 1), {}, 1000),
    "tensor_reduce of bfloat16, add: N/2": (nisa.tensor_reduce, (to(1, BF16), nl.add, ones(1000, BF16), 1), {}, 500),
    "tensor_reduce of bfloat16, multiply: N": (
        nisa.tensor_reduce,
        (to(1, BF16), nl.multiply, ones(1000, BF16), 1),
        {},
        1000,
    ),
    "tensor_reduce of bfloat16 into float32: N": (
        nisa.tensor_reduce,
        (to(1), nl.maximum, ones(1000, BF16), 1),
        {},
        1000,
    ),
    "nc_matmul: max(min(64, M), N)": (
        nisa.nc_matmul,
        (to(500, memory="psum", partitions=128), ones(128, BF16), ones(500, BF16)),
        {},
        500,
    ),
    "nc_matmul of few columns": (
        nisa.nc_matmul,
        (to(10, memory="psum", partitions=128), ones(128, BF16), ones(10, BF16)),
        {},
        64,
    ),
    "nc_matmul of few of both": (
        nisa.nc_matmul,
        (to(10, memory="psum", partitions=20), ones(20, BF16), ones(10, BF16)),
        {},
        20,
    ),
    "nc_matmul of float32: 4 times": (
        nisa.nc_matmul,
        (to(500, memory="psum", partitions=128), ones(128), ones(500)),
        {},
        2000,
    ),
    "nc_matmul of tfloat32: once": (
        nisa.nc_matmul,
        (
            to(500, memory="psum", partitions=128),
            tile(np.ones((32, 128), np.float32), dtype=nl.tfloat32),
            tile(np.ones((32, 500), np.float32), dtype=nl.tfloat32),
        ),
        {},
        500,
    ),
    "nc_matmul of ones and zeros in float32: twice": (
        nisa.nc_matmul,
        (to(500, memory="psum", partitions=128), ones(128), ones(500)),
        {"is_moving_onezero": True},
        1000,
    ),
    "nc_transpose on the Tensor Engine: max(P, min(64, F))": (
        nisa.nc_transpose,
        (to(100, BF16, "psum", partitions=80), ones(80, BF16, partitions=100)),
        {},
        100,
    ),
    "nc_transpose of few rows": (
        nisa.nc_transpose,
        (to(4, BF16, "psum", partitions=80), ones(80, BF16, partitions=4)),
        {},
        64,
    ),
    "nc_transpose of float32: 4 times": (
        nisa.nc_transpose,
        (to(100, F32, "psum", partitions=80), ones(80, F32, partitions=100)),
        {},
        400,
    ),
    "nc_transpose on the Vector Engine: max(MIN_II, N)": (nisa.nc_transpose, (to(32), ones(32)), {}, 64),
}


@pytest.mark.parametrize("formula", DOCUMENTED)
def test_the_documented_formulas(formula: str) -> None:
    """Each condition of each table, on NeuronCore-v2, whose costs they are."""
    instruction, args, kwargs, cycles = DOCUMENTED[formula]
    assert issue(instruction, *args, **kwargs, chip="trn1").instruction.cycles == cycles


SCALAR = {"engine": nisa.engine.scalar}
FASTER: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], dict[str, float]]] = {
    "copy in SBUF": (nisa.tensor_copy, (to(1000, BF16), ones(1000, F16)), {}, {"trn1": 1000, "trn2": 250, "trn3": 250}),
    "copy with strides": (nisa.tensor_copy, (to(1000, BF16), strided(1000, BF16)), {}, {"trn1": 1000, "trn2": 500}),
    "copy from PSUM": (nisa.tensor_copy, (to(1000, BF16), ones(1000, BF16, "psum")), {}, {"trn1": 1000, "trn2": 500}),
    "copy from PSUM with strides": (
        nisa.tensor_copy,
        (to(1000, BF16), strided(1000, BF16, "psum")),
        {},
        {"trn2": 1000},
    ),
    "copy of float32": (nisa.tensor_copy, (to(1000), ones(1000)), {}, {"trn1": 1000, "trn2": 1000}),
    "copy on the Scalar Engine": (
        nisa.tensor_copy,
        (to(1000, BF16), ones(1000, BF16)),
        SCALAR,
        {"trn2": 1000, "trn3": 500},
    ),
    "tensor_scalar": (
        nisa.tensor_scalar,
        (to(1000, BF16), ones(1000, BF16), nl.add, 1.0),
        {},
        {"trn1": 1000, "trn2": 250},
    ),
    "two tiles": (
        nisa.tensor_tensor,
        (to(1000, BF16), ones(1000, BF16), ones(1000, BF16), nl.add),
        {},
        {"trn1": 1000, "trn2": 500},
    ),
    "two tiles, another operator": (
        nisa.tensor_tensor,
        (to(1000, BF16), ones(1000, BF16), ones(1000, BF16), nl.maximum),
        {},
        {"trn1": 2000, "trn2": 1000},
    ),
    "transpose of float32": (
        nisa.nc_transpose,
        (to(100, F32, "psum", partitions=80), ones(80, F32, partitions=100)),
        {},
        {"trn1": 400, "trn2": 200, "trn3": 200},
    ),
    "transpose mode of float32": (
        nisa.nc_matmul,
        (to(32, memory="psum", partitions=80), ones(80), tile(np.eye(32, dtype=np.float32))),
        {"is_transpose": True},
        {"trn1": 256, "trn2": 128},
    ),
}


@pytest.mark.parametrize("case", FASTER)
def test_what_later_generations_do_faster(case: str) -> None:
    """trainium2_arch, Vector Engine Performance Mode and transpose mode; trainium3_arch, Scalar Engine."""
    instruction, args, kwargs, costs = FASTER[case]
    found = {chip: issue(instruction, *args, **kwargs, chip=chip).instruction.cycles for chip in costs}
    assert found == costs


@pytest.mark.parametrize(("chip", "bandwidth"), [("trn1", 272e9), ("trn2", 368e9), ("trn3", 528e9)])
def test_a_dma_takes_its_bytes_and_the_completion(chip: str, bandwidth: float) -> None:
    """Bytes of the wider side over the DMA bandwidth, and 1300 ns."""
    issued = issue(nisa.dma_copy, to(1000, BF16, partitions=128), ones(1000, F32, "hbm", 128), chip=chip)
    assert issued.instruction.engine == "dma"
    assert issued.instruction.cycles == 0
    assert issued.instruction.nanoseconds == pytest.approx(128 * 1000 * 4 / bandwidth * 1e9 + 1300)


@pytest.mark.parametrize("case", ["tensor", "vector", "scalar", "gpsimd", "dma"])
def test_each_engine_is_named_in_the_record(case: str) -> None:
    """The cycles of a record are those of this engine's clock."""
    calls: dict[str, tuple[Any, ...]] = {
        "tensor": (nisa.nc_matmul, to(8, memory="psum", partitions=8), ones(8), ones(8)),
        "vector": (nisa.reciprocal, to(8), ones(8)),
        "scalar": (nisa.activation, to(8), nl.exp, ones(8)),
        "gpsimd": (nisa.iota, to(8), [[1, 8]]),
        "dma": (nisa.dma_copy, to(8), ones(8)),
    }
    instruction, *args = calls[case]
    assert issue(instruction, *args).instruction.engine == case
