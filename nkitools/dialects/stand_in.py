"""Make ``import nki`` and ``import neuronxcc.nki`` work where AWS's packages are absent.

Installing puts a finder in front of ``sys.meta_path``; removing takes it and every module that it made away again and
puts back what was there. Light: the dialects (and NumPy) are imported only when a kernel file imports them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Union, cast

from nkitools.dialects import torch_autoload
from nkitools.dialects.import_hint import is_import, is_import_by_a_library

if TYPE_CHECKING:
    from importlib.abc import Loader  # whose import takes as long as forty modules here

_ROOM = "nkitools.dialects"
_SOURCES = {
    "nki": "modern",
    "nki.isa": "modern.isa",
    "nki.isa.constants": "modern.constants",
    "nki.language": "modern.language",
    "nki.language.constants": "legacy.aws_names.language_constants",
    "nki.collectives": "modern.collectives",
    "nki.typing": "modern.typing",
    "nki.dtype": "modern.dtype",
    "nki.simulator": "modern.simulator",
    "nki.compiler": "modern.compiler",
    "nki.compiler.frontend": "modern.frontend",
    "nki.compiler.kernel_builder": "modern.kernel_builder",
    "neuronxcc.nki": "legacy",
    "neuronxcc.nki.isa": "legacy.isa",
    "neuronxcc.nki.isa.constants": "legacy.aws_names.constants",
    "neuronxcc.nki.language": "legacy.language",
    "neuronxcc.nki.language.constants": "legacy.aws_names.language_constants",
    "neuronxcc.nki.typing": "legacy.aws_names.typing",
    "neuronxcc.nki.compiler": "legacy.aws_names.compiler",
    "neuronxcc.nki.compiler.backends.neuron.indexing": "legacy.aws_names.compiler_indexing",
    "neuronxcc.nki.compiler.backends.neuron.tensor": "legacy.aws_names.compiler_tensor",
}
# What AWS's kernel library imports beside it: the simulator before NKI 0.3 was a package of its own.
_SIMULATOR = "nki_cpu_simulator"
_SOURCES |= {f"{_SIMULATOR}.{name}": source for name, source in _SOURCES.items() if name.partition(".")[0] == "nki"} | {
    f"{_SIMULATOR}.nki.language.dtypes": "modern.dtype",
    "neuron_dtypes": "neuron_dtypes",
}
# Modules that kernels import, and whose contents are not modelled.
_UNKNOWN = frozenset(
    {
        _SIMULATOR,
        f"{_SIMULATOR}.nki.builtin",
        f"{_SIMULATOR}.nki.tensor",
        "neuronxcc.nki.compiler.backends",
        "neuronxcc.nki.compiler.backends.neuron",
    }
)
_BESIDE = (_SIMULATOR, "neuron_dtypes")
# AWS's native backend of torch, as far as it takes kernels: that imports AWS's nki, which is not there.
_TORCH = "torch_neuronx"
_OF_TORCH = {_TORCH: "torch_neuronx", f"{_TORCH}.nki_hop": "torch_neuronx"}
# PyTorch/XLA, by which scripts of NKI 0.6 and before reach a device.
_XLA = "torch_xla"
_OF_XLA = {
    _XLA: "torch_xla",
    f"{_XLA}.core": "torch_xla.core",
    f"{_XLA}.core.xla_model": "torch_xla.xla_model",
    f"{_XLA}.runtime": "torch_xla.runtime",
}
_SOURCES |= _OF_TORCH | _OF_XLA
_OURS = "nkitools_stand_in"
ORIGIN = "nkitools stand-in"  # of the modules' specs: who looks for AWS's packages looks past them (targets.packages)


class _Level(int):
    """A level of logging of the stand-in's own, which an equal one of another's is not."""


_OFF = _Level(60)  # CRITICAL is 50

Root = Literal["nki", "neuronxcc.nki"]
_ROOTS: tuple[Root, ...] = ("nki", "neuronxcc.nki")


def source_of(name: str) -> str | None:
    """Return the module of nkitools that stands in for AWS's module ``name``; None if there is none."""
    return f"{_ROOM}.{_SOURCES[name]}" if name in _SOURCES else None


def modules_served() -> dict[str, str]:
    """Return AWS's modules of the two dialects, each with the module of nkitools that stands in for it."""
    roots = ("nki", "neuronxcc")
    return {name: f"{_ROOM}.{source}" for name, source in _SOURCES.items() if name.partition(".")[0] in roots}


