"""Everything that differs between NeuronCore generations, one frozen table a generation.

Sources: the architecture guides of AWS's Neuron SDK 2.32 (trainium_inferentia2_arch, trainium2_arch, trainium3_arch)
and the docstrings of ``nki.isa`` 0.6. An instruction asks the table. Nothing outside of this room compares versions or
names of chips. To add a chip, add its table here and name the table in ``TABLES``. The module needs the standard
library only, so that options and rules can name it.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar, dataclass_transform

from nkitools.facts.light_classes import NamedTuple, frozen_error

Table = TypeVar("Table")

KIB = 1024


class Clocks(NamedTuple):
    """Engine clocks in GHz."""

    tensor: float
    vector: float
    scalar: float
    gpsimd: float


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False)
def frozen_table(kind: type[Table]) -> type[Table]:
    """Make a class a frozen dataclass without generated code, which would cost each pytest session two milliseconds."""
    names = kind.__annotations__
    defaults = {name: getattr(kind, name) for name in names if hasattr(kind, name)}

    def filled(self: Table, **values: Any) -> None:
        given = {**defaults, **values}
        if given.keys() != names.keys():
            raise TypeError(f"{kind.__name__}: wrong or missing fields {sorted(given.keys() ^ names.keys())}")
        vars(self).update(given)

    def refused(self: Table, name: str, value: Any = None) -> NoReturn:
        raise frozen_error(f"cannot assign to field {name!r}")

    for name, method in (("__init__", filled), ("__setattr__", refused), ("__delattr__", refused)):
        setattr(kind, name, method)
    return kind


@frozen_table
class Generation:
    """The limits, clocks and abilities of one NeuronCore generation; the docs page of chips shows the comments."""

    name: str  # what messages call it
    version: int  # 2 for NeuronCore-v2
    chips: tuple[str, ...]  # every name of a chip: products first, then the name of the generation
    clocks: Clocks  # of the Tensor, Vector, Scalar and GpSimd Engine, in GHz

    # --- memory ---
    partitions: int = 128  # lanes of SBUF, PSUM and the engines
    sbuf_partition_bytes: int  # bytes of one partition of SBUF
    sbuf_reserved_bytes: int = 16 * KIB  # bytes of an SBUF partition that a kernel may not use
    sbuf_compiler_bytes: int = 8  # bytes that the compiler needs besides, where it places the tensors
    psum_banks: int = 8  # banks of one partition of PSUM
    psum_bank_bytes: int = 2 * KIB  # bytes of one bank in one partition
    hbm_bytes_per_second: float  # a core's share of its device's memory bandwidth
    dma_bytes_per_second: float  # of the DMA engines of a core together
    spill_bytes_per_second: float  # of tensors that a core's compiler moves to HBM and back (v3: measured)
    start_partition_step: int = 32  # an access begins at a multiple of this partition
    cores_per_device: int  # cores that share one device's memory
    logical_cores: int  # cores that one logical core joins by default (NEURON_LOGICAL_NC_CONFIG, nki.jit docs)

    # --- Tensor Engine ---
    stationary_fmax: int = 128  # columns of the stationary tile at most
    moving_fmax_float32: int  # columns of the moving tile at most, for a float32 result
    moving_fmax_bfloat16: int  # the same for a bfloat16 result
    min_initiation_cycles: int = 64  # cycles between two matmuls at least
    matmul_output_dtypes: frozenset[str]  # dtypes of a matmul's result
    matmul_input_dtypes: frozenset[str]  # dtypes of a matmul's operands
    row_tile_sizes: tuple[int, ...]  # rows of the array that one tile of it may have
    double_row_matmul: bool = False  # the performance mode of nc_matmul
    exact_transpose: bool = False  # nc_transpose keeps every bit
    accumulates_on_any_value: bool = False  # a matmul may add to what other instructions than matmuls wrote
    microscaling: bool = False  # quantize_mx and nc_matmul_mx: "Available only on NeuronCore-v4 and newer"
    dma_transpose_as_matmul: bool = False  # the option "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE=true on trn2+" (tile_size)

    # --- Vector, Scalar and GpSimd Engine ---
    bn_stats_fmax: int = 512  # columns of a tile of bn_stats at most
    vector_transpose_max: int = 32  # rows and columns of a transpose on the Vector Engine at most
    vector_performance_mode: bool = False  # half widths go faster (trainium2_arch, Vector Engine Performance Mode)
    scalar_half_width_elements: int  # half-width elements of a lane a cycle (trainium3_arch, Performance mode)
    scalar_engine_copies: bool = False  # tensor_copy runs on the Scalar Engine
    scalar_engine_arithmetic: bool = False  # tensor_scalar runs on the Scalar Engine
    immediate_bias: bool = False  # activation takes a number as bias
    absolute_extremes: bool = False  # nl.abs_max and nl.abs_min: "available only on NeuronCore-v4 (trn3) and newer"
    squares: bool = False  # tensor_scalar with op0 nl.square or nl.relu: "now accepted as op0 on trn3" (NKI 0.4)
    gpsimd_activation: bool = False  # activation and activate2 run on GpSimd: "NeuronCore-v4 and newer" (NKI 0.7)
    fused_activation: bool = False  # activate2 and exponential: "Available only on NeuronCore-v4 and newer"
    range_select: bool = False  # range_select: "Available only on NeuronCore-v3 and newer"
    nonzero_with_count: bool = False  # nonzero_with_count: "Supported arch versions: NeuronCore-v3+"
    tensor_indirection: bool = False  # the engines take vector_offset
    gpsimd_random: bool = False  # rng on GpSimd and its states: "NeuronCore-v2: Vector. NeuronCore-v3+: GpSimd, Vector"
    vector_random_states: bool = False  # rand_set_state: "NeuronCore-v3: GpSimd. NeuronCore-v4+: GpSimd, Vector"
    uniform_random: bool = False  # rand2
    custom_operators: bool  # custom C++ operators run on the GpSimd Engine (Custom C++ Operators, overview)

    # --- DMA and other cores ---
    hardware_dge: bool = False  # descriptors are generated by hardware
    dma_priority: bool = False  # dma_copy takes a priority
    indirect_transpose: bool = False  # dma_transpose of a gather: "TRN2+ only" (DMA Indirect Transpose Constraints)
    dma_compute_passes: int  # times that dma_compute moves its elements
    native_torch: bool = False  # torch-neuronx 2.10 and later, torch's own backend: Trn2 and Trn3 (SDK 2.33)
    core_exchange: bool = False  # core_barrier and sendrecv: "Available only on NeuronCore-v3 or newer"
    neuron_switch: bool = False  # ranks are joined by a NeuronSwitch ("trn3 today", all_to_all_v)

    # --- names ---
    in_legacy_dialect: bool  # nc_version of neuronxcc.nki (SDK 2.26) has a name for it

    def __repr__(self) -> str:
        return f"<Generation {self.name}>"

    @property
    def products(self) -> tuple[str, ...]:
        """The names under which the chips are sold: ``trn1`` and ``inf2``, without ``gen2``."""
        return tuple(chip for chip in self.chips if chip != self.short_name)

    @property
    def short_name(self) -> str:
        """The name of the generation in ``nki.isa.nc_version``, such as ``gen2``."""
        return f"gen{self.version}"

    @property
    def one_bank_matmul(self) -> bool:
        """Return whether a matmul writes to a single PSUM bank."""
        return self.moving_fmax_float32 * 4 <= self.psum_bank_bytes

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

    @property
    def sbuf_automatic_bytes(self) -> int:
        """Bytes of one SBUF partition that the compiler has for the tensors that it places.

        AWS's nki-library takes 8 bytes off for the compiler on v3 and v4 (mlp_cte_constants, EvalAccelReservedLoc). On
        v3, kernels that need 210,944 bytes do not spill, those that need 212,992 do, and an instruction whose operands
        have 212,992 is refused (NCC_IBIR229). v2 is taken to be the same.
        """
        return self.sbuf_usable_bytes - self.sbuf_compiler_bytes

    def moving_fmax(self, output_dtype: str) -> int:
        """Largest free size of ``nc_matmul``'s moving operand for an output of that dtype (nc_matmul, Tile size)."""
        return self.moving_fmax_bfloat16 if output_dtype == "bfloat16" else self.moving_fmax_float32


