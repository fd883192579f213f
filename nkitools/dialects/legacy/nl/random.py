"""Random numbers. Which ones the chip draws is not published (`nkitools.isa.random`); the same seed gives the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DTypeLike, uint32
from nkitools.chip.numerics import to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.indexing.masks import MaskLike, lanes_of
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.nisa.value_calls import memory_of, sbuf
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.reshaping import converted_value
from nkitools.dialects.legacy.tiles.result_tiles import new_tile, value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import OPERATORS
from nkitools.isa import random as _random
from nkitools.isa.elementwise import tensor_scalar
from nkitools.isa.move import fill
from nkitools.language import random as _tiles
from nkitools.language.broadcast import spread_partitions
from nkitools.rules.finding import refuse


def isa_dropout(
    data: Tensor, prob: Operand, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword
) -> Tensor:
    """Return ``data`` with each element zero with probability ``prob``, as a new tile; the others keep their values.

    ``prob``: a number from 0 to 1, or a (partitions, 1) tile, one probability a partition: above 1 it counts as 1,
    below 0 as 0, since AWS's example fills it with numbers up to 100. ``dtype``: of the result, by default ``data``'s;
    another one only if ``data`` is of floats (NK301). ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.random.dropout, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.dropout"
    memory = memory_of(what, kwargs)
    check_tile(what, "data", data)
    kind = data.element if dtype is None else element_type(dtype)
    if kind is not data.element and not data.element.is_float:
        refuse("NK301", f"{what}: `dtype` must be that of {describe(data.base)}, it is {kind}", about=(data.base,))
    lanes = lanes_of(mask, data.shape, what)
    dst = value_tile(data.shape, data.element, memory)

    def into(target: NkiTensor, tile: NkiTensor, probability: NkiTensor | float) -> None:
        _random.dropout(dst=target, data=tile, prob=_in_range(probability))

    write_lanes(into, dst, (data, prob), lanes)
    return Tensor.made(dst if kind is data.element else converted_value(dst, kind), lanes)


def _in_range(probability: NkiTensor | float) -> Any:
    """Return a tile of probabilities, with values outside of 0 to 1 clipped in a copy."""
    if not isinstance(probability, NkiTensor) or not probability.dtype.is_float or probability.unwritten() is not None:
        return probability
    values = to_float32(probability.read())
    if not ((values < 0) | (values > 1)).any():
        return probability
    found = new_tile(probability.shape, probability.dtype)
    tensor_scalar(
        dst=found,
        data=probability,
        op0=OPERATORS["maximum"],
        operand0=0.0,
        reverse0=False,
        op1=OPERATORS["minimum"],
        operand1=1.0,
    )
    return found


isa_dropout.__name__ = isa_dropout.__qualname__ = "dropout"


def dropout(x: Tensor, rate: Operand, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return ``x`` with each element zero with probability ``rate``, as a new SBUF tile; the others keep their values.

    ``rate``: a number from 0 to 1, or a tile of one element, or of one for each partition. All else is as for
    nisa.dropout.
    Errors: those of nkitools.isa.random.dropout, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.dropout", kwargs)
    check_tile("nl.dropout", "x", x)
    if isinstance(rate, Tensor) and rate.shape[0] == 1 < x.shape[0]:
        rate = Tensor(spread_partitions(rate.resolved(), x.shape[0]))
    return isa_dropout(x, rate, mask=mask, dtype=dtype)


def rand(shape: Shape, dtype: DTypeLike = np.float32, **kwargs: Keyword) -> Tensor:
    """Return a new tensor of random numbers, uniform in [0, 1), in SBUF, or in the memory that ``buffer=`` names.

    A dtype with fewer digits than float32 rounds some of them up to 1, an integer dtype rounds all to 0 or 1.
    Errors: those of nkitools.language.random.rand.
    """
    memory: Any = kwargs.pop("buffer", None)
    check_keywords("nl.rand", kwargs)
    return Tensor(_tiles.rand(shape, element_type(dtype), sbuf if memory is None else memory))


def random_seed(seed: Tensor, *, mask: MaskLike = None, **kwargs: Keyword) -> None:
    """Seed the generator of nl.rand and nl.dropout: the same ``seed`` gives the same numbers after it.

    ``seed``: an integer of 32 bits, or a (1, 1) tile of a 32-bit dtype in SBUF or PSUM, whose bits are taken. A
    ``mask`` that leaves nothing seeds nothing.
    Errors: those of nkitools.isa.random.set_rng_seed, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nl.random_seed"
    check_keywords(what, kwargs)
    number = whole(seed)
    if number is not None:
        if not -(2**31) <= number < 2**32:
            refuse("NK609", f"{what}: `seed` must have 32 bits, it is {number}")
        tile = new_tile((1, 1), uint32)
        fill(tile, number % 2**32)
        seed = Tensor(tile)
    check_tile(what, "seed", seed)
    lanes = lanes_of(mask, seed.shape, what)
    if lanes is None or not lanes.empty:
        _random.set_rng_seed(src_seeds=seed.resolved())
