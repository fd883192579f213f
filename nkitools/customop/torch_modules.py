"""Stand-ins for ``torch_neuronx`` as far as custom operators go, so that AWS's scripts run on a host unmodified.

    with nkitools.customop.torch_stand_in():
        import my_ops    # from torch_neuronx.xla_impl import custom_op; custom_op.load_library("librelu.so")

Nothing is put in place by an import of nkitools, and what was in place comes back. Source: Building and executing
operators, Neuron Custom C++ Operators Developer Guide.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from nkitools.customop import library as libraries
from nkitools.customop.torch_operators import OperatorNames, has_torch, register_with_torch

ROOT = "torch_neuronx"
ORIGIN = "nkitools stand-in"  # of these modules' specs: who looks for AWS's package looks past them (targets.packages)
_MODULES = (ROOT, f"{ROOT}.xla_impl", f"{ROOT}.xla_impl.custom_op")
_PREFERENCES = ("auto", "builtin")
_NO_RESULT = "    It returns None, as AWS documents no result: call an operator as ``torch.ops.<library>.<operator>``."


class RealPackage(RuntimeError):
    """The error of `torch_stand_in` and `install_torch_stand_in` if AWS's torch_neuronx is installed.

    It comes from versions whose own ``custom_op`` builds for the device (2.9 or lower). ``prefer="builtin"`` avoids it.
    """


class _StandIn:
    """The modules while they are in place, what was there before, and the operators that were loaded through them."""

    def __init__(self) -> None:
        self.names = OperatorNames()
        self._loaded = ExitStack()
        self._before = {name: each for name, each in sys.modules.items() if name.partition(".")[0] == ROOT}
        for name in self._before:
            del sys.modules[name]
        parent: ModuleType | None = None
        for name in _MODULES:
            module = _empty_module(name)
            if parent is not None:
                setattr(parent, name.rpartition(".")[2], module)
            sys.modules[name] = parent = module
        assert parent is not None
        vars(parent).update(load=self._adding(libraries.load), load_library=self._adding(libraries.load_library))
        # torch loads the backend of an installed torch_neuronx 2.10 or higher by this name.
        vars(sys.modules[ROOT]).update(_autoload=lambda: None)

    def remove(self) -> None:
        """Put back what was there, and forget the operators."""
        self._loaded.close()
        for name in [name for name in sys.modules if name.partition(".")[0] == ROOT]:
            del sys.modules[name]
        sys.modules.update(self._before)

    def _adding(self, load: Callable[..., libraries.Library]) -> Callable[..., None]:
        """Return ``load`` with the operators under ``torch.ops``, and without a result, as AWS documents none."""

        @functools.wraps(load)
        def added(*args: Any, **kwargs: Any) -> None:
            self._add(load(*args, **kwargs))

        added.__signature__ = inspect.signature(load).replace(return_annotation=None)  # type: ignore[attr-defined]
        added.__doc__ = f"{load.__doc__}\n{_NO_RESULT}\n    "
        return added

    def _add(self, library: libraries.Library) -> None:
        if has_torch():
            self._loaded.enter_context(register_with_torch(library))
        else:
            self.names.add(library)


_installed: _StandIn | None = None


@contextmanager
def torch_stand_in(prefer: str = "auto") -> Iterator[Any]:
    """Replace ``torch_neuronx.xla_impl.custom_op`` in the ``with`` by nkitools' own ``load`` and ``load_library``.

    The ``with`` yields the namespace of the loaded libraries: ``torch.ops``, or without torch one whose operators take
    NumPy arrays. At the end the operators are gone and ``sys.modules`` has what it had of torch_neuronx; a stand-in
    that was installed before stays, with all of its operators. Arguments and errors: `install_torch_stand_in`.
    """
    mine = _installed is None
    install_torch_stand_in(prefer)
    try:
        yield operators()
    finally:
        if mine:
            remove_torch_stand_in()


def install_torch_stand_in(prefer: str = "auto") -> None:
    """Replace ``torch_neuronx.xla_impl.custom_op`` by nkitools' own ``load`` and ``load_library``, which run operators
    on this host, until `remove_torch_stand_in`. A second call does nothing.

    Raises `RealPackage` if AWS's torch_neuronx with ``xla_impl.custom_op`` is installed (2.9 or lower), unless
    ``prefer`` is ``"builtin"``; ValueError for another ``prefer`` than that and ``"auto"``.
    """
    global _installed
    if prefer not in _PREFERENCES:
        raise ValueError(f"prefer: must be one of {', '.join(_PREFERENCES)}, it is {prefer!r}")
    if _installed is not None:
        return
    if prefer == "auto" and _loads_for_the_device():
        raise RealPackage(
            f"{ROOT} is installed here, and its custom_op.load builds for the device; "
            'torch_stand_in(prefer="builtin") takes nkitools\' in its place'
        )
    _installed = _StandIn()


def _loads_for_the_device() -> bool:
    """Return whether AWS's torch_neuronx here has the loader; 2.10 and higher, the native backend, has none."""
    loaded = sys.modules.get(ROOT)
    spec = PathFinder.find_spec(ROOT)
    places = getattr(loaded, "__path__", None) or (spec.submodule_search_locations if spec is not None else None)
    return places is not None and PathFinder.find_spec(f"{ROOT}.xla_impl", list(places)) is not None


def remove_torch_stand_in() -> None:
    """Remove the stand-in for torch_neuronx and the operators that were loaded through it; torch_neuronx's own modules
    are back in ``sys.modules``. Do nothing if there is no stand-in.
    """
    global _installed
    if _installed is not None:
        installed, _installed = _installed, None
        installed.remove()


def operators() -> Any:
    """``torch.ops``, or without torch the libraries that were loaded through the stand-in."""
    if not has_torch():
        return _installed.names if _installed is not None else OperatorNames()
    import torch

    return torch.ops


def _empty_module(name: str) -> ModuleType:
    module = ModuleType(name, "nkitools' stand-in for AWS's module: custom operators on this host.")
    spec = ModuleSpec(name, None, origin=ORIGIN, is_package=name != _MODULES[-1])
    module.__spec__, module.__package__ = spec, spec.parent
    if spec.submodule_search_locations is not None:
        module.__path__ = []

    def absent(attribute: str) -> Any:
        raise AttributeError(
            f"nkitools' stand-in for {name} has no {attribute!r}: it is there for custom operators alone "
            "(xla_impl.custom_op: load, load_library)"
        )

    module.__getattr__ = absent  # type: ignore[method-assign]
    return module