FIELDS = tuple(Generation.__annotations__)  # the names of its fields, in their order


def replace(table: Generation, **changes: Any) -> Generation:
    """Return another generation's table, equal to ``table`` but for ``changes``. Raises TypeError for a wrong field."""
    return Generation(**{**vars(table), **changes})


_INPUTS = frozenset({"float8_e4m3", "float8_e5m2", "bfloat16", "float16", "tfloat32", "float32"})

V2 = Generation(
    name="NeuronCore-v2",
    version=2,
    chips=("trn1", "inf2", "gen2"),
    clocks=Clocks(tensor=2.8, vector=1.12, scalar=1.4, gpsimd=1.4),
    sbuf_partition_bytes=192 * KIB,
    hbm_bytes_per_second=410e9,
    dma_bytes_per_second=272e9,
    spill_bytes_per_second=296e9,
    cores_per_device=2,
    logical_cores=1,
    moving_fmax_float32=512,
    moving_fmax_bfloat16=512,
    matmul_output_dtypes=frozenset({"float32"}),
    matmul_input_dtypes=_INPUTS,
    row_tile_sizes=(64, 128),
    scalar_half_width_elements=1,
    custom_operators=True,
    dma_compute_passes=2,
    in_legacy_dialect=True,
)

V3 = replace(
    V2,
    name="NeuronCore-v3",
    version=3,
    chips=("trn2", "gen3"),
    clocks=Clocks(tensor=2.4, vector=0.96, scalar=1.2, gpsimd=1.2),
    sbuf_partition_bytes=224 * KIB,
    hbm_bytes_per_second=362e9,
    dma_bytes_per_second=368e9,
    spill_bytes_per_second=400e9,
    cores_per_device=8,
    logical_cores=2,
    row_tile_sizes=(32, 64, 128),
    double_row_matmul=True,
    exact_transpose=True,
    dma_transpose_as_matmul=True,
    vector_performance_mode=True,
    scalar_engine_copies=True,
    scalar_engine_arithmetic=True,
    immediate_bias=True,
    range_select=True,
    nonzero_with_count=True,
    gpsimd_random=True,
    custom_operators=False,
    hardware_dge=True,
    indirect_transpose=True,
    core_exchange=True,
    native_torch=True,
)

