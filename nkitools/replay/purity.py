"""The judgement whether a kernel's Python may be left out: what its reachable code reads, and whether that is the same.

Reachable are the kernel's function, the functions, kernels and classes that it names, and what these name in turn. They
may read their arguments, immutable values, functions, classes and modules. Each such name is kept with its value, and
is looked up again before a replay. Anything else that is read, and whatever acts on the world outside, is `Impure`.
"""

from __future__ import annotations

import builtins
import dis
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

# The modules whose functions and classes compute what their arguments say, and change nothing.
_TRUSTED = frozenset({
    "nkitools", "nki", "neuronxcc", "numpy", "ml_dtypes", "math", "cmath", "operator", "functools", "itertools",
    "typing", "typing_extensions", "dataclasses", "enum", "collections", "abc", "contextlib", "builtins", "numbers",
    "fractions", "string", "types", "__future__", "_operator", "_functools", "_collections",
})  # fmt: skip
_OUTSIDE = frozenset({  # what reads files, random numbers or settings in NumPy
    "load", "loadtxt", "fromfile", "genfromtxt", "fromregex", "save", "savez", "savez_compressed", "savetxt", "memmap",
    "random", "seterr", "geterr", "errstate", "set_printoptions", "get_printoptions", "DataSource",
})  # fmt: skip
_BUILTINS = frozenset({
    "abs", "all", "any", "bin", "bool", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "format", "frozenset", "hex", "int", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "oct", "ord", "pow", "property", "range", "repr", "reversed",
    "round", "set", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "NotImplemented",
    "Ellipsis", "__debug__", "__name__", "__build_class__",
})  # fmt: skip
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented), range)
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CHANGES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR")
_FRAMES = frozenset({"__dict__", "__globals__", "__closure__", "__code__", "__defaults__", "f_globals", "f_locals"})

_SHOWN = ("_should_repr_global_name", "_saferepr")  # functions of pytest's module below, called with one value
_OF_PYTEST = "@pytest_ar"  # its name in a rewritten assertion; no source can spell it

_MISSING = object()
Lookup = Callable[[], Any]


class Impure(Exception):
    """A kernel's code reads or changes what is not an argument; the message says what."""


@dataclass(eq=False)
class Reads:
    """The names that reachable code reads from outside, with the values that they had."""

    globals: dict[tuple[int, str], tuple[dict[str, Any], dict[str, Any], str, Any]] = field(default_factory=dict)
    attributes: dict[tuple[int, str], tuple[Any, str, Any]] = field(default_factory=dict)
    cells: dict[int, tuple[CellType, Any]] = field(default_factory=dict)
    functions: dict[int, tuple[FunctionType, CodeType, Any, Any]] = field(default_factory=dict)

    def hold(self) -> bool:
        """Return whether every name still has its value, and every function its code and defaults."""
        for function, code, defaults, named in self.functions.values():
            if function.__code__ is not code or function.__defaults__ != defaults or function.__kwdefaults__ != named:
                return False
        for own, others, name, value in self.globals.values():
            now = own.get(name, _MISSING)
            if now is _MISSING:
                now = others.get(name, _MISSING)
            if now is not value and not _is_same(now, value):
                return False
        for owner, name, value in self.attributes.values():
            now = getattr(owner, name, _MISSING)
            if now is not value and not _is_same(now, value):
                return False
        return all(_is_same(_content(cell), value) for cell, value in self.cells.values())


def _is_same(value: Any, before: Any) -> bool:
    if value is before:
        return True
    # A module's `range` is another object while a kernel of that module runs in another thread.
    if before is range:
        return bool(value == before)
    # 0.0 and -0.0 are equal, and so are 1 and True inside of tuples.
    return type(value) is type(before) and _is_value(before) and value == before and repr(value) == repr(before)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def reads_of(function: Any, *given: Any) -> Reads:
    """Return what a kernel's code and that of its arguments ``given`` reads; `Impure` where it may not be replayed."""
    reads = Reads()
    judgement = _Judgement(reads)
    for each in (function, *given):
        judgement.judge(each, f"`{getattr(each, '__name__', each)}`")
    return reads


