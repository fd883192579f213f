"""The public names of a dialect's module, made from the table of versions (`nkitools.facts.versions`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from operator import attrgetter
from types import FunctionType
from typing import Any

from nkitools.chip.dialect_semantics import DialectSemantics
from nkitools.dialects.call_form import language_here, with_call_forms
from nkitools.facts import versions
from nkitools.facts.versions import Row
from nkitools.issue.instruction import Instruction
from nkitools.rules.finding import finding_here


def publish(
    namespace: dict[str, Any], module: str, *, dialect: DialectSemantics | None = None, outside: str = ""
) -> None:
    """Prepare the names that the table has for AWS's ``module`` in ``namespace``, the globals of the dialect's module.

    A name is made, and the module that defines it imported, when `find` is asked for it. Plain functions refuse wrong
    calls (`with_call_forms`, which ``dialect`` and ``outside`` are for). ``__all__`` lists the names of every version.
    """
    rows = {name: row for name, row in versions.names_of(module).items() if row.is_modelled}
    prefix = versions.short_of(module)

    def make(name: str) -> Any:
        made = {name: _versioned(_definition(namespace, rows[name]), rows[name])}
        return (made | with_call_forms(prefix, made, dialect, outside))[name]

    namespace["__all__"] = sorted(rows)
    namespace["_later"] = _Names(make)
    namespace["_plain"] = frozenset(name for name, row in rows.items() if not row.differs)
    namespace["__dir__"] = lambda: sorted({*namespace, *namespace["_plain"]})
    for name in [name for name in rows if name in namespace]:  # the module defines it itself
        made = namespace["_later"][name]
        if name in namespace["_plain"]:
            namespace[name] = made


class _Names(dict[str, Any]):
    """Public names, each made when it is asked for."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.make = make

    def __missing__(self, name: str) -> Any:
        return self.setdefault(name, self.make(name))  # one object, where two threads ask at a time


def find(namespace: dict[str, Any], module: str, name: str) -> Any:
    """Return ``module.name``, which is no plain global of the dialect's module.

    A name that all versions have becomes one. The others are asked for again and again, as the version decides.
    Errors: NK608 for a name of another NKI version, NK607 for what is not modelled or unknown (`absent.missing`).
    """
    if name in namespace.get("_plain", ()):
        value = namespace[name] = namespace["_later"][name]
        return value
    from nkitools.dialects import absent
    from nkitools.dialects.version_forms import OTHER_VERSION
    from nkitools.rules.catalogue import RULES

    row = versions.names_of(module).get(name)
    language = language_here() if row is not None else None
    if row is not None and language is not None and not row.is_in(language):
        message = f"{module}.{name} {row.absence(language)}"
        absent.raise_absent(finding_here(RULES["NK608"], message, row.instead or OTHER_VERSION))
    if "_later" in namespace and name in namespace["__all__"]:
        return namespace["_later"][name]
    documented = {each.name for each in versions.names_of(module).values() if each.home == "-"}
    documented |= namespace.get("DOCUMENTED", set())
    return absent.missing(module, name, namespace["__all__"], documented, parameters_of)


def parameters_of(module: str, name: str) -> Mapping[str, Parameter]:
    """Return the parameters of a public function; none for one without a signature."""
    row = versions.names_of(module).get(name)
    if row is None or not row.is_modelled:
        return {}
    home, _, inside = row.home.partition(":")
    try:
        return signature(_versioned(attrgetter(inside or name)(import_module(home)), row)).parameters
    except (TypeError, ValueError):
        return {}


def whole(namespace: dict[str, Any], name: str) -> Any:
    """Return the member of the dialect's module with this name of its ``__all__``, in any version."""
    return namespace[name] if name in namespace else namespace["_later"][name]


def plain_names(namespace: dict[str, Any]) -> set[str]:
    """Return the public names of a dialect's module that every version has."""
    return {name for name in namespace["__all__"] if name in namespace or name in namespace.get("_plain", ())}


def _definition(namespace: dict[str, Any], row: Row) -> Any:
    """Return nkitools' definition of a public name."""
    home, _, inside = row.home.partition(":")
    if home == namespace["__name__"]:
        return namespace[row.name]
    return attrgetter(inside or row.name)(import_module(home))


def _versioned(value: Any, row: Row) -> Any:
    """Return a function or instruction that follows the version of the run, where versions differ about it."""
    changes = tuple(each for each in versions.parameters_of(row.module, row.name) if each.owner != "*")
    is_one = not changes and not row.differs and not row.deprecated
    if is_one:
        return value.call if isinstance(value, Instruction) else value
    from nkitools.dialects.version_forms import VersionedInstruction, versioned_function

    if isinstance(value, Instruction):
        return VersionedInstruction(value, row, changes).call
    if isinstance(value, FunctionType):
        return versioned_function(value, row, changes)
    if changes:
        raise TypeError(f"versions.tsv: {row.short} is no function, so that its parameters cannot differ")
    return value