class _DialectLoader:
    """Makes a fresh module that shows a dialect's public names (``neuronxcc`` itself: an empty package)."""

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _OURS, True)
        if module.__name__ in _UNKNOWN:
            module.__getattr__ = partial(_unknown_name, module.__name__)  # type: ignore[method-assign]
        if module.__name__ not in _SOURCES:
            return
        source = importlib.import_module(f"{_ROOM}.{_SOURCES[module.__name__]}")
        for name in source.__all__:
            if name in vars(source):  # others are made when they are asked for
                setattr(module, name, vars(source)[name])
        module.__doc__ = source.__doc__
        if module.__name__ == "neuronxcc.nki":
            _add_level_off()

        if module.__name__.endswith("nki.dtype"):
            module.__class__ = _AnnotationModule
        find = vars(source).get("__getattr__") or partial(_found, source, module.__name__)

        def absent(name: str) -> Any:
            if name == "__all__":
                return [each for each in source.__all__ if hasattr(source, each)]
            if f"{module.__name__}.{name}" in (*_SOURCES, *_UNKNOWN):
                return importlib.import_module(f"{module.__name__}.{name}")
            value = find(name)
            if name in vars(source):
                setattr(module, name, value)
            return value

        module.__getattr__ = absent  # type: ignore[method-assign]
        module.__dir__ = lambda: sorted({*vars(module), *source.__all__} & {*vars(module), *dir(source)})  # type: ignore[method-assign]


class _AnnotationModule(ModuleType):
    """``nki.dtype``, which kernels annotate with as if it were a type: ``dtype: nki.dtype | None``."""

    def __or__(self, other: Any) -> Any:
        return Union[self, other]  # noqa: UP007 - with `|` it would ask itself again

    def __ror__(self, other: Any) -> Any:
        return Union[other, self]  # noqa: UP007


def _found(source: ModuleType, module: str, name: str) -> Any:
    """Return a name that the module of nkitools has not made, or refuse it."""
    from nkitools.dialects.public import find

    return find(vars(source), module.removeprefix(f"{_SIMULATOR}."), name)


def _unknown_name(module: str, name: str) -> Any:
    from nkitools.dialects.absent import missing

    if f"{module}.{name}" in (*_SOURCES, *_UNKNOWN):
        return importlib.import_module(f"{module}.{name}")
    return missing(module, name, ())


class _ParentLoader:
    """Loads an installed ``neuronxcc`` that is not AWS's compiler; an empty package takes the place of one that fails.

    The placeholder of PyPI raises on import, and ``neuronxcc.nki`` cannot be imported without its parent.
    """

    def __init__(self, real: ModuleSpec) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.real.loader.create_module(self.real) if self.real.loader is not None else None

    def exec_module(self, module: ModuleType) -> None:
        if self.real.loader is None:  # a directory without __init__.py
            return
        try:
            self.real.loader.exec_module(module)
        except (ImportError, RuntimeError):
            setattr(module, _OURS, True)
        else:
            module.__spec__, module.__loader__ = self.real, self.real.loader


class StandInFinder:
    """The finder of the stand-in modules; it leaves real packages alone unless set otherwise."""

    def __init__(self, roots: frozenset[Root]) -> None:
        self.roots = roots

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "neuronxcc" and "neuronxcc.nki" in self.roots:
            return _parent_spec()
        first = fullname.partition(".")[0]
        if first == _TORCH:
            # A look whether it is installed is answered by what is.
            serves = fullname in _OF_TORCH and "nki" in self.roots and is_import() and not _has_own_backend()
            return _spec(fullname) if serves else None
        if first == _XLA:
            return self._xla_spec(fullname) if is_import() and not is_import_by_a_library() else None
        if first in _BESIDE:
            root, wanted = "nki", _installed_spec(first) is None
        elif first in ("nki", "neuronxcc"):
            root, wanted = ("nki" if first == "nki" else "neuronxcc.nki"), True
        else:
            return None
        if root not in self.roots or not wanted:
            return None
        if fullname in _SOURCES or fullname in _UNKNOWN:
            return _spec(fullname)
        if _is_under(fullname, (root, *_BESIDE)) and not fullname.rpartition(".")[2].startswith("__") and is_import():
            from nkitools.dialects.absent import refuse_module

            refuse_module(fullname)
        return None

    def _xla_spec(self, fullname: str) -> ModuleSpec | None:
        """Return the stand-in for ``torch_xla``, where torch is and no ``torch_xla`` of its own. Errors: NK607."""
        if not self.roots or _installed_spec(_XLA) is not None:
            return None
        if _installed_spec("torch") is None:
            message = f"No module named '{fullname}'. nkitools stands in for it where torch is: pip install torch"
            raise ModuleNotFoundError(message, name=fullname)
        if fullname not in _OF_XLA:
            from nkitools.dialects.absent import refuse_module

            refuse_module(fullname)
        return _spec(fullname)


def _has_own_backend() -> bool:
    """Return whether torch is not here, or an installed torch_neuronx of 2.9 or lower, which can be imported."""
    return _installed_spec("torch") is None or _installed_spec(f"{_TORCH}.xla_impl") is not None


def _spec(fullname: str) -> ModuleSpec:
    return ModuleSpec(fullname, cast("Loader", _DialectLoader()), origin=ORIGIN, is_package=True)


