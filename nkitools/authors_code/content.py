"""The content of an author's values and functions as one key: two keys are equal only if runs with either do the same.

The key of a function covers its code, its defaults, the variables around it and the names that it reads; these with
their own content in turn, down to numbers, texts and arrays. If some content cannot be known, the key comes with the
reason, and results are not kept.
"""

from __future__ import annotations

import copyreg
import functools
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from nkitools.authors_code.code_reads import MISSING, reads_of
from nkitools.authors_code.data_content import MOST_BYTES, Content, DataWalk
from nkitools.authors_code.instructions import constants_of
from nkitools.authors_code.known_modules import BUILTINS, is_of_python, is_outside, is_trusted, module_name

_CALLABLE_PARTS = (
    "wrapper_descriptor", "method_descriptor", "getset_descriptor", "member_descriptor", "classmethod_descriptor",
    "method-wrapper", "ufunc",
)  # fmt: skip
_NO_CONTENT = frozenset({
    "__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__", "_abc_impl",
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__builtins__", "__cached__",
    "__loader__", "__spec__", "__file__", "__path__", "__warningregistry__", "__conditional_annotations__",
})  # fmt: skip
_first_keys: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""The keys of functions with ``functools.lru_cache``, taken while they had no results."""


def content_of(*values: Any) -> Content:
    """Return the key of values: arrays, containers, objects, functions, kernels."""
    walk = _Walk(MOST_BYTES)
    try:
        for each in values:
            walk.add(each, f"`{getattr(each, '__name__', type(each).__name__)}`")
    except RecursionError:
        walk.refuse("values are nested too deep")
    return walk.content


class _Walk(DataWalk):
    """The key of values and functions while it is computed."""

    def _add_other(self, value: Any, what: str) -> None:
        if not self._add_code(value, what):
            self._object(value, what)

    def _add_code(self, value: Any, what: str) -> bool:
        if isinstance(value, FunctionType):
            self._function(value, what)
        elif isinstance(value, CodeType):
            self._add_code_object(value)
        elif isinstance(value, CellType):
            self._cell(value, what)
        elif isinstance(value, ModuleType):
            self._module(value, what)
        elif isinstance(value, type):
            self._class(value, what)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._remembering(value, what)
        elif isinstance(value, (BuiltinFunctionType, MethodType)) or type(value).__name__ in _CALLABLE_PARTS:
            self._part(value, what)
        elif isinstance(value, (staticmethod, classmethod)):
            self._say(type(value).__name__)
            self.add(value.__func__, what)
        elif isinstance(value, property):
            self._mapping("property", enumerate((value.fget, value.fset, value.fdel)), what)
        elif isinstance(value, functools.cached_property):
            self._say("cached_property")
            self.add(value.func, what)
        elif isinstance(value, functools.singledispatchmethod):  # its cache, from Python 3.13 on, does not count
            self._mapping("singledispatchmethod", enumerate((value.dispatcher, value.func)), what)
        elif isinstance(value, functools.partial):
            self._mapping("partial", enumerate((value.func, value.args, value.keywords, vars(value))), what)
        else:
            return False
        return True

    def _function(self, function: FunctionType, what: str) -> None:
        module = module_name(function)
        trusted = is_trusted(module)
        # An instruction's function is made anew where plans are added to it, under the same names.
        self._say("function", str(function.__module__) if trusted else module, function.__qualname__)
        if is_outside(module, function.__name__) or (is_of_python(module) and not trusted):
            self.refuse(f"{what} uses {module}.{function.__qualname__}")
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if not (trusted and _is_machinery(cell, module)):
                self._say(name)
                self._has_data = True
                self.add(cell, f"`{name}`, a variable around {function.__qualname__},")
        if trusted:
            return
        self._add_code_object(function.__code__)
        for default in (function.__defaults__, function.__kwdefaults__):
            self.add(default, f"a default of {function.__qualname__}")
        self._mapping("attributes", sorted(vars(function).items()), f"an attribute of {function.__qualname__}")
        self._say(*(f"{name}: {_shown(each)}" for name, each in _annotations(function).items()))
        for name, value, unknown in reads_of(function):
            self._say("reads", name)
            self._has_data = self._has_data or not isinstance(value, (FunctionType, BuiltinFunctionType, type))
            if unknown:
                self.refuse(unknown)
            elif value is not MISSING:
                self.add(value, f"`{name}`, which {function.__qualname__} reads,")

    def _add_code_object(self, code: CodeType) -> None:
        self._say("code", code.co_qualname, code.co_code.hex(), code.co_exceptiontable.hex())
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self._say(str((*counts, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars)))
        place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        constants = [repr(each) for each in code.co_consts if type(each) in (int, float, str, bytes)]
        parts = (place, code.co_linetable.hex(), code.co_code.hex(), code.co_names, *constants)
        self._code.update("\n".join(map(str, parts)).encode("utf-8", "surrogatepass"))
        for constant in constants_of(code):
            if isinstance(constant, CodeType):
                self._add_code_object(constant)
            else:
                self.add(constant, "a constant")

    def _cell(self, cell: CellType, what: str) -> None:
        try:
            self.add(cell.cell_contents, what)
        except ValueError:
            self._say("empty cell")

    def _module(self, module: ModuleType, what: str) -> None:
        self._say("module", module.__name__)
        if is_trusted(module.__name__):
            return
        if is_of_python(module.__name__):
            self.refuse(f"{what} is the module {module.__name__}")
            return
        self._names(vars(module), f"module {module.__name__}")

    def _names(self, space: Mapping[str, Any], what: str) -> None:
        for name, value in sorted(space.items()):
            if name not in _NO_CONTENT:
                self._say(name)
                self.add(value, f"`{name}` of {what}")

    def _class(self, made: type, what: str) -> None:
        module = str(made.__module__)
        self._say("class", module, made.__qualname__)
        if _is_trusted_class(made):
            return
        if is_of_python(module) and not is_trusted(module):
            self.refuse(f"{what} is of class {module}.{made.__qualname__}")
            return
        if not _is_trusted_class(type(made)):
            self.add(type(made), what)
        self._names(vars(made), made.__qualname__)
        for base in made.__bases__:
            self.add(base, what)

    def _remembering(self, value: Any, what: str) -> None:
        """Add a function with a cache; refuse it if what it reads may have changed since the cache was empty."""
        self._say("lru_cache", str(value.cache_parameters()))
        walk = self._apart(value.__wrapped__, what)
        key = walk.content.key
        if not value.cache_info().currsize:
            _first_keys[value] = key
        elif walk._has_data and _first_keys.get(value) != key:
            self.refuse(f"{what} keeps results that may follow from earlier values")
        self._say(key)

    def _part(self, value: Any, what: str) -> None:
        """Add a method, or a function that is not written in Python."""
        owner = getattr(value, "__objclass__", None) or getattr(value, "__self__", None)
        self._say(type(value).__name__, str(getattr(value, "__qualname__", getattr(value, "__name__", ""))))
        if isinstance(value, MethodType):
            self.add(value.__func__, what)
        if owner is not None and not isinstance(owner, ModuleType):
            self.add(owner, what)
        elif not isinstance(value, MethodType) and not _is_known_function(value):
            self.refuse(f"{what} uses {module_name(value)}.{value.__name__}")

    def _object(self, value: Any, what: str) -> None:
        module, trusted = str(type(value).__module__), _is_trusted_class(type(value))
        key = getattr(type(value), "content_key", None)
        if key is not None and trusted:
            self._say(type(value).__qualname__, str(value.content_key))
        elif _is_kernel(value):
            self._say("kernel", type(value).__qualname__, str(value.grid))
            self.add(value.options, what)
            self.add(value.function, what)
        elif trusted and hasattr(value, "__wrapped__"):  # a function that JAX compiles
            self._say(type(value).__qualname__)
            self.add(value.__wrapped__, what)
        elif module.partition(".")[0] == "nkitools":
            self._own_object(value, what)
        elif trusted:
            self._reduced(value, what)
        elif is_of_python(module) and module != "builtins" and not is_trusted(module):
            self.refuse(f"{what} is of class {module}.{type(value).__qualname__}")
        else:
            self._authors_object(value, what)

    def _own_object(self, value: Any, what: str) -> None:
        """Add an object of nkitools that kernels name: a dtype, an operator, a memory."""
        if hasattr(value, "storage"):
            self.refuse(f"{what} is of class {type(value).__name__}, which can change")
        elif f"{id(value):x}" in (shown := repr(value)):
            self._reduced(value, what)
        else:
            self._say(type(value).__qualname__, shown)

    def _reduced(self, value: Any, what: str) -> None:
        """Add an object by the parts that its class gives for copying or pickling."""
        if type(value).__module__ == "itertools":  # pickling them is deprecated from Python 3.12 on
            self.refuse(f"{what} is of class {type(value).__name__}, whose content cannot be read")
            return
        try:
            made = copyreg.dispatch_table.get(type(value))
            parts = _random_state(value) or (made(value) if made is not None else value.__reduce_ex__(4))
        except Exception:  # whatever the class raises
            parts = None
        if parts is None:
            self.refuse(f"{what} is of class {type(value).__name__}, whose content cannot be read")
        elif isinstance(parts, str):
            self._say(type(value).__qualname__, parts)
        else:
            self._say(type(value).__qualname__)
            made, args, state, items, pairs = (*parts, *[None] * 5)[:5]
            for each in (made, args, state, *(None if those is None else list(those) for those in (items, pairs))):
                self.add(each, what)

    def _authors_object(self, value: Any, what: str) -> None:
        self._add_parts(value, what)
        plain = next((base for base in type(value).__mro__ if not base.__flags__ & _HEAP_TYPE), object)
        if plain in (list, tuple, dict, set, frozenset, deque, int, float, complex, str, bytes):
            self.add(plain(value), what)
        elif issubclass(plain, BaseException):
            self.add(value.args, what)
        elif plain is not object or _has_hidden_state(type(value)):
            self.refuse(f"{what} is of class {type(value).__name__}, whose content cannot be read")

    def _add_parts(self, value: Any, what: str) -> None:
        self.add(type(value), what)
        self._names({str(name): each for name, each in getattr(value, "__dict__", {}).items()}, what)
        for name, slot in _slots(type(value)):
            self._say(name)
            self.add(slot.__get__(value), what) if hasattr(value, name) else self._say("empty")


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that was made while Python ran
_WORD = 8  # bytes


def _is_trusted_class(made: type) -> bool:
    """Return True for a class that a trusted module defines by name.

    A class that a function makes is trusted in nkitools and jaxlib alone.
    """
    if not is_trusted(str(made.__module__)):
        return False
    if not made.__flags__ & _HEAP_TYPE:
        return True
    found: Any = sys.modules.get(made.__module__)
    for part in made.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is made or made.__module__.partition(".")[0] in ("nkitools", "jaxlib")


def _is_known_function(value: Any) -> bool:
    """Return True for a function written in C whose result depends on its arguments alone."""
    module = module_name(value)
    if module == "builtins":
        return value.__name__ in BUILTINS
    return is_trusted(module) and not is_outside(module, value.__name__) and not module.startswith("numpy.random")


def _slots(made: type) -> list[tuple[str, Any]]:
    own = [(name, slot) for base in made.__mro__ for name, slot in vars(base).items()]
    return [(name, slot) for name, slot in own if type(slot).__name__ == "member_descriptor"]


def _has_hidden_state(made: type) -> bool:
    """Return True if objects of a class take more memory than their attributes, as with a base class written in C."""
    return made.__basicsize__ > object.__basicsize__ + _WORD * (2 + len(_slots(made)))


def _random_state(value: Any) -> tuple[Any, ...] | None:
    """Return the state of a random generator of NumPy; None for another object."""
    if not type(value).__module__.startswith("numpy.random"):
        return None
    if hasattr(value, "get_state"):
        return type(value).__name__, value.get_state(legacy=False)
    generator = getattr(value, "bit_generator", value)
    return type(value).__name__, (generator.state, repr(getattr(generator, "seed_seq", None)))


def _is_kernel(value: Any) -> bool:
    """Return True for a kernel object; its class is found by name, as this package may not import it."""
    return any(each.__name__ == "KernelObject" for each in type(value).__mro__)


def _is_machinery(cell: CellType, module: str) -> bool:
    """Return True if a cell of a trusted function changes no result: a lock, a weak reference, a kept plan."""
    try:
        value = cell.cell_contents
    except ValueError:
        return True
    if module.partition(".")[0] == "nkitools":
        return not isinstance(value, FunctionType) or is_trusted(module_name(value))
    return type(value).__module__ in ("weakref", "_weakref", "_thread", "_weakrefset", "threading")


def _annotations(function: FunctionType) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14) and function.__annotate__ is not None:
        return {}  # they are code, which may read names that do not exist
    return function.__annotations__


def _shown(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return str(getattr(annotation, "__qualname__", type(annotation).__qualname__))
