"""Choosing between tiles by a condition, as instructions of the engines."""

from __future__ import annotations

from nkitools.chip.dtypes import DTypeLike, bool_, uint8, uint16, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.engines.operators import OPERATORS
from nkitools.isa.elementwise import tensor_scalar
from nkitools.isa.move import fill, tensor_copy
from nkitools.isa.select import tensor_copy_predicated
from nkitools.language.creation import converted, ndarray, sbuf
from nkitools.language.math import broadcast_shape, check_tile, is_number, spread
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse

_PREDICATES = (bool_, uint8, uint16, uint32)


def where(condition: NkiTensor, x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return ``x`` where ``condition`` is not 0, else ``y``, as a new SBUF tile.

    ``condition``: a tile of any dtype, such as the result of nl.less; NaN is not 0. ``x``, ``y``: tiles or numbers, at
    least one tile (NKI 0.6 says tensors, SDK 2.26 let ``y`` be a number). All tiles are in SBUF or PSUM, and have
    equally many dimensions and partitions; free dimensions of size 1 broadcast. ``dtype``: of the result, by default
    that of the tiles ``x`` and ``y`` (of different ones as for nl.add). A number is cast to it: an integer dtype rounds
    and saturates. Values are copied, so that a NaN that is not chosen has no effect.
    How AWS composes it is not published: ``y`` is copied into the result (nisa.tensor_copy or nisa.memset), and ``x``
    over it (nisa.tensor_copy_predicated). The predicate is ``condition`` itself, if it is bool or unsigned in SBUF,
    else a uint8 tile that nisa.tensor_scalar makes of it.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609, NK611. Source: nki.language.where (NKI 0.6).
    """
    shape = _shape(condition, x, y)
    kind = result_dtype(dtype, x, y)
    dst = ndarray(shape, kind, sbuf)
    where_into(dst, condition, x, y)
    return dst


def where_into(dst: NkiTensor, condition: NkiTensor, x: TileOrNumber, y: TileOrNumber) -> None:
    """``dst`` = ``x`` where ``condition`` is not 0, else ``y``; ``dst`` has the broadcast shape, and is no operand."""
    predicate = spread(_predicate(condition), dst.shape)
    # A predicated copy converts nothing.
    chosen = spread(converted(x, dst.dtype), dst.shape) if isinstance(x, NkiTensor) else x
    if isinstance(y, NkiTensor):
        tensor_copy(dst=dst, src=spread(y, dst.shape))
    else:
        fill(dst, y)
    tensor_copy_predicated(dst=dst, src=chosen, predicate=predicate)


def _shape(condition: NkiTensor, x: TileOrNumber, y: TileOrNumber) -> tuple[int, ...]:
    """NK609, NK102, NK109, NK111: the shape of the tiles, broadcast."""
    check_tile("where", "condition", condition)
    for role, value in (("x", x), ("y", y)):
        if not isinstance(value, NkiTensor) and not is_number(value):
            refuse("NK609", f"nl.where: {role} must be a tile or a number, it is {type(value).__name__}")
    tiles = [each for each in (x, y) if isinstance(each, NkiTensor)]
    if not tiles:
        refuse("NK609", "nl.where needs a tile among x and y, it is given numbers only")
    shapes = [broadcast_shape("where", condition, tile) for tile in tiles]
    if len(tiles) == 1:
        return shapes[0]
    both = broadcast_shape("where", *tiles)
    return tuple(max(sizes) for sizes in zip(both, *shapes, strict=True))


def _predicate(condition: NkiTensor) -> NkiTensor:
    """Return the condition itself where it can be a predicate, else a uint8 tile of it."""
    if condition.dtype in _PREDICATES and condition.buffer is MemoryRegion.sbuf:
        return condition
    predicate = ndarray(condition.shape, uint8, sbuf)
    tensor_scalar(dst=predicate, data=condition, op0=OPERATORS["not_equal"], operand0=0.0)
    return predicate