def _parent_spec() -> ModuleSpec:
    real = _installed_spec("neuronxcc")
    if real is None or real.submodule_search_locations is None:
        return _spec("neuronxcc")
    spec = ModuleSpec("neuronxcc", cast("Loader", _ParentLoader(real)), origin=real.origin)
    spec.has_location = real.has_location
    spec.submodule_search_locations = real.submodule_search_locations
    return spec


def _installed_spec(name: str) -> ModuleSpec | None:
    """Return the spec of an installed module, without importing anything and without our finder."""
    parent, _, _ = name.rpartition(".")
    path = None
    if parent:
        above = _installed_spec(parent)
        if above is None or above.submodule_search_locations is None:
            return None
        path = above.submodule_search_locations
    for finder in sys.meta_path:
        find_spec = None if isinstance(finder, StandInFinder) else getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find_spec(name, path) if find_spec is not None else None
        if spec is not None:
            return spec
    return None


def real_package(name: Root) -> bool:
    """Return whether AWS's own package is installed; PyPI's placeholders, lone modules that raise, do not count."""
    return _installed_spec(f"{name}.language") is not None


_finder: StandInFinder | None = None
_replaced: dict[str, ModuleType] = {}


def stand_in_installed() -> bool:
    """Return whether the stand-in imports are in place."""
    return _finder is not None and _finder in sys.meta_path


def install_stand_in(prefer: Literal["auto", "builtin"] = "auto") -> None:
    """Make ``import nki`` and ``import neuronxcc.nki`` give nkitools' own modules from here on.

    With ``prefer="auto"`` an installed package of AWS keeps its name; ``"builtin"`` puts the stand-in before it. A
    second call with the same effect does nothing, one with another ``prefer`` takes its place. AWS's modules that were
    imported before are set aside until `remove_stand_in`; names that a file has imported from them stay as they are.
    Other ``neuronxcc.*`` modules stay. While ``nki`` is nkitools' own, ``import torch`` loads no Neuron backend, which
    would import AWS's. ValueError for another ``prefer``.
    """
    global _finder
    if prefer not in ("auto", "builtin"):
        raise ValueError(f'prefer: must be "auto" or "builtin", it is {prefer!r}')
    roots = frozenset(root for root in _ROOTS if prefer == "builtin" or not real_package(root))
    if _finder is not None and stand_in_installed() and _finder.roots == roots:
        return
    remove_stand_in()
    for name in [name for name in sys.modules if _is_under(name, roots)]:
        _replaced[name] = sys.modules.pop(name)
    if "neuronxcc.nki" in roots:
        _set_aside_parent()
    if "nki" in roots:
        torch_autoload.switch_off()
    _finder = StandInFinder(roots)
    sys.meta_path.insert(0, _finder)


def _is_under(name: str, roots: Iterable[str]) -> bool:
    return any(name == root or name.startswith(f"{root}.") for root in roots)


def _set_aside_parent() -> None:
    """Let ``from neuronxcc import nki`` find the stand-in where a ``neuronxcc`` has been imported already."""
    parent = sys.modules.get("neuronxcc")
    if parent is None:
        return
    if not hasattr(parent, "__path__"):
        _replaced["neuronxcc"] = sys.modules.pop("neuronxcc")
    elif isinstance(vars(parent).get("nki"), ModuleType):
        del parent.nki


def _add_level_off() -> None:
    """Give ``logging`` its level ``OFF``, above all others.

    Undocumented: importing AWS's ``neuronxcc`` does so, and the scripts of a course that many forks keep to say
    ``logging.disable(logging.OFF)``.
    """
    import logging  # when it is needed: installing the stand-in is light

    if not hasattr(logging, "OFF"):
        logging.OFF = _OFF  # type: ignore[attr-defined]


def _remove_level_off() -> None:
    logging = sys.modules.get("logging")
    if logging is not None and vars(logging).get("OFF") is _OFF:
        del logging.OFF


def remove_stand_in() -> None:
    """Undo `install_stand_in`: remove its modules from ``sys.modules``, and put back those that it has set aside.

    Names that a file has imported stay as they are. Do nothing if there is no stand-in.
    """
    global _finder
    _finder = None
    torch_autoload.switch_back()
    # All of them: code that restores an earlier sys.meta_path brings an earlier finder back.
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, StandInFinder)]
    for name in [name for name, module in sys.modules.items() if _is_ours(module)]:
        del sys.modules[name]
    sys.modules.update(_replaced)
    _remove_level_off()
    parent = sys.modules.get("neuronxcc")
    if parent is not None:
        if _is_ours(vars(parent).get("nki")):
            del parent.nki
        if "neuronxcc.nki" in _replaced:
            parent.nki = _replaced["neuronxcc.nki"]  # type: ignore[attr-defined]
    _replaced.clear()


def _is_ours(module: ModuleType | None) -> bool:
    return isinstance(module, ModuleType) and vars(module).get(_OURS) is True
