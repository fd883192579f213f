"""Counts the work of a Pallas call, its operations and its bytes, by the shapes of arrays."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from nkitools.pallas.static import bit_width_in_memory

FUNCTIONS = frozenset({
    "exp", "exp2", "log", "log1p", "expm1", "tanh", "logistic", "rsqrt", "sqrt", "div", "pow", "erf", "erf_inv", "sin",
    "cos", "reciprocal",
})  # fmt: skip
# They move elements, or give them another name: no arithmetic.
_MOVES = frozenset({
    "get", "masked_load", "swap", "masked_swap", "addupdate", "broadcast_in_dim", "transpose", "concatenate", "iota",
    "pad", "gather", "rev", "roll", "tile", "split", "slice", "reshape", "squeeze", "expand_dims", "copy",
    "bitcast_convert_type", "stop_gradient", "multiple_of", "dma_wait",
})  # fmt: skip
_REDUCTIONS = ("reduce_", "arg", "cum")

Product = tuple[int, int, int, str]  # rows, inner and columns of a matrix product, and the wider dtype of its factors


@dataclass
class Work:
    """The operations and the bytes of a Pallas call over its whole grid."""

    steps: float = 0
    """Points of the grid, and turns of loops that branch and compute (`pltpu.emit_pipeline` is such a loop)."""
    moved: float = 0
    """Bytes between HBM and vector memory."""
    products: Counter[Product] = field(default_factory=Counter)
    """How often the kernel multiplies matrices of each size."""
    elementwise: float = 0
    """Elementwise operations on vector registers."""
    functions: float = 0
    """Exponentials, quotients and the like on vector registers."""

    def add(self, other: Work, times: float) -> None:
        """Add the work of something that is done so many times."""
        self.steps += other.steps * times
        self.moved += other.moved * times
        self.elementwise += other.elementwise * times
        self.functions += other.functions * times
        for each, count in other.products.items():
            self.products[each] += count * times  # type: ignore[assignment]  # a scaled count is a fraction

    def count(self, equation: Any) -> None:
        """Add the work of an operation on arrays."""
        name, out = equation.primitive.name, [var.aval for var in equation.outvars]
        if name == "dma_start":
            self.moved += _copied_bytes(equation)
        elif name == "dot_general":
            product, times = _product(equation)
            self.products[product] += times
        elif out and name not in _MOVES and not name.startswith(_REDUCTIONS):
            vectors = max(_vectors(each) for each in (*out, *(var.aval for var in equation.invars[:1])))
            if name in FUNCTIONS:
                self.functions += vectors
            else:
                self.elementwise += vectors


def _copied_bytes(equation: Any) -> int:
    """Return the bytes that a copy moves from or to HBM; 0 for another copy."""
    source, target, *_ = equation.params["tree"].unflatten([var.aval for var in equation.invars])
    ends = [(getattr(each, "ref", each), getattr(each, "transforms", ())) for each in (source, target)]
    known = [(ref, transforms) for ref, transforms in ends if hasattr(ref, "dtype")]
    if not any(_is_far(ref) for ref, _ in known):
        return 0
    return min(_elements(ref, transforms) * bit_width_in_memory(ref.dtype) // 8 for ref, transforms in known)


def _is_far(ref: Any) -> bool:
    memory = str(getattr(ref, "memory_space", "")).lower()
    return "any" in memory or "hbm" in memory


def _elements(ref: Any, transforms: Any) -> int:
    """Return the elements of a part of a reference; a size that the run decides is the whole dimension's."""
    shape = tuple(getattr(ref, "shape", ()))
    for each in transforms:
        if hasattr(each, "indices"):
            parts = zip(each.indices, each.shape, strict=True)
            sizes = [(part.size, size) for part, size in parts if hasattr(part, "stride")]
            shape = tuple(size if isinstance(size, int) else whole for size, whole in sizes)
    return math.prod(shape)


def _product(equation: Any) -> tuple[Product, int]:
    """Return a matrix product, and how many there are in its batch."""
    (left, right), (of_left, of_right) = equation.params["dimension_numbers"]
    first, second = (var.aval for var in equation.invars)
    rows = math.prod(size for at, size in enumerate(first.shape) if at not in (*left, *of_left))
    columns = math.prod(size for at, size in enumerate(second.shape) if at not in (*right, *of_right))
    inner, batch = (math.prod(first.shape[at] for at in axes) for axes in (left, of_left))
    return (rows, inner, columns, str(max((first.dtype, second.dtype), key=lambda each: each.itemsize))), batch


def _vectors(aval: Any) -> float:
    """Return the vector registers that an array fills, in whole tiles of 8 x 128 elements of 32 bits."""
    shape = tuple(getattr(aval, "shape", ()))
    if not shape or not hasattr(getattr(aval, "dtype", None), "itemsize"):
        return 0
    *outer, rows, columns = (1, 1, *shape) if len(shape) == 1 else (1, *shape)
    bits = max(min(bit_width_in_memory(aval.dtype), 32), 8)
    return float(math.prod(outer) * -(-rows // (256 // bits)) * -(-columns // 128))
