"""Legal calls spoilt in ordinary ways, one argument at a time, and the rules that the calls themselves break."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pydoc import locate
from typing import Any, NamedTuple

import neuronxcc.nki.isa as old_isa
import neuronxcc.nki.language as old
import numpy as np

import nkitools
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.tiles.tensor import Tensor
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
    *("int8", "uint8", "int32", "uint32", "uint16", "bfloat16", "float8_e4m3", "float8_e8m0fnu", "float8_e4m3fn_x4"),
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
    *(
        0,
        1,
        np.int64(1),
        -1,
        2,
        7,
        3000,
        1.5,
        1e39,
        "x",
        None,
        True,
        [],
        [0],
        [1, 0],
        [[0, 1]],
        [[1, 3], [1, 2]],
        [None],
        (0, 0),
    ),
    {"x": 1},
)


class Made(NamedTuple):
    """A value of an argument that only a running kernel can make."""

    make: Callable[[], Any]


def written(shape: tuple[int, ...], dtype: Any = nl.float32, buffer: Any = nl.sbuf, value: Any = 1) -> Any:
    """A tensor whose elements are all there."""
    return _filled(nl.ndarray(shape, dtype, buffer), value)


def legacy(shape: tuple[int, ...], dtype: Any = np.float32, buffer: Any = old.sbuf, value: Any = 1) -> Any:
    """A tensor of the legacy dialect whose elements are all there."""
    made = old.ndarray(shape, dtype=dtype, buffer=buffer)
    _filled(made.base, value)
    return made


def _filled(tensor: Any, value: Any) -> Any:
    if tensor.dtype.kind != "packed":
        tensor.storage.array[...] = value
    tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
    return tensor


def made_values(make: Any, language: Any) -> tuple[Made, ...]:
    """Return tensors for arguments that are none."""
    return (
        *(Made(lambda shape=shape: make(shape)) for shape in ((8, 1), (8, 4))),
        *(Made(lambda shape=shape: make(shape, language.int32)) for shape in ((7, 1), (1, 1))),
        Made(lambda: make((8, 1), buffer=language.hbm)),
        *(Made(lambda size=size: language.ndarray((size, size), language.int32)) for size in (8, 1)),
    )


MADE = (*made_values(written, nl), Made(lambda: nisa.register_alloc(7)), Made(nisa.register_alloc))
MADE_LEGACY = (*made_values(legacy, old), *(Made(lambda size=size: old.arange(size)[:, None]) for size in (8, 1)))
MASKS: tuple[Any, ...] = (
    *(3, True, False, "x", [True], np.ones((8, 4), bool), *MADE_LEGACY),
    *(Made(lambda size=size: old.arange(size)[:, None] < 4) for size in (8, 5, 1, 32)),
    Made(lambda: old.arange(4)[None, :] < 2),
    Made(lambda: (old.arange(8)[:, None] < 4) & (old.arange(4)[None, :] < 2)),
)


def like(tensor: Any, shape: Any = None, dtype: Any = None, buffer: Any = None) -> Any:
    """A written tensor as another one, but for its shape, dtype or memory."""
    array = tensor.storage.array
    is_plain = array.dtype.names is None
    first = array.flat[0] if is_plain else 0
    same = is_plain and shape is None
    value = array if same else 0 if first != first else first
    make = legacy if is_legacy(tensor) else written
    with np.errstate(all="ignore"):
        return make(shape or tensor.storage.shape, dtype or tensor.dtype, buffer or tensor.buffer, value)


def is_legacy(value: Any) -> bool:
    """Whether it is a tensor of the legacy dialect."""
    return isinstance(value, Tensor)


def rows_of(tensor: Any, size: int) -> tuple[int, ...]:
    """The shape of a tensor with another number of partitions."""
    return (size, *tensor.shape[1:])


def columns_of(tensor: Any, size: int) -> tuple[int, ...]:
    """The shape of a tensor with another size of the last dimension."""
    return (*tensor.shape[:-1], size)


def _last(tensor: Any, part: slice) -> Any:
    return tensor[(*[slice(None)] * (tensor.ndim - 1), part)]


def _rows(tensor: Any, part: slice) -> Any:
    return tensor[(part, *[slice(None)] * (tensor.ndim - 1))]


def tensor_changes() -> Iterator[Wrong]:
    """Yield what is done to one tensor."""
    yield Wrong("1-D", lambda t: like(t, (math.prod(t.shape),)))
    yield Wrong("one element", lambda t: like(t, (1, 1)))
    for more in ((1,), (1, 1), (2, 1, 2, 1)):
        yield Wrong(f"{len(more)} dimensions more", lambda t, more=more: like(t, (t.shape[0], *more, *t.shape[1:])))
    for size in (1, 7, 129):
        yield Wrong(f"{size} partitions", lambda t, size=size: like(t, rows_of(t, size)))
    for size in (1, 5, 600, 70000):
        yield Wrong(f"{size} columns", lambda t, size=size: like(t, columns_of(t, size)))
    yield Wrong("twice as many columns", lambda t: like(t, columns_of(t, 2 * t.shape[-1])))
    for memory in (nl.hbm, nl.psum, nl.sbuf):
        yield Wrong(f"in {memory}", lambda t, memory=memory: like(t, buffer=memory))
    for dtype in DTYPES:
        yield Wrong(f"of {dtype}", lambda t, dtype=dtype: like(t, dtype=getattr(old if is_legacy(t) else nl, dtype)))
    yield Wrong("from partition 3 on", lambda t: _rows(like(t, rows_of(t, t.shape[0] + 3)), slice(3, None)))
    yield Wrong("from partition 40 on", lambda t: _rows(like(t, rows_of(t, 128)), slice(40, 40 + t.shape[0])))
    yield Wrong("every other partition", lambda t: _rows(like(t, rows_of(t, 2 * t.shape[0])), slice(0, None, 2)))
    yield Wrong("every other column", lambda t: _last(like(t, columns_of(t, 2 * t.shape[-1])), slice(0, None, 2)))
    yield Wrong("from column 1 on", lambda t: _last(like(t, columns_of(t, t.shape[-1] + 1)), slice(1, None)))
    yield Wrong("not written", lambda t: (old if is_legacy(t) else nl).ndarray(t.shape, dtype=t.dtype, buffer=t.buffer))


def index_changes() -> Iterator[Wrong]:
    """Yield views by an index that only the modern dialect has."""
    yield Wrong("rows out of bounds", lambda t: like(t, buffer=nl.hbm).vector_select(0, _index(t, 99999)))
    yield Wrong("columns by an index", lambda t: t.indirect(_index(t, 0)))


def legacy_changes() -> Iterator[Wrong]:
    """Yield views that only the legacy dialect has."""
    yield Wrong("partly outside", lambda t: t[old.arange(t.shape[0] + 1)[:, None], old.arange(t.shape[1])[None, :]])
    yield Wrong("by indices", lambda t: t[old.arange(t.shape[0])[:, None], old.arange(t.shape[1])[None, :]])
    yield Wrong("by squares", lambda t: t[old.arange(2)[:, None] * old.arange(2)[:, None], old.arange(2)[None, :]])
    for value in (0, 99):
        yield Wrong(
            "rows by a tile",
            lambda t, value=value: like(t, buffer=old.hbm)[
                legacy((t.shape[0], 1), np.int32, value=value), old.arange(t.shape[1])[None, :]
            ],
        )
    yield Wrong("in blocks", lambda t: like(t, (2, old.par_dim(t.shape[0]), *t.shape[1:])))


def _index(tensor: Any, value: int) -> Any:
    return written((tensor.shape[0], 1), nl.uint32, value=value)


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor, or a list that begins with one."""
    return isinstance(value, (NkiTensor, Tensor)) or (isinstance(value, list) and bool(value) and is_tensor(value[0]))


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
    is_old = function.__module__.startswith("nkitools.dialects.legacy")
    own = legacy_changes() if is_old else index_changes()
    for what, change in (*tensor_changes(), *own) if tensors else ():
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
        for value in _values(role, right.get(role, parameter.default), old if is_old else nl):
            yield Wrong(f"{role}={'a tensor or register' if isinstance(value, Made) else value!r}", _put(role, value))


