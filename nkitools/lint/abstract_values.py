"""Abstract values: constants, tensors, registers and indices, as far as the source alone shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import reduce
from typing import Any

from nkitools.facts.light_classes import dataclass, field


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
    """A tensor, as far as it is known."""

    shape: Sizes | None = None  # its sizes
    memory: str = ""  # sbuf, psum or hbm; empty where not known
    maker: ast.AST | None = field(default=None, compare=False)  # the call that made it
    dtype: str = ""  # the name of its dtype in nl.*; empty where not known

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


@dataclass(frozen=True)
class Scalar(Value):
    """A scalar of the device, or what comparing one gives; nothing of it may be used in Python."""

    dtype: str = ""  # int32 or int64; empty where not known
    compared: bool = False  # whether it is the result of a comparison
    maybe_register: bool = False  # whether it may be a register: a loop's counter is one where a bound is


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
    """A slice or nl.ds."""

    size: int | None = None  # how many elements of a dimension; None where not known
    whole: bool = False  # whether it is all of them
    start: Value = UNKNOWN  # the first one of nl.ds


@dataclass(frozen=True)
class Piece(Value):
    """An item of an unknown container, by its keys."""

    keys: tuple[Value, ...]


@dataclass(frozen=True)
class Sequence(Value):
    """A tuple or list; ``items`` is None if unknown."""

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
        dtype = first.dtype if first.dtype == second.dtype else ""
        return Tensor(_common(first.shape, second.shape), memory, maker, dtype)
    if isinstance(first, Register) and isinstance(second, Register):
        return Register()
    if isinstance(first, Scalar) and isinstance(second, Scalar):
        dtype = first.dtype if first.dtype == second.dtype else ""
        return Scalar(dtype, maybe_register=first.maybe_register or second.maybe_register)
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
    """Return the integer that a value stands for; None if it is uncertain."""
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
