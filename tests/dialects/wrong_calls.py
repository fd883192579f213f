"""Legal calls spoilt in ordinary ways, one argument at a time, and the rules that the calls themselves break."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import nkitools
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run_session import current_findings
from nkitools.rules.catalogue import RULES

Arguments = dict[str, Any]
Change = Callable[[Any], Any]
Simulate = Callable[..., Any]


class Wrong(NamedTuple):
    """A spoilt call: what is wrong with it, and how its arguments are changed."""

    what: str
    change: Change


DTYPES = (
    *("int8", "uint8", "int32", "uint32", "uint16", "float16", "bfloat16", "float8_e4m3", "float8_e8m0fnu"),
    *("float8_e4m3fn_x4", "bool"),
)
OPERATORS = (
    *("add", "multiply", "divide", "power", "maximum", "logical_and", "bitwise_and", "equal", "abs_max", "exp"),
    *("rsqrt", "bypass", "prelu", "average", "max"),
)
NO_TILES: tuple[Any, ...] = (3, 2.5, True, "tile", None, [], [1, 2], np.ones((8, 4), np.float32), len)
SHAPES: tuple[Any, ...] = (
    *((129, 4), (256, 4), (8, 70000), (4,), (1,) * 6, (8, 0), (8, -1), (8, 2.5), (5, 4), (8, 8), (4, 8), (8, 1, 4)),
    *((), "x", None, 1.5, [0], {"x": 1}),
)
OTHERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 7, 3000, 1.5, 1e39, "x", None, True, [], [0], [1, 0], [[0, 1]], [[1, 3], [1, 2]], [None], (0, 0)),
    {"x": 1},
)


class Made(NamedTuple):
    """A value of an argument that only a running kernel can make."""

    make: Callable[[], Any]


def written(shape: tuple[int, ...], dtype: Any = nl.float32, buffer: Any = nl.sbuf, value: Any = 1) -> Any:
    """A tensor whose elements are all there."""
    made = nl.ndarray(shape, dtype, buffer)
    if made.dtype.kind != "packed":
        made.storage.array[...] = value
    made.storage.mark_written(made.layout, made.byte_offset)
    return made


MADE = tuple(
    map(
        Made,
        (
            *(lambda: written((8, 1)), lambda: written((8, 4)), lambda: written((7, 1), nl.int32)),
            *(lambda: written((8, 1), buffer=nl.hbm), lambda: written((1, 1), nl.int32)),
            *(lambda: nl.ndarray((8, 4), nl.float32), lambda: nl.ndarray((1, 1), nl.int32)),
            *(lambda: nisa.register_alloc(7), lambda: nisa.register_alloc()),
        ),
    )
)


def like(tensor: Any, shape: Any = None, dtype: Any = None, buffer: Any = None) -> Any:
    """A written tensor as another one, but for its shape, dtype or memory."""
    array = tensor.storage.array
    is_plain = array.dtype.names is None
    first = array.flat[0] if is_plain else 0
    same = is_plain and shape is None
    value = array if same else 0 if first != first else first
    with np.errstate(all="ignore"):
        return written(shape or tensor.storage.shape, dtype or tensor.dtype, buffer or tensor.buffer, value)


def rows_of(tensor: Any, size: int) -> tuple[int, ...]:
    """The shape of a tensor with another number of partitions."""
    return (size, *tensor.shape[1:])


def columns_of(tensor: Any, size: int) -> tuple[int, ...]:
    """The shape of a tensor with another size of the last dimension."""
    return (*tensor.shape[:-1], size)


def _last(tensor: Any, part: slice) -> Any:
    return tensor[(*[slice(None)] * (tensor.ndim - 1), part)]


def tensor_changes() -> Iterator[Wrong]:
    """Yield what is done to one tensor."""
    yield Wrong("1-D", lambda t: like(t, (math.prod(t.shape),)))
    yield Wrong("one element", lambda t: like(t, (1, 1)))
    for more in (1, 2, 4):
        yield Wrong(f"{more} dimensions more", lambda t, more=more: like(t, (t.shape[0], *[1] * more, *t.shape[1:])))
    for size in (1, 7, 129, 256):
        yield Wrong(f"{size} partitions", lambda t, size=size: like(t, rows_of(t, size)))
    for size in (1, 3, 5, 8, 600, 70000):
        yield Wrong(f"{size} columns", lambda t, size=size: like(t, columns_of(t, size)))
    yield Wrong("twice as many columns", lambda t: like(t, columns_of(t, 2 * t.shape[-1])))
    for memory in ("hbm", "shared_hbm", "psum", "sbuf"):
        yield Wrong(f"in {memory}", lambda t, memory=memory: like(t, buffer=getattr(nl, memory)))
    for dtype in DTYPES:
        yield Wrong(f"of {dtype}", lambda t, dtype=dtype: like(t, dtype=getattr(nl, dtype)))
    yield Wrong("from partition 3 on", lambda t: like(t, rows_of(t, t.shape[0] + 3))[3:])
    yield Wrong("from partition 40 on", lambda t: like(t, rows_of(t, 128))[40 : 40 + t.shape[0]])
    yield Wrong("every other partition", lambda t: like(t, rows_of(t, 2 * t.shape[0]))[0 : 2 * t.shape[0] : 2])
    yield Wrong("every other column", lambda t: _last(like(t, columns_of(t, 2 * t.shape[-1])), slice(0, None, 2)))
    yield Wrong("from column 1 on", lambda t: _last(like(t, columns_of(t, t.shape[-1] + 1)), slice(1, None)))
    yield Wrong("not written", lambda t: nl.ndarray(t.shape, t.dtype, t.buffer))
    yield Wrong("rows out of bounds", lambda t: like(t, buffer=nl.hbm).vector_select(0, _index(t, 99999)))
    yield Wrong("columns by an index", lambda t: t.indirect(_index(t, 0)))


def _index(tensor: Any, value: int) -> Any:
    return written((tensor.shape[0], 1), nl.uint32, value=value)


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, or a list that begins with one."""
    return isinstance(value, NkiTensor) or (isinstance(value, list) and bool(value) and is_tensor(value[0]))


