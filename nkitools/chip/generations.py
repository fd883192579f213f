"""Everything that differs between NeuronCore generations, one frozen table a generation.

Sources: the architecture guides of AWS's Neuron SDK 2.32 (trainium_inferentia2_arch, trainium2_arch, trainium3_arch)
and the docstrings of ``nki.isa`` 0.6. An instruction asks the table; nothing else branches on a chip's name.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from nkitools import options

KIB = 1024


@dataclass(frozen=True)
class Clocks:
    """Engine clocks in GHz."""

    tensor: float
    vector: float
    scalar: float
    gpsimd: float


@dataclass(frozen=True)
class Generation:
    """The limits, clocks and abilities of one NeuronCore generation.

    Sizes are in bytes unless they say elements; ``*_fmax`` are elements of float32 in the free dimension.
    """

    name: str
    version: int
    chips: tuple[str, ...]
    clocks: Clocks
    sbuf_partition_bytes: int
    hbm_bytes_per_second: float
    dma_bytes_per_second: float
    moving_fmax_float32: int
    moving_fmax_bfloat16: int
    matmul_output_dtypes: frozenset[str]
    matmul_input_dtypes: frozenset[str]
    row_tile_sizes: tuple[int, ...]
    double_row_matmul: bool
    exact_transpose: bool
    accumulates_on_any_value: bool
    hardware_dge: bool
    dma_priority: bool
    scalar_engine_copies: bool
    scalar_engine_arithmetic: bool
    immediate_bias: bool
    tensor_indirection: bool
    partitions: int = 128
    stationary_fmax: int = 128
    psum_banks: int = 8
    psum_bank_bytes: int = 2 * KIB
    sbuf_reserved_bytes: int = 16 * KIB
    bn_stats_fmax: int = 512
    vector_transpose_max: int = 32
    start_partition_step: int = 32
    min_initiation_cycles: int = 64

    @property
    def psum_partition_bytes(self) -> int:
        """Bytes of one PSUM partition (all banks)."""
        return self.psum_banks * self.psum_bank_bytes

    @property
    def sbuf_usable_bytes(self) -> int:
        """Bytes of one SBUF partition that a kernel may use.

        The legacy direct-allocation guide gives [0, 192 KiB - 16 KiB) on NeuronCore-v2; AWS's nki-library counts on
        224 KiB - 16 KiB less some hundred bytes on v3 (mlp_cte_constants, MAX_AVAILABLE_SBUF_SIZE: scratch of DMA). The
        reserve of v4 is taken to be the same.
        """
        return self.sbuf_partition_bytes - self.sbuf_reserved_bytes

    def moving_fmax(self, output_dtype: str) -> int:
        """Largest free size of ``nc_matmul``'s moving operand for an output of that dtype (nc_matmul, Tile size)."""
        return self.moving_fmax_bfloat16 if output_dtype == "bfloat16" else self.moving_fmax_float32


_INPUTS = frozenset({"float8_e4m3", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32"})

V2 = Generation(
    name="NeuronCore-v2",
    version=2,
    chips=("trn1", "inf2", "gen2"),
    clocks=Clocks(tensor=2.8, vector=1.12, scalar=1.4, gpsimd=1.4),
    sbuf_partition_bytes=192 * KIB,
    hbm_bytes_per_second=410e9,
    dma_bytes_per_second=272e9,
    moving_fmax_float32=512,
    moving_fmax_bfloat16=512,
    matmul_output_dtypes=frozenset({"float32"}),
    matmul_input_dtypes=_INPUTS,
    row_tile_sizes=(64, 128),
    double_row_matmul=False,
    exact_transpose=False,
    accumulates_on_any_value=False,
    hardware_dge=False,
    dma_priority=False,
    scalar_engine_copies=False,
    scalar_engine_arithmetic=False,
    immediate_bias=False,
    tensor_indirection=False,
)

V3 = Generation(
    name="NeuronCore-v3",
    version=3,
    chips=("trn2", "gen3"),
    clocks=Clocks(tensor=2.4, vector=0.96, scalar=1.2, gpsimd=1.2),
    sbuf_partition_bytes=224 * KIB,
    hbm_bytes_per_second=362e9,
    dma_bytes_per_second=368e9,
    moving_fmax_float32=512,
    moving_fmax_bfloat16=512,
    matmul_output_dtypes=frozenset({"float32"}),
    matmul_input_dtypes=_INPUTS,
    row_tile_sizes=(32, 64, 128),
    double_row_matmul=True,
    exact_transpose=True,
    accumulates_on_any_value=False,
    hardware_dge=True,
    dma_priority=False,
    scalar_engine_copies=True,
    scalar_engine_arithmetic=True,
    immediate_bias=True,
    tensor_indirection=False,
)

V4 = Generation(
    name="NeuronCore-v4",
    version=4,
    chips=("trn3", "gen4"),
    clocks=Clocks(tensor=2.4, vector=1.2, scalar=1.2, gpsimd=1.2),
    sbuf_partition_bytes=256 * KIB,
    hbm_bytes_per_second=600e9,
    dma_bytes_per_second=528e9,
    moving_fmax_float32=4096,
    moving_fmax_bfloat16=8192,
    matmul_output_dtypes=frozenset({"float32", "bfloat16"}),
    matmul_input_dtypes=_INPUTS | {"float8_e4m3fn"},
    row_tile_sizes=(32, 64, 128),
    double_row_matmul=True,
    exact_transpose=True,
    accumulates_on_any_value=True,
    hardware_dge=True,
    dma_priority=True,
    scalar_engine_copies=True,
    scalar_engine_arithmetic=True,
    immediate_bias=True,
    tensor_indirection=True,
)

GENERATIONS: dict[str, Generation] = {chip: generation for generation in (V2, V3, V4) for chip in generation.chips}
DEFAULT_CHIP = "trn2"


# Who says which chip, in this order, after the argument and the option (NKI CPU Simulator, Target Platform).
_VARIABLES = ("NEURON_PLATFORM_TARGET_OVERRIDE", "NKI_NC_VERSION")


def generation_of(chip: str) -> Generation:
    """The table of a chip by any of its names (``trn1 inf2 trn2 trn3``, ``gen2 gen3 gen4``); ValueError for others."""
    return _generation(chip, "chip")


def _generation(chip: str, said_by: str) -> Generation:
    try:
        return GENERATIONS[chip]
    except KeyError:
        known = ", ".join(GENERATIONS)
        raise ValueError(f"{said_by}: {chip!r} is not a chip that nkitools knows. Use one of {known}.") from None


def resolve_chip(chip: str | None = None) -> str:
    """The chip asked for: the argument, the option, AWS's environment variables, else trn2."""
    for said_by, chosen in (("chip", chip), ("option chip", options.value("chip"))):
        if chosen is None:
            continue
        if not isinstance(chosen, str):
            raise TypeError(f"{said_by}: must be one of {', '.join(GENERATIONS)}, it is {type(chosen).__name__}")
        _generation(chosen, said_by)
        return chosen
    for variable in _VARIABLES:
        named = os.environ.get(variable)
        if named:
            _generation(named, variable)
            return named
    return DEFAULT_CHIP
