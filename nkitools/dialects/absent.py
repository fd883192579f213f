"""Names that a dialect lacks: documented and not modelled yet (NK607), of another version (NK608), unknown (NK607)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Set
from functools import cache
from typing import Any, NoReturn

from nkitools.authors_code.instructions import begins_import_from
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding, KernelError, NotModelled, authors_frame, finding_here, not_modelled

_REMEDY = "Use one of the names that dir() of the module lists, or a newer version of nkitools."
_MODULE_REMEDY = "Import what you need of nki, nki.isa and nki.language, or run this file with AWS's own packages."


class NotModelledAttribute(NotModelled, AttributeError):
    """A missing name of a module that stands in for AWS's: an AttributeError too, so that hasattr works."""


class NotModelledImport(NotModelled, ImportError):
    """The same in ``from module import name``, where Python would drop the message of an AttributeError."""


class NotModelledModule(NotModelled, ModuleNotFoundError):
    """A missing submodule of a package that stands in for AWS's: a ModuleNotFoundError too."""


class RemovedAttribute(KernelError, AttributeError):
    """A name of another NKI version (NK608): an AttributeError too, so that hasattr works."""


class RemovedImport(KernelError, ImportError):
    """The same in ``from module import name``."""


def missing(
    module: str, name: str, public: Iterable[str], documented: Set[str] = frozenset(), parameters: Any = None
) -> type:
    """Return a stand-in for ``module.name``, which the dialect does not have.

    A documented name gives a placeholder whose use is NK607; any other name is an AttributeError with NK607.
    ``public``: the names of the module. ``parameters`` returns the parameters of a function by its module and name.
    """
    if name not in documented:
        _refuse(module, name, public, parameters or (lambda module, name: {}))
    return _placeholder(module, name)


def _refuse(module: str, name: str, public: Iterable[str], parameters: Any) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    from nkitools.dialects.meant import remedy_for, use_at

    message = f"{module} has no `{name}`: neither AWS's documentation nor nkitools knows that name"
    remedy = remedy_for(module, name, public, parameters, use_at(authors_frame(), name))
    raise_absent(finding_here(RULES["NK607"], message, remedy or _REMEDY))


def missing_beside_kernels(module: str, name: str) -> NoReturn:
    """Refuse ``module.name`` of a package that scripts import beside their kernels (NK607)."""
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    message = f"{module} has no `{name}` here: nkitools stands in for {module.partition('.')[0]} around kernels only"
    raise_absent(
        finding_here(RULES["NK607"], message, "Leave it out of a simulation, or run this file on an instance.")
    )


def refuse_module(name: str) -> NoReturn:
    """Refuse ``import nki.name`` of an unknown module, or of one that belongs to AWS's compiler (NK607)."""
    package = name.rpartition(".")[0]
    message = (
        f"{package} has no module `{name}` here: nkitools stands in for {package}, and knows no module of that name"
    )
    error = NotModelledModule(finding_here(RULES["NK607"], message, _MODULE_REMEDY))
    error.name = name  # by which `from package import name` knows that it may still be an attribute
    raise error


def raise_absent(finding: Finding) -> NoReturn:
    """Raise the finding about a name as what the import, or the attribute, must raise."""
    if _is_imported():
        raise (RemovedImport if finding.rule == "NK608" else NotModelledImport)(finding)
    raise (RemovedAttribute if finding.rule == "NK608" else NotModelledAttribute)(finding)


def _is_imported() -> bool:
    """Return whether the name is asked for by ``from module import name``."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("nkitools.dialects."):
        frame = frame.f_back
    return begins_import_from(frame)


class _Placeholder(type):
    """Stands for a function or class that is documented and not modelled: good for annotations and isinstance only."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        not_modelled(f"{cls!r} is documented, but this version of nkitools does not model it yet", remedy=_REMEDY)

    def __repr__(cls) -> str:
        return f"{cls.__module__}.{cls.__name__}"


@cache
def _placeholder(module: str, name: str) -> _Placeholder:
    doc = f"{module}.{name}: documented by AWS, not modelled in this version (NK607)."
    return _Placeholder(name, (), {"__module__": module, "__qualname__": name, "__doc__": doc})