def _values(role: str, right: Any, language: Any) -> tuple[Any, ...]:
    """Return values that are tried of an argument that may be ``right``."""
    if role == "mask":
        return MASKS
    if is_tensor(right):
        return NO_TILES
    if role == "buffer" or isinstance(right, MemoryRegion):
        return (nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm, "sbuf", "foo", 3)
    if isinstance(right, Enum):
        return (*type(right), "x", 1)
    if re.fullmatch(r"([a-z]+_)?op\d?", role):
        return (*(getattr(language, each) for each in OPERATORS if hasattr(language, each)), "add", 3, None)
    if role.endswith("dtype"):
        return (*(getattr(language, each) for each in DTYPES if hasattr(language, each)), np.int64, np.uint64, "foo", 3)
    if role == "shape":
        return SHAPES
    if isinstance(right, np.ndarray):
        return (
            *OTHERS,
            *(right.astype(each) for each in (np.int64, np.float64, np.bool_)),
            np.ones(()),
            np.ones((0, 4)),
        )
    return (*OTHERS, *(MADE if language is nl else MADE_LEGACY))


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
    seen = [0]  # findings of the run that goes on

    def note(what: str, error: Exception) -> None:
        finding = getattr(error, "finding", None)
        if finding is None and not isinstance(error, MemoryError):
            found.bare.append(f"{what}: {type(error).__name__}: {error}")
        elif finding is not None and is_own(finding):
            found.rules.setdefault(finding.rule, what)

    def attempt(wrong: Wrong) -> None:
        try:
            arguments = wrong.change(make())
        except Exception as error:  # a tensor that there cannot be, or a right call that is refused here
            if not hasattr(error, "finding") and not isinstance(error, (AttributeError, MemoryError)):
                raise
            return
        try:
            called(function, arguments)
        except Exception as error:
            note(wrong.what, error)
        findings = current_findings()
        assert findings is not None
        warnings = [each for each in findings.run.findings[seen[0] :] if is_own(each)]
        seen[0] = len(findings.run.findings)
        for each in warnings:
            found.rules.setdefault(each.rule, wrong.what)

    def kernel() -> None:
        seen[0] = 0
        right.update(right or make())
        for wrong in wrong_calls(function, right):
            attempt(wrong)

    simulate(kernel, chip=chip)
    for settings in ({"chip": "trn1"}, {"chip": "trn3"}, {"nki_version": "0.6"}):
        what, seen[0] = " ".join(settings.values()), 0
        simulate(lambda what=what: attempt(Wrong(what, dict)), **{"chip": chip, **settings})
    try:
        called(function, right)
    except Exception as error:
        note("outside of a kernel", error)
    return found


@cache
def named_rules(doc: str) -> frozenset[str]:
    """The rules that a docstring names, with "NK107 to NK111" spelled out, and those of functions that it refers to."""
    text = " ".join(doc.split())
    found = set(re.findall(r"NK\d{3}", text))
    for first, last in re.findall(r"NK(\d{3}) to NK(\d{3})", text):
        found |= {f"NK{number}" for number in range(int(first), int(last) + 1)} & set(RULES)
    for reference in re.findall(r"nkitools(?:\.\w+)+", text):
        found |= named_rules(_documentation(locate(reference)))
    for language, name in re.findall(r"\bas (?:for )?(nl|nisa)\.(\w+)", text):
        found |= named_rules(_documentation(getattr(old if language == "nl" else old_isa, name, None)))
    return frozenset(found)


def _documentation(found: Any) -> str:
    return getattr(getattr(found, "instruction", found), "__doc__", None) or ""
