"""The costs of instructions: cycles of their engine, or nanoseconds of a transfer.

The formulas are those of the docstrings of ``nki.isa`` in the SDK 2.20 to 2.26, which are NeuronCore-v2's; later
releases dropped them. The faster operations of later generations are from their architecture guides.
"""

from __future__ import annotations

from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.enums import engine as engines
from nkitools.facts.generations import Generation

DMA_COMPLETION_NS = 1300.0  # completion of a transfer (NKI DMA overview)
GPSIMD_START = 150.0  # startup of an instruction on the GpSimd Engine (nki.isa.iota docstring, 2.26)
_FAST_ADD = ("add", "subtract", "multiply")


def streaming(chip: Generation, data: NkiTensor, factor: float = 1.0) -> float:
    """``max(MIN_II, factor * N)`` with N elements per partition."""
    return max(float(chip.min_initiation_cycles), factor * data.layout.free_elements)


def is_half(*tensors: NkiTensor) -> bool:
    """Return whether all operands are bfloat16 or float16."""
    return all(tensor.dtype.name in ("bfloat16", "float16") for tensor in tensors)


def is_bfloat16(*tensors: NkiTensor) -> bool:
    """Return whether all operands are bfloat16."""
    return all(tensor.dtype.name == "bfloat16" for tensor in tensors)


def elements_per_cycle(chip: Generation, engine: engines, dst: NkiTensor, data: NkiTensor) -> int:
    """Elements that a lane copies (or runs through tensor_scalar) in a cycle: more than one of half-width elements.

    Vector Engine from NeuronCore-v3 on: 4 from SBUF to SBUF with contiguous elements, 2 where one of these does not
    hold (trainium2_arch, Vector Engine Performance Mode). Scalar Engine from v4 on: 2 (trainium3_arch, Performance
    mode).
    """
    if not is_half(dst, data):
        return 1
    if engine is engines.scalar:
        return chip.scalar_half_width_elements
    if engine is not engines.vector or not chip.vector_performance_mode:
        return 1
    in_psum = sum(tensor.buffer is MemoryRegion.psum for tensor in (dst, data))
    contiguous = dst.is_contiguous() and data.is_contiguous()
    if in_psum == 0:
        return 4 if contiguous else 2
    return 2 if in_psum == 1 and contiguous else 1


def on_scalar_engine(chip: Generation, dst: NkiTensor, data: NkiTensor) -> tuple[tuple[str, float], ...]:
    """Return the cost on the Scalar Engine of an operation on one tile that a compiler may move there.

    Counters of public kernels show tensor_scalar and reciprocal there if the author names no engine, on NeuronCore-v2
    too, as activations with a scale and a bias.
    """
    return (("scalar", streaming(chip, data, 1 / elements_per_cycle(chip, engines.scalar, dst, data))),)


def two_tiles(chip: Generation, operator: str, dst: NkiTensor, data1: NkiTensor, data2: NkiTensor) -> float:
    """Return the table of tensor_tensor: N cycles with one input in PSUM, or adding bfloat16 tiles without strides;
    else 2N.

    From NeuronCore-v3 on twice as fast with half-width tiles of SBUF (trainium2_arch, Vector Engine Performance Mode).
    """
    in_psum = sum(tensor.buffer is MemoryRegion.psum for tensor in (data1, data2))
    plain = is_bfloat16(dst, data1, data2) and data1.is_contiguous() and data2.is_contiguous()
    factor = 1.0 if in_psum == 1 or (in_psum == 0 and plain and operator in _FAST_ADD) else 2.0
    if chip.vector_performance_mode and in_psum == 0 and is_half(dst, data1, data2):
        factor /= 2
    return streaming(chip, data1, factor)


def dma(chip: Generation, dst: NkiTensor, src: NkiTensor) -> float:
    """Nanoseconds of a DMA transfer: its bytes (of the wider side) at full bandwidth, and the completion."""
    moved = dst.size * max(dst.dtype.itemsize, src.dtype.itemsize)
    return moved / chip.dma_bytes_per_second * 1e9 + DMA_COMPLETION_NS


def matmul(chip: Generation, stationary_free: int, moving_free: int, passes: int) -> float:
    """Return ``passes * max(min(64, N_stationary), N_moving)``, the average of many in a row."""
    return float(passes * max(min(chip.min_initiation_cycles, stationary_free), moving_free))
