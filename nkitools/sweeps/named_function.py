"""Functions and kernels that another process finds again: by the file or module that they stand in, and their name."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from nkitools.module_files import known_modules, module_of


@dataclass(frozen=True)
class NamedFunction:
    """The place of a function: its module, the module's file, and its name there."""

    module: str
    file: str
    name: str

    def found(self) -> Any:
        """Return the function; import its module, or load its file if it cannot be imported."""
        value: Any = module_of(self.module, self.file)
        for part in self.name.split("."):
            value = getattr(value, part)
        return value


def named(function: Any) -> NamedFunction:
    """Return the place of a function or a kernel.

    ValueError if its name does not lead back to it, as for a lambda or an inner function.
    """
    inner = inspect.unwrap(function) if callable(function) else function
    module, name = getattr(inner, "__module__", None), getattr(inner, "__qualname__", None)
    names = getattr(inner, "__globals__", None)
    owner = sys.modules.get(str(module))
    if owner is None or (names is not None and vars(owner) is not names):  # another file may have taken the name
        alone = [each for each in known_modules() if each.__name__ == module]
        owner = next((each for each in alone if vars(each) is names), owner or next(iter(alone), None))
    if owner is None or name is None:
        module, name, owner = _operator_place(function)
    file = getattr(owner, "__file__", None)
    if owner is None or file is None or "<" in str(name) or _at(owner, str(name)) is not function:
        shown = str(name or function).rpartition(".")[2]
        raise ValueError(f"{shown} is not found again in another process: define it at the top of a file, by its name")
    return NamedFunction(str(module), str(file), str(name))


def _operator_place(function: Any) -> tuple[str | None, str | None, ModuleType | None]:
    """Return the place of an object without a module, such as a custom operator that a file has under a name."""
    for module in [*known_modules(), *sys.modules.values()]:
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is function and getattr(module, "__file__", None):
                return module.__name__, name, module
    return None, None, None


def _at(owner: ModuleType, name: str) -> Any:
    value: Any = owner
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