V4 = replace(
    V3,
    name="NeuronCore-v4",
    version=4,
    chips=("trn3", "gen4"),
    clocks=Clocks(tensor=2.4, vector=1.2, scalar=1.2, gpsimd=1.2),
    sbuf_partition_bytes=256 * KIB,
    hbm_bytes_per_second=600e9,
    dma_bytes_per_second=528e9,
    spill_bytes_per_second=574e9,
    moving_fmax_float32=4096,
    moving_fmax_bfloat16=8192,
    matmul_output_dtypes=frozenset({"float32", "bfloat16"}),
    matmul_input_dtypes=_INPUTS | {"float8_e4m3fn"},
    accumulates_on_any_value=True,
    microscaling=True,
    scalar_half_width_elements=2,
    absolute_extremes=True,
    squares=True,
    gpsimd_activation=True,
    fused_activation=True,
    tensor_indirection=True,
    vector_random_states=True,
    uniform_random=True,
    dma_priority=True,
    dma_compute_passes=1,
    neuron_switch=True,
    in_legacy_dialect=False,
)

TABLES = (V2, V3, V4)  # every generation, the oldest first
GENERATIONS: dict[str, Generation] = {chip: generation for generation in TABLES for chip in generation.chips}
CHIPS: tuple[str, ...] = tuple(chip for generation in TABLES for chip in generation.products)
DEFAULT_CHIP = "trn2"


def generation_of(chip: str, said_by: str = "chip") -> Generation:
    """Return the table of a chip by any of its names; ValueError names ``said_by`` and the chips for another name."""
    try:
        return GENERATIONS[chip]
    except KeyError:
        known = ", ".join(GENERATIONS)
        raise ValueError(f"{said_by}: {chip!r} is not a chip that nkitools knows. Use one of {known}.") from None


def chips_with(ability: str) -> tuple[str, ...]:
    """Return the chips that have ``ability``, a field or property of `Generation`."""
    return tuple(chip for chip in CHIPS if getattr(GENERATIONS[chip], ability))


def incomplete_chips() -> tuple[str, ...]:
    """Return the chips that lack an ability of the newest generation."""
    newest = TABLES[-1]
    abilities = [name for name in FIELDS if getattr(newest, name) is True]
    return tuple(chip for chip in CHIPS if not all(getattr(GENERATIONS[chip], ability) for ability in abilities))


def first_with(ability: str) -> str:
    """Return the name of the oldest generation that has ``ability``, such as ``NeuronCore-v3``."""
    return next(generation.name for generation in TABLES if getattr(generation, ability))
