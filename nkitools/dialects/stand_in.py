"""Make ``import nki`` and ``import neuronxcc.nki`` work where AWS's packages are absent.

Installing puts a finder in front of ``sys.meta_path``; removing takes it and every module that it made away again and puts
back what was there. Light: the dialects (and NumPy) are imported only when a kernel file imports them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Literal

_ROOM = "nkitools.dialects"
_SOURCES = {
    "nki": "modern",
    "nki.isa": "modern.isa",
    "nki.isa.constants": "modern.constants",
    "nki.language": "modern.language",
    "nki.collectives": "modern.collectives",
    "nki.typing": "modern.typing",
    "nki.dtype": "modern.dtype",
    "neuronxcc.nki": "legacy",
    "neuronxcc.nki.isa": "legacy.isa",
    "neuronxcc.nki.isa.constants": "legacy.constants",
    "neuronxcc.nki.language": "legacy.language",
    "neuronxcc.nki.typing": "legacy.typing",
    "neuronxcc.nki.compiler": "legacy.compiler",
}
_PACKAGES = frozenset({"nki", "nki.isa", "neuronxcc.nki", "neuronxcc.nki.isa"})
_OURS = "nkitools_stand_in"


class _StandInLoader(Loader):
    """Makes a fresh module that shows a dialect's public names."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _OURS, True)
        if module.__name__ not in _SOURCES:
            return
        source = importlib.import_module(f"{_ROOM}.{_SOURCES[module.__name__]}")
        names = list(source.__all__)
        for name in names:
            setattr(module, name, getattr(source, name))
        module.__doc__ = source.__doc__
        module.__all__ = names  # type: ignore[attr-defined]

        def absent(name: str) -> Any:
            if f"{module.__name__}.{name}" in _SOURCES and name != "constants":
                return importlib.import_module(f"{module.__name__}.{name}")
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return getattr(source, name)

        module.__getattr__ = absent  # type: ignore[method-assign]


class StandInFinder(MetaPathFinder):
    """Finds the stand-in modules; leaves real packages alone unless told otherwise."""

    def __init__(self, roots: frozenset[str]) -> None:
        self.roots = roots
        self.loader = _StandInLoader()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "neuronxcc" and "neuronxcc.nki" in self.roots:
            return None if _path_spec("neuronxcc") is not None else self._spec(fullname, package=True)
        root = "nki" if fullname.split(".")[0] == "nki" else "neuronxcc.nki"
        if fullname not in _SOURCES or root not in self.roots:
            return None
        return self._spec(fullname, package=fullname in _PACKAGES)

    def _spec(self, fullname: str, *, package: bool) -> ModuleSpec:
        return importlib.util.spec_from_loader(fullname, self.loader, is_package=package) or ModuleSpec(fullname, self.loader)


_installed: StandInFinder | None = None
_replaced: dict[str, ModuleType] = {}


def _path_spec(name: str) -> ModuleSpec | None:
    """The spec of an installed package, without importing it and without our finder."""
    parent, _, _ = name.rpartition(".")
    if not parent:
        return PathFinder.find_spec(name)
    above = _path_spec(parent)
    if above is None or above.submodule_search_locations is None:
        return None
    return PathFinder.find_spec(name, above.submodule_search_locations)


def real_package(name: Literal["nki", "neuronxcc.nki"]) -> bool:
    """Whether AWS's own package is installed. The placeholders of PyPI, a lone module that only raises, do not count."""
    spec = _path_spec(name)
    if spec is None:
        return False
    inner = _path_spec(f"{name}.language")
    return inner is not None


def stand_in_installed() -> bool:
    """Whether the stand-in imports are in place."""
    return _installed is not None


def install_stand_in(prefer: Literal["auto", "builtin"] = "auto") -> None:
    """Make ``import nki`` and ``import neuronxcc.nki`` work from here on.

    Idempotent. With ``prefer="auto"`` a real, working AWS package keeps its name; ``"builtin"`` puts the stand-in before it.
    Other ``neuronxcc.*`` modules stay as they are. ValueError for another ``prefer``.
    """
    global _installed
    if prefer not in ("auto", "builtin"):
        raise ValueError(f'prefer: must be "auto" or "builtin", it is {prefer!r}')
    names: tuple[Literal["nki", "neuronxcc.nki"], ...] = ("nki", "neuronxcc.nki")
    roots = frozenset(name for name in names if prefer == "builtin" or not real_package(name))
    if _installed is not None and _installed.roots == roots:
        return
    remove_stand_in()
    for name in [name for name in sys.modules if _is_under(name, roots)]:
        _replaced[name] = sys.modules.pop(name)
    _installed = StandInFinder(roots)
    sys.meta_path.insert(0, _installed)
    importlib.invalidate_caches()


def _is_under(name: str, roots: frozenset[str]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def remove_stand_in() -> None:
    """Undo `install_stand_in`: the modules it made are gone, those it replaced are back."""
    global _installed
    if _installed is None:
        return
    if _installed in sys.meta_path:
        sys.meta_path.remove(_installed)
    for name in [name for name, module in sys.modules.items() if getattr(module, "__dict__", {}).get(_OURS)]:
        del sys.modules[name]
    parent = sys.modules.get("neuronxcc")
    if parent is not None and getattr(getattr(parent, "nki", None), "__dict__", {}).get(_OURS):
        del parent.nki
    sys.modules.update(_replaced)
    _replaced.clear()
    _installed = None
