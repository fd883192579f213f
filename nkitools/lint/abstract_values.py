"""Abstract values: constants, tensors, registers and indices, as far as the source alone shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any


class Value:
    """The abstract value of an expression."""


class Unknown(Value):
    """Anything; nothing is said of it."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Constant(Value):
    """A number, text, truth value or None that is known."""

    value: Any


@dataclass(frozen=True)
class Number(Value):
    """A number that is not known, of a known kind: ``int`` or ``float``."""

    kind: type


Sizes = tuple[int | None, ...]


@dataclass(frozen=True)
class Tensor(Value):
    """A tensor: its sizes (None: not known), its memory ('' where not known), and the call that made it."""

    shape: Sizes | None = None
    memory: str = ""
    maker: ast.AST | None = field(default=None, compare=False)

    @property
    def on_chip(self) -> bool:
        """Return whether the tensor certainly lies in SBUF or PSUM."""
        return self.memory in ("sbuf", "psum")


@dataclass(frozen=True)
class Comparison(Tensor):
    """The result of a comparison function of nl.*, which may be asserted."""


@dataclass(frozen=True)
class Register(Value):
    """A register; ``counter``: that of a loop on the device, which is frozen."""

    counter: bool = False


class Scalar(Value):
    """A scalar of the device, or what comparing one gives; nothing of it may be used in Python."""


@dataclass(frozen=True)
class Index(Value):
    """An index of the legacy dialect made of nl.arange or nl.mgrid, with its number of dimensions if known."""

    ndim: int | None = None
    affine: bool = True


class Mask(Value):
    """Comparisons of indices."""


MASK = Mask()


@dataclass(frozen=True)
class ParDim(Value):
    """The result of nl.par_dim."""

    size: Value


@dataclass(frozen=True)
class Span(Value):
    """A slice or nl.ds: how many elements of a dimension, None where that is not known; ``whole``: all of them."""

    size: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Piece(Value):
    """A part of something unknown, by its keys."""

    keys: tuple[Value, ...]


@dataclass(frozen=True)
class Sequence(Value):
    """A tuple or list; ``items`` is None where they are not known."""

    kind: str
    items: tuple[Value, ...] | None = None


@dataclass(frozen=True)
class Container(Value):
    """A ``dict`` or ``set``."""

    kind: str


@dataclass(frozen=True, eq=False)
class Local(Value):
    """A function that is defined in the function that is looked at."""

    node: Any


@dataclass(frozen=True)
class Api(Value):
    """A name of NKI: a function, an operator, a memory, a dtype."""

    name: str

    @property
    def short(self) -> str:
        """``nl.exp`` of ``nki.language.exp`` and of ``neuronxcc.nki.language.exp``."""
        return short(self.name)

    @property
    def legacy(self) -> bool:
        """Return whether the name is one of neuronxcc.nki."""
        return self.name.startswith("neuronxcc.")


def short(name: str) -> str:
    """Return a name of NKI as kernels write it."""
    plain = name.removeprefix("neuronxcc.")
    for module, alias in (("nki.language.", "nl."), ("nki.isa.", "nisa.")):
        if plain.startswith(module):
            return alias + plain.removeprefix(module)
    return plain


def joined(values: Iterable[Value]) -> Value:
    """Return the common knowledge of several values where any may be the case."""
    return reduce(join, values)


def join(first: Value, second: Value) -> Value:
    """Return the common knowledge of two values where either may be the case."""
    if first == second:
        return first
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        memory = first.memory if first.memory == second.memory else ""
        maker = first.maker if first.maker is second.maker else None
        return Tensor(_common(first.shape, second.shape), memory, maker)
    if isinstance(first, Register) and isinstance(second, Register):
        return Register()
    if isinstance(first, Index) and isinstance(second, Index):
        return Index()
    kinds = {_number(first), _number(second)}
    if len(kinds) == 1 and None not in kinds:
        return Number(kinds.pop() or int)
    return UNKNOWN


def _common(first: Sizes | None, second: Sizes | None) -> Sizes | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def _number(value: Value) -> type | None:
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, Constant) and type(value.value) in (int, float):
        return type(value.value)
    return None


def is_float(value: Value) -> bool:
    """Return whether the value is certainly a float."""
    return _number(value) is float


def whole(value: Value) -> int | None:
    """Return the integer that a value stands for, None where the integer is not certain."""
    if isinstance(value, ParDim):
        return whole(value.size)
    known = isinstance(value, Constant) and type(value.value) is int
    return value.value if isinstance(value, Constant) and known else None


def sizes(value: Value) -> Sizes | None:
    """Return a shape: its sizes, as far as they are known."""
    if isinstance(value, Sequence):
        return None if value.items is None else tuple(whole(each) for each in value.items)
    number = whole(value)
    return None if number is None else (number,)
