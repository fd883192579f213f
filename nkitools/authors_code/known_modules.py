"""The modules that are trusted: the results of their functions follow from the arguments alone."""

from __future__ import annotations

import os
import sys
from typing import Any

# The modules whose functions and classes compute what their arguments say.
TRUSTED = frozenset({
    "nkitools", "nki", "neuronxcc", "numpy", "ml_dtypes", "scipy", "jax", "jaxlib", "math", "cmath", "operator",
    "functools", "itertools", "typing", "typing_extensions", "dataclasses", "enum", "collections", "abc", "contextlib",
    "builtins", "numbers", "fractions", "decimal", "statistics", "string", "textwrap", "re", "bisect", "heapq", "copy",
    "struct", "json", "logging", "types", "warnings", "__future__", "_operator", "_functools", "_collections",
    "copyreg", "reprlib", "_abc", "_bisect", "_heapq", "_struct", "_decimal", "_warnings", "_json", "_typing",
})  # fmt: skip
_OUTSIDE = frozenset({  # what reads files, random numbers or settings in NumPy, SciPy and JAX
    "load", "loadtxt", "fromfile", "genfromtxt", "fromregex", "save", "savez", "savez_compressed", "savetxt", "memmap",
    "random", "seterr", "geterr", "errstate", "set_printoptions", "get_printoptions", "DataSource", "config", "io",
    "lib", "devices", "local_devices", "device_count", "default_backend",
})  # fmt: skip
_OUTSIDE_OF = ("numpy", "scipy", "jax")
SEEDED = frozenset({"jax.random"})  # whose results follow from a key
BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "bool", "bytearray", "bytes", "callable", "chr", "classmethod", "complex",
    "dict", "divmod", "enumerate", "filter", "float", "format", "frozenset", "getattr", "hasattr", "hash", "hex", "int",
    "isinstance", "issubclass", "iter", "len", "list", "map", "max", "memoryview", "min", "next", "object", "oct",
    "ord", "pow", "print", "property", "range", "repr", "reversed", "round", "set", "setattr", "slice", "sorted",
    "staticmethod", "str", "sum", "super", "tuple", "type", "zip", "NotImplemented", "Ellipsis", "__debug__",
    "__name__", "__build_class__",
})  # fmt: skip
FRAMES = frozenset({"__globals__", "__closure__", "__code__", "__subclasses__", "f_globals", "f_locals", "gi_frame"})


def module_name(value: Any) -> str:
    """Return the name of the module that defines a function, a class, or an object's class."""
    space = getattr(value, "__globals__", None)
    if isinstance(space, dict):
        is_generated = value.__code__.co_filename.startswith("<nkitools generated")
        return "nkitools" if is_generated else str(space.get("__name__", ""))
    named = getattr(value, "__module__", None)
    if not isinstance(named, str):
        own = getattr(value, "__self__", None)
        named = getattr(own, "__name__", None) if own is not None else None
    return named if isinstance(named, str) else str(getattr(type(value), "__module__", ""))


def is_trusted(name: str) -> bool:
    """Return True for a module (its name) whose functions depend on their arguments alone; see `is_outside`."""
    return name.partition(".")[0] in TRUSTED


def is_of_python(name: str) -> bool:
    """Return True for a module (its name) of Python's standard library."""
    return name.partition(".")[0] in sys.stdlib_module_names


def is_outside(module: str, attribute: str) -> bool:
    """Return True for a function of a trusted module that reads files, the time, random numbers or the environment."""
    if module in SEEDED or f"{module}.{attribute}" in SEEDED:
        return False
    return module.partition(".")[0] in _OUTSIDE_OF and attribute in _OUTSIDE


_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))  # of any environment
_INSTALLED = (os.path.dirname(os.__file__) + os.sep, "<frozen")  # sysconfig would take a millisecond for it


def is_installed(file: str) -> bool:
    """Return whether a file belongs to Python or to an installed package, not to the author."""
    return file.startswith(_INSTALLED) or any(part in file for part in _PACKAGES)
