"""Random tiles.

Which numbers the chip draws is not published (`nkitools.isa.random`): their distribution is the chip's, and the same
seed gives the same numbers in every run.
"""

from __future__ import annotations

from nkitools.chip.argument_types import Memory, Shape
from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DTypeLike, uint32
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.engines.operators import OPERATORS
from nkitools.isa import random
from nkitools.isa.elementwise import tensor_scalar
from nkitools.isa.move import dma_copy
from nkitools.issue.known_forms import report_known
from nkitools.language.creation import converted, ndarray, sbuf
from nkitools.language.math import check_tile, is_number
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse

_SHIFT, _MULTIPLY = OPERATORS["right_shift"], OPERATORS["multiply"]
_COLUMNS = 2048  # of a tile on its way to HBM


def rand(shape: Shape, dtype: DTypeLike, buffer: Memory = sbuf, name: str | None = "") -> NkiTensor:
    """Return a new tensor of random numbers, uniform in [0, 1): multiples of 2**-24, cast once to ``dtype``.

    A dtype with fewer digits than float32 rounds some of them up to 1, an integer dtype rounds all to 0 or 1.
    ``buffer``: SBUF, PSUM, or HBM, which is filled by DMA from tiles in SBUF. ``name``: as for nl.ndarray. Each call
    draws the next numbers. Every run draws the same ones (each program of a grid its own), unless nl.random_seed
    gives the generators another seed.
    NeuronCore-v4 draws with nisa.rand2, which has no bool and no float8_e8m0fnu (NK301). Other chips have nisa.rng,
    whose 32 bits are shifted and multiplied; the release notes (NKI 0.3 on) warn that it "may run on a different engine
    than random_seed". Here it runs on the Vector Engine, which nl.random_seed seeds, as the example of that function
    needs.
    Errors: NK101, NK107, NK110, NK301, NK608, NK609, NK611. Source: nki.language.rand (NKI 0.6); release notes of NKI
    0.3.
    """
    tensor = ndarray(shape, dtype, buffer, name)
    if tensor.on_chip:
        _fill(tensor)
        return tensor
    flat = tensor.reshape((tensor.size,))
    for start, rows, columns in _blocks(tensor.size, current_core("nl.rand").generation.partitions):
        tile = ndarray((rows, columns), tensor.dtype, sbuf)
        _fill(tile)
        dma_copy(dst=flat[start : start + rows * columns], src=tile)
    return tensor


def _blocks(total: int, partitions: int) -> list[tuple[int, int, int]]:
    """Return the first element of each block of a flat tensor, and the rows and columns of its tile."""
    columns = min(total, _COLUMNS)
    rows, rest = divmod(total, columns)
    blocks = [(row * columns, min(partitions, rows - row), columns) for row in range(0, rows, partitions)]
    return [*blocks, (total - rest, 1, rest)] if rest else blocks


def _fill(tile: NkiTensor) -> None:
    if current_core("nl.rand").generation.uniform_random:
        random.rand2(dst=tile, min=0.0, max=1.0)
        return
    bits = ndarray(tile.shape, uint32, sbuf)
    random.rng(dst=bits)
    tensor_scalar(dst=bits, data=bits, op0=_SHIFT, operand0=8)
    tensor_scalar(dst=tile, data=bits, op0=_MULTIPLY, operand0=2.0**-24)


def random_seed(seed: NkiTensor) -> None:
    """Seed the Vector Engine's generators: the same seed gives the same numbers of nl.rand and nl.dropout after it.

    ``seed``: a [1, 1] tensor of a 32-bit dtype in SBUF or PSUM, whose bits are the seed; a Python number is NK609.
    Before NeuronCore-v4 a call gives NK623, a hint: on the chip nl.rand may not use this seed.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK401, NK609, NK611. Source: nki.language.random_seed (NKI 0.6).
    """
    if not isinstance(seed, NkiTensor):
        refuse(
            "NK609",
            f"nl.random_seed: seed must be a [1, 1] tensor, it is {type(seed).__name__}",
            remedy="Put the number into one: nl.random_seed(nl.full((1, 1), 42, dtype=nl.int32, buffer=nl.sbuf)).",
        )
    report_known("nl.random_seed", "seed-of-another-engine", "a seed for nl.rand")
    random.set_rng_seed(src_seeds=seed)


def dropout(x: NkiTensor, rate: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return ``x`` with each element made zero with probability ``rate``, as a new SBUF tile.

    The other elements keep their values: the reference mentions no scaling. ``x``: a tile in SBUF or PSUM. ``rate``: a
    number from 0 to 1, or a (partitions, 1) tile with a probability for each partition, of float32 if ``x`` is of
    integers, else of any float dtype. A rate above 1 acts as 1 (NK621, a hint), one below 0 is NK609. ``dtype``: of the
    result, by default that of ``x``. It is a nisa.dropout on the Vector Engine, with another dtype also a
    nisa.tensor_copy.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK611. Source: nki.language.dropout (NKI 0.6),
    nki.isa.dropout.
    """
    check_tile("dropout", "x", x)
    if not isinstance(rate, NkiTensor) and (not is_number(rate) or isinstance(rate, bool)):
        refuse("NK609", f"nl.dropout: rate must be a number or a tile, it is {type(rate).__name__}")
    target = result_dtype(dtype, x)
    kept = ndarray(x.shape, x.dtype, sbuf)
    random.dropout(dst=kept, data=x, prob=rate)
    return converted(kept, target)
