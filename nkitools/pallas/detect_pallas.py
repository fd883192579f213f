"""The distinction of a JAX function from an NKI kernel, without importing JAX or calling the function.

A function counts as JAX's when it is

- an object of JAX's own (a result of ``jax.jit``, a function out of a JAX module),
- a partial, a bound method or a callable object whose function counts,
- a plain function that names something of JAX: in its code, in functions defined within it, through its closure, or in
  a function of the author's that it calls.

This is a guess by design. A function that reaches JAX only at run time (a registry, a string) is not seen, and a
function whose body uses JAX and launches NKI kernels is taken for JAX's. To be sure, call ``nkitools.pallas.run`` or
``nkitools.simulate`` instead of leaving the choice to ``run_kernel``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.named_values import attributes_named, globals_named, names_in, variables_around

_JAX = frozenset({"jax", "jaxlib"})

# Nothing in these is a JAX function, though some convert JAX arrays or dispatch on them.
_NEVER = frozenset({"neuronxcc", "nki", "nkitools", "numpy", "scipy"}) | sys.stdlib_module_names


def is_pallas_function(fn: Callable[..., Any]) -> bool:
    """Return True if ``fn`` is taken for a JAX function; ``fn`` is not called.

    True for a function that JAX has made (``jax.jit``) or defines, and for a function whose code names JAX or another
    such function; partials, methods and callable objects count as the function that they call. This is a guess: JAX
    that is reached by a registry or a text is not seen.
    """
    return _uses_jax(fn, set())


def _uses_jax(value: object, seen: set[int]) -> bool:
    """Return whether ``value`` is JAX's, or calls functions that are; ``seen``: functions already looked into."""
    value = _callee(value)
    if _is_jax_object(value):
        return True
    if not isinstance(value, FunctionType) or id(value) in seen or _package(_home(value)) in _NEVER:
        return False
    seen.add(id(value))
    if any(_package(name) in _JAX for name in names_in(value.__code__)):
        return True
    # What the functions of other installed libraries call is not the author's.
    follow = _is_jax_object if is_installed(value.__code__.co_filename) else functools.partial(_uses_jax, seen=seen)
    return any(follow(target) for target in _targets(value))


def _callee(value: object) -> object:
    """Return the function that runs when ``value`` is called: that of a partial, a method or a callable object."""
    while isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, MethodType):
        value = value.__func__
    if isinstance(value, FunctionType | type) or _is_jax_object(value):
        return value
    return next((vars(kind)["__call__"] for kind in type(value).__mro__ if "__call__" in vars(kind)), None)


def _is_jax_object(value: object) -> bool:
    """Return whether ``value`` is a module, a type or a function of JAX, or an object of one of its types."""
    if isinstance(value, ModuleType):
        return _package(value.__name__) in _JAX
    if isinstance(value, FunctionType):
        return _package(_home(value)) in _JAX
    if isinstance(value, type):
        return _package(value.__module__) in _JAX
    # A jitted function answers `__module__` with its author's module, so its type decides.
    return _package(type(value).__module__) in _JAX


def _home(function: FunctionType) -> str | None:
    """Return the module that defines a function; a wrapper's `__module__` may name another one."""
    return function.__globals__.get("__name__")


def _package(path: str | None) -> str:
    """Return the package that a dotted path starts with; a function's globals need not name a module."""
    return path.partition(".")[0] if isinstance(path, str) else ""


def _targets(function: FunctionType) -> Iterator[object]:
    """Yield the values of the function's names and closure, and members of modules among them that it may use."""
    names = names_in(function.__code__)
    for value in (*globals_named(function).values(), *variables_around(function).values()):
        yield value
        if isinstance(value, ModuleType):
            yield from attributes_named(value, names).values()