def plain_form(value: Any) -> Any:
    """Return what tells an immutable value from all others, None for what may change: a number, a text, a dtype."""
    if isinstance(value, (Enum, np.dtype)) or (isinstance(value, (type, FunctionType)) and _is_trusted(value)):
        return value
    if isinstance(value, np.generic):
        return type(value), value.tobytes()
    if type(value) in _PLAIN or isinstance(value, frozenset):
        return (type(value), repr(value)) if _is_value(value) else None
    return value if _is_token(value) else None


def _is_token(value: Any) -> bool:
    """Return whether a value is an object of nkitools that kernels name: a dtype, an operator, a memory."""
    ours = type(value).__module__.partition(".")[0] == "nkitools"
    return ours and type(value).__hash__ is not None and not hasattr(value, "storage") and not is_kernel(value)


def _is_value(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_value, value))
    if isinstance(value, (Enum, np.generic)):
        return not isinstance(value, (np.void, np.object_))
    return value is range or type(value) in _PLAIN


def _is_trusted(value: Any) -> bool:
    """Return whether a function, a class or an object of a class is of the trusted modules."""
    own = value if isinstance(value, (type, FunctionType, BuiltinFunctionType)) else type(value)
    name = own.__globals__.get("__name__") if isinstance(own, FunctionType) else getattr(own, "__module__", None)
    return str(name).partition(".")[0] in _TRUSTED


