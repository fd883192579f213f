"""Functions and kernels that another process finds again: by the file or module that they stand in, and their name."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

_LOADED: dict[str, ModuleType] = {}  # modules of files, by path


@dataclass(frozen=True)
class NamedFunction:
    """The place of a function: its module, the module's file, and its name there."""

    module: str
    file: str
    name: str

    def found(self) -> Any:
        """Return the function; its module is imported, or its file is loaded where no import leads there."""
        value: Any = module_of(self.module, self.file)
        for part in self.name.split("."):
            value = getattr(value, part)
        return value


def named(function: Any) -> NamedFunction:
    """Return the place of a function or a kernel.

    ValueError where its name does not lead back to it, as of a lambda or of a function inside of another one.
    """
    inner = inspect.unwrap(function) if callable(function) else function
    module, name = getattr(inner, "__module__", None), getattr(inner, "__qualname__", None)
    owner = sys.modules.get(str(module)) or next((each for each in _LOADED.values() if each.__name__ == module), None)
    if owner is None or name is None:
        module, name, owner = _operator_place(function)
    file = getattr(owner, "__file__", None)
    if owner is None or file is None or "<" in str(name) or _at(owner, str(name)) is not function:
        shown = str(name or function).rpartition(".")[2]
        raise ValueError(f"{shown} is not found again in another process: define it at the top of a file, by its name")
    return NamedFunction(str(module), str(file), str(name))


def module_of(name: str, file: str) -> ModuleType:
    """Return the module of a file: that of its name where an import leads to the file, else the loaded file."""
    there = sys.modules.get(name)
    if there is not None and _is_file(getattr(there, "__file__", None), file):
        return there
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is not None and _is_file(spec.origin, file):
        return importlib.import_module(name)
    if file not in _LOADED:
        from nkitools.targets.comparison_worker import load

        _LOADED[file] = load(file)
    return _LOADED[file]


def _operator_place(function: Any) -> tuple[str | None, str | None, ModuleType | None]:
    """Return where an object without a module of its own stands: a custom operator that a file has as a name."""
    for module in [*_LOADED.values(), *sys.modules.values()]:
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is function and getattr(module, "__file__", None):
                return module.__name__, name, module
    return None, None, None


def _at(owner: ModuleType, name: str) -> Any:
    value: Any = owner
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _is_file(one: str | None, other: str) -> bool:
    return one is not None and Path(one).resolve() == Path(other).resolve()
