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
    """Return ``data`` with elements replaced by zeros, each with probability ``prob``; the others are not scaled.

    ``prob``: a number or a (partitions, 1) tile, one probability a partition. AWS's example of this function fills the
    tile with numbers up to 100: above 1 everything is dropped, below 0 nothing, by an instruction that brings them into
    the range. Another ``dtype`` than ``data``'s is possible for floats only, and takes a copy.
    Errors: those of nkitools.isa.random.dropout, NK301, NK604.
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
    """``x`` with each element made zero with probability ``rate``, a number or a tile of one element.

    The others keep their values. A tile of one probability for each partition is possible as well, as in nisa.dropout,
    by which this is done. Errors: as nisa.dropout.
    """
    check_keywords("nl.dropout", kwargs)
    check_tile("nl.dropout", "x", x)
    if isinstance(rate, Tensor) and rate.shape[0] == 1 < x.shape[0]:
        rate = Tensor(spread_partitions(rate.resolved(), x.shape[0]))
    return isa_dropout(x, rate, mask=mask, dtype=dtype)


def rand(shape: Shape, dtype: DTypeLike = np.float32, **kwargs: Keyword) -> Tensor:
    """Return a new tile of random numbers, uniform in [0, 1). Errors: those of nkitools.language.random.rand."""
    memory: Any = kwargs.pop("buffer", None)
    check_keywords("nl.rand", kwargs)
    return Tensor(_tiles.rand(shape, element_type(dtype), sbuf if memory is None else memory))


def random_seed(seed: Tensor, *, mask: MaskLike = None, **kwargs: Keyword) -> None:
    """Seed the generator of nl.rand and nl.dropout with 32 bits: an integer, or a tile of one element.

    Errors: those of nkitools.isa.random.set_rng_seed, NK604, NK609.
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
