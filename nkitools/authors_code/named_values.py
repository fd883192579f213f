"""The values that a function's code names outside of itself: global variables, variables around it, attributes."""

from __future__ import annotations

from collections.abc import Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

from nkitools.authors_code.source_text import nested_codes


def names_in(code: CodeType) -> dict[str, None]:
    """Return the names of globals, attributes and modules in ``code`` and in the functions defined within it."""
    return dict.fromkeys(name for each in nested_codes(code) for name in each.co_names)


def globals_named(function: FunctionType) -> dict[str, Any]:
    """Return the global variables that a function may read, without those that have no value."""
    return of_names(names_in(function.__code__), function.__globals__)


def variables_around(function: FunctionType) -> dict[str, Any]:
    """Return the variables of enclosing functions that a function uses, without those that have no value yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def attributes_named(module: ModuleType, names: Iterable[str]) -> dict[str, Any]:
    """Return the attributes of a module that have one of these names."""
    return of_names(names, vars(module))


def of_names(names: Iterable[str], variables: dict[str, Any]) -> dict[str, Any]:
    """Return the ``variables`` that have one of these names, in the order of the names."""
    return {name: variables[name] for name in names if name in variables}