class _Judgement:
    """One walk over reachable code."""

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.seen: dict[int, Any] = {}  # kept, so that their ids stay theirs

    def judge(self, value: Any, what: str) -> None:
        """Judge something that code reads; ``what`` names it as the subject of a sentence."""
        if _is_value(value) or isinstance(value, np.dtype) or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        inner = getattr(value, "function", None) if is_kernel(value) else None
        if inner is not None:
            self.judge(inner, what)
        elif isinstance(value, FunctionType):
            self._function(value, what)
        elif isinstance(value, type):
            self._class(value, what)
        elif isinstance(value, functools._lru_cache_wrapper):
            self.judge(value.__wrapped__, what)
        elif isinstance(value, (staticmethod, classmethod)):
            self.judge(value.__func__, what)
        elif isinstance(value, property):
            for each in filter(None, (value.fget, value.fset)):
                self.judge(each, what)
        elif isinstance(value, functools.partial):
            for each in (value.func, *value.args, *value.keywords.values()):
                self.judge(each, what)
        elif isinstance(value, MethodType) or not self._is_leaf(value):
            raise Impure(f"{what} is of class {type(value).__name__}, which can change")

    def _is_leaf(self, value: Any) -> bool:
        """Return whether something is a part of a trusted module, and no data of the author's."""
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, (ModuleType, type, type(None))):
            return _is_trusted(value)
        containers = (list, dict, set, bytearray, np.ndarray)
        return _is_trusted(value) and not isinstance(value, containers) and not hasattr(value, "storage")

    def _class(self, made: type, what: str) -> None:
        for each in made.__mro__:
            if _is_trusted(each):
                continue
            for name, value in vars(each).items():
                known = isinstance(value, (FunctionType, staticmethod, classmethod, property))
                if known or not (name.startswith("_") or _is_descriptor(value)):
                    self.reads.attributes[id(each), name] = (each, name, getattr(each, name))
                    self.judge(value, f"`{name}` of {what}")

    def _function(self, function: FunctionType, what: str) -> None:
        code, named = function.__code__, function.__kwdefaults__
        around = list(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if _is_trusted(function):  # but it may be a decorator's, around a function of the author's
            around = [each for each in around if isinstance(_content(each[1]), FunctionType)]
        for name, cell in around:
            value = _content(cell)
            self.reads.cells[id(cell)] = (cell, value)
            if value is not _MISSING:
                self.judge(value, f"`{name}`, a variable around {function.__qualname__},")
        if _is_trusted(function):
            return
        self.reads.functions[id(function)] = (function, code, function.__defaults__, named and dict(named))
        for value in (*(function.__defaults__ or ()), *(named or {}).values()):
            self.judge(value, f"a default of {function.__qualname__}")
        self._code(code, function, frozenset(code.co_freevars))

    def _code(self, code: CodeType, function: FunctionType, outer: frozenset[str]) -> None:
        instructions = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "PUSH_NULL")]
        stored = {each.argval for each in instructions if each.opname == "STORE_NAME"}
        for at, each in enumerate(instructions):
            name = each.argval
            if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name not in stored:
                if _is_shown(instructions[max(0, at - 2) : at]):
                    continue  # and only where the assertion fails
                self._global(name, function, instructions[at + 1 :])
            elif each.opname == "IMPORT_NAME":
                raise Impure(f"{function.__qualname__} imports {name} while it runs")
            elif each.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
                each.opname in ("STORE_DEREF", "DELETE_DEREF") and name in outer
            ):
                raise Impure(f"{function.__qualname__} changes `{name}`, which outlives the run")
            elif each.opname in _ATTRIBUTES and name in _FRAMES:
                raise Impure(f"{function.__qualname__} reads `{name}` of an object")
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant, function, outer & frozenset(constant.co_freevars))

    def _global(self, name: str, function: FunctionType, following: list[dis.Instruction]) -> None:
        """Judge a global variable or builtin, and the attributes that the next instructions read of it."""
        if name.startswith("@"):
            return  # of pytest, which has rewritten an assert statement
        own, others = function.__globals__, vars(builtins)
        value = own.get(name, others.get(name, _MISSING))
        self.reads.globals[id(own), name] = (own, others, name, value)
        if value is _MISSING:
            return  # a name that is an error when it is reached
        what = f"`{name}`, which {function.__qualname__} reads,"
        if name not in own:
            if name not in _BUILTINS and not (isinstance(value, type) and issubclass(value, BaseException)):
                raise Impure(f"{function.__qualname__} calls {name}")
            if isinstance(value, FunctionType):  # someone's own, in the place of Python's
                self.judge(value, what)
            return
        chain = list(_chain(following))
        for depth, attribute in enumerate(chain):
            if not isinstance(value, (ModuleType, type, FunctionType)):
                break
            if isinstance(value, type) and not _is_trusted(value):
                self.judge(value, what)
            before, value = value, getattr(value, attribute, _MISSING)
            self.reads.attributes[id(before), attribute] = (before, attribute, value)
            what = f"`{'.'.join((name, *chain[: depth + 1]))}`, which {function.__qualname__} reads,"
            if value is _MISSING:
                return
            if isinstance(before, ModuleType) and before.__name__ == "numpy" and attribute in _OUTSIDE:
                raise Impure(f"{what} is no part of the kernel")
        self._no_change(following[len(chain) :], chain, what, value)
        if isinstance(value, ModuleType):
            raise Impure(f"{what} is a module, which is handed on")
        self.judge(value, what)

    def _no_change(self, following: list[dis.Instruction], chain: list[str], what: str, value: Any) -> None:
        """Refuse an attribute that is set, of a function, a class or a module."""
        if following and following[0].opname in ("STORE_ATTR", "DELETE_ATTR"):
            raise Impure(f"`{following[0].argval}` of {what} is set, which outlives the run")


def _chain(following: list[dis.Instruction]) -> Iterator[str]:
    """Yield the names of the attributes that are read one of the other."""
    for each in following:
        if each.opname not in _ATTRIBUTES:
            return
        yield str(each.argval)


def is_kernel(value: Any) -> bool:
    """Return whether a value is a kernel object, which stands above this file."""
    return any(each.__name__ == "KernelObject" for each in type(value).__mro__) and _is_trusted(value)


def _is_descriptor(value: Any) -> bool:
    """Return whether a value of a class is one of Python's own, as a slot is."""
    return type(value).__name__ in ("member_descriptor", "getset_descriptor", "wrapper_descriptor")


def _is_shown(before: list[dis.Instruction]) -> bool:
    """Return whether a name is only shown by an assertion: the two instructions before call a function of pytest."""
    return len(before) == 2 and before[0].argval == _OF_PYTEST and before[1].argval in _SHOWN