def _changed(value: Any, change: Change) -> Any:
    if isinstance(value, list):
        return [_changed(each, change) for each in value]
    return change(value) if is_tensor(value) else value


def _one(role: str, change: Change) -> Change:
    return lambda arguments: {**arguments, role: _changed(arguments[role], change)}


def _all(change: Change) -> Change:
    return lambda arguments: {role: _changed(value, change) for role, value in arguments.items()}


def _put(role: str, value: Any) -> Change:
    return lambda arguments: {**arguments, role: value.make() if isinstance(value, Made) else value}


def wrong_calls(function: Any, right: Arguments) -> Iterator[Wrong]:
    """Yield spoilt calls of a function, of which ``right`` are the arguments of a legal one."""
    yield Wrong("nothing", dict)
    yield Wrong("an unknown keyword", lambda arguments: {**arguments, "no_such_argument": 1})
    tensors = [role for role, value in right.items() if is_tensor(value)]
    for what, change in tensor_changes() if tensors else ():
        yield Wrong(f"all {what}", _all(change))
        for role in tensors if len(tensors) > 1 else ():
            yield Wrong(f"{role} {what}", _one(role, change))
    for role in tensors:
        for other in tensors:
            if role != other and isinstance(right[role], list) == isinstance(right[other], list):
                yield Wrong(f"{role} is {other}", lambda a, role=role, other=other: {**a, role: a[other]})
    for role, parameter in inspect.signature(function).parameters.items():
        if role == "self" or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty:
            yield Wrong(f"no {role}", lambda a, role=role: {name: a[name] for name in a if name != role})
        for value in _values(role, right.get(role, parameter.default)):
            yield Wrong(f"{role}={'a tensor or register' if isinstance(value, Made) else value!r}", _put(role, value))


def _values(role: str, right: Any) -> tuple[Any, ...]:
    """Return values that are tried of an argument that may be ``right``."""
    if is_tensor(right):
        return NO_TILES
    if role == "buffer" or isinstance(right, MemoryRegion):
        return (nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm, "sbuf", "foo", 3)
    if isinstance(right, Enum):
        return (*type(right), "x", 1)
    if re.fullmatch(r"([a-z]+_)?op\d?", role):
        return (*(getattr(nl, each) for each in OPERATORS), "add", 3, None)
    if role.endswith("dtype"):
        return (*(getattr(nl, each) for each in DTYPES), np.int64, np.uint64, "foo", 3)
    if role == "shape":
        return SHAPES
    if isinstance(right, np.ndarray):
        return (
            *OTHERS,
            *(right.astype(each) for each in (np.int64, np.float64, np.bool_)),
            np.ones(()),
            np.ones((0, 4)),
        )
    return (*OTHERS, *MADE)


def called(function: Any, arguments: Arguments) -> None:
    """Call a function; the findings at this line are its own."""
    function(**arguments)


def is_own(finding: Any) -> bool:
    """Whether a finding is about the line of the call."""
    return (finding.file, finding.line) == (__file__, called.__code__.co_firstlineno + 2)


class Broken(NamedTuple):
    """What spoilt calls of a function gave: for each rule what was wrong first, and exceptions that no rule has."""

    rules: dict[str, str]
    bare: list[str]


def broken_by(
    function: Any, make: Callable[[], Arguments], simulate: Simulate = nkitools.simulate, chip: str = "trn2"
) -> Broken:
    """Return what the spoilt calls of a function break, each the first error of its own."""
    found = Broken({}, [])
    right: Arguments = {}

    def note(what: str, error: Exception) -> None:
        finding = getattr(error, "finding", None)
        if finding is None and not isinstance(error, MemoryError):
            found.bare.append(f"{what}: {type(error).__name__}: {error}")
        elif finding is not None and is_own(finding):
            found.rules.setdefault(finding.rule, what)

    def attempt(wrong: Wrong) -> None:
        try:
            arguments = wrong.change(make())
        except nkitools.KernelError:  # a tensor that there cannot be, or a right call that is refused here
            return
        try:
            called(function, arguments)
        except Exception as error:
            note(wrong.what, error)
        findings = current_findings()
        assert findings is not None
        for each in findings.run.findings:
            if is_own(each):
                found.rules.setdefault(each.rule, wrong.what)

    def kernel() -> None:
        right.update(right or make())
        for wrong in wrong_calls(function, right):
            attempt(wrong)

    simulate(kernel, chip=chip)
    for settings in ({"chip": "trn1"}, {"chip": "trn3"}, {"nki_version": "0.6"}):
        what = " ".join(settings.values())
        simulate(lambda what=what: attempt(Wrong(what, dict)), **{"chip": chip, **settings})
    try:
        called(function, right)
    except Exception as error:
        note("outside of a kernel", error)
    return found


@cache
def named_rules(doc: str) -> frozenset[str]:
    """The rules that a docstring names, with "NK107 to NK111" spelled out."""
    text = " ".join(doc.split())
    found = set(re.findall(r"NK\d{3}", text))
    for first, last in re.findall(r"NK(\d{3}) to NK(\d{3})", text):
        found |= {f"NK{number}" for number in range(int(first), int(last) + 1)} & set(RULES)
    return frozenset(found)
