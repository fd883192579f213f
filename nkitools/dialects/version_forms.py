"""Functions and instructions whose name or parameters differ between NKI versions, in the form of each version."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature, signature
from operator import attrgetter
from types import FunctionType
from typing import Any, NoReturn

from nkitools import options
from nkitools.chip.core import CORE
from nkitools.dialects import versions
from nkitools.dialects.call_form import wrong_call
from nkitools.dialects.versions import Row
from nkitools.issue.fast_path import compiled
from nkitools.issue.instruction import Instruction
from nkitools.rules.finding import refuse, report

OTHER_VERSION = "Run the kernel under another version: nki_version= of nkitools.simulate, or the option --nki-version."
_STARS: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_NAMED = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)


def version_here() -> str:
    """Return the value of ``nki_version`` that holds: that of the run, outside of a run that of the option."""
    core = CORE.get()
    return core.nki_version if core is not None else str(options.value("nki_version"))


def narrowed(whole: Signature, changes: Sequence[Row], version: str) -> Signature:
    """Return the signature that a definition with every parameter has under ``version``."""
    kept = []
    for parameter in whole.parameters.values():
        rows = [row for row in changes if row.parameter == parameter.name]
        if not all(row.is_in(version) for row in rows if not row.default):
            continue
        older = [row for row in rows if row.default and row.is_in(versions.exact(version))]
        kept.append(parameter.replace(default=_default(older[0])) if older else parameter)
    return whole.replace(parameters=kept)


def signature_in(value: Any, version: str) -> Signature:
    """Return the signature of a public function or instruction under ``version``."""
    changes: Sequence[Row] = getattr(value, "version_changes", ())
    found = signature(value)
    return narrowed(found, changes, version) if changes else found


def _default(row: Row) -> Any:
    """Return what the table has as an older default: a literal, a public name such as ``nl.add``, or ``-`` for none."""
    if row.default == "-":
        return Parameter.empty
    try:
        return ast.literal_eval(row.default)
    except ValueError:
        module, _, name = row.default.rpartition("nl.")
        public, _, inside = name.partition(".")
        home = versions.names_of("nki.language" if module else row.module)[public].home
        return attrgetter(f"{public}.{inside}" if inside else public)(import_module(home))


class _Forms(dict[str, Any]):
    """The forms of a function under each version, each made when a run of the version calls it first."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self.make = make

    def __missing__(self, version: str) -> Any:
        form = self[version] = self.make(version)
        return form


class VersionedInstruction(Instruction[...]):
    """An instruction that some NKI versions lack, or whose parameters differ between versions.

    A call binds by the signature of the version of the run. The language's own functions call the whole instruction.
    """

    def __init__(self, whole: Instruction[...], row: Row, changes: tuple[Row, ...]) -> None:
        self.row = row
        self.version_changes = changes
        self.binders = _Forms(self._binder)
        super().__init__(whole.function)

    @property
    def _bind(self) -> Callable[..., tuple[Any, ...]]:
        """Return what binds a call's arguments under the version of the run."""
        core = CORE.get()
        binder: Callable[..., tuple[Any, ...]] = self.binders[version_here() if core is None else core.nki_version]
        return binder

    @_bind.setter
    def _bind(self, bind: Callable[..., tuple[Any, ...]]) -> None:
        """Leave the whole instruction's binder to the whole instruction."""

    def _binder(self, version: str) -> Callable[..., tuple[Any, ...]]:
        check_version(self.row, version)
        shown = narrowed(self.signature, self.version_changes, version)
        # A parameter that the version lacks gets the default of the definition.
        passed = [name if name in shown.parameters else f"_{name}" for name in self.parameters]
        defaults = {f"_{name}": each.default for name, each in self.signature.parameters.items()}
        bind = _compiled("_bound", shown, f"({', '.join(passed)},)", defaults)
        leaving = leaving_in(self.row, self.version_changes, version)

        def warned(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
            report_leaving(leaving, kwargs)
            return tuple(bind(*args, **kwargs))

        return warned if leaving else bind

    @property
    def call_form(self) -> str:
        """Return the signature under the version of the run, as a remedy shows it."""
        return self.form_of(narrowed(self.signature, self.version_changes, version_here()))

    def _wrong_call(self, error: TypeError) -> NoReturn:
        check_argument(f"nisa.{self.name}", error, self.version_changes, self.call_form)
        super()._wrong_call(error)


class _FunctionForm:
    """A plain function as one NKI version has it."""

    def __init__(self, function: FunctionType, row: Row, changes: tuple[Row, ...], version: str) -> None:
        check_version(row, version)
        self.leaving = leaving_in(row, changes, version)
        self.signature = narrowed(signature(function), changes, version)
        passed = [
            _STARS.get(each.kind, f"{name}=" if each.kind in _NAMED else "") + name
            for name, each in self.signature.parameters.items()
        ]
        self.call = _compiled(function.__name__, self.signature, f"_whole({', '.join(passed)})", {"_whole": function})


def versioned_function(function: FunctionType, row: Row, changes: tuple[Row, ...]) -> FunctionType:
    """Return ``function`` as calls see it that take the form of the version of the run."""
    forms = _Forms(functools.partial(_FunctionForm, function, row, changes))
    called = row.short

    def refuse_call(form: Signature, error: TypeError) -> NoReturn:
        check_argument(called, error, changes, f"The call form is {called}{form}.")
        wrong_call(called, form, function.__name__, error)

    @functools.wraps(function)
    def by_version(*args: Any, **kwargs: Any) -> Any:
        form = forms[version_here()]
        report_leaving(form.leaving, kwargs)
        try:
            return form.call(*args, **kwargs)
        except TypeError as error:
            # Binding fails before the form has a frame.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            wrong = error
        return refuse_call(form.signature, wrong)

    by_version.version_changes = changes  # type: ignore[attr-defined]
    return by_version  # type: ignore[return-value]


def _compiled(name: str, shown: Signature, result: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Return a function of a signature that returns ``result``; the namespace has its defaults as ``_name``."""
    for each in shown.parameters.values():
        namespace[f"_{each.name}"] = each.default
    bare = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else _Written(each.name))
        for each in shown.parameters.values()
    ]
    form = str(shown.replace(parameters=bare, return_annotation=shown.empty))
    source = f"def {name}{form}:\n    return {result}\n"
    found: Callable[..., Any] = compiled(source, name, namespace, f"arguments of {name} under an NKI version")
    return found


class _Written:
    """A default as generated source names it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"_{self.name}"


def leaving_in(row: Row, changes: Sequence[Row], version: str) -> list[Row]:
    """Return the rows that the newest version has removed and ``version`` still has."""
    return [each for each in (row, *changes) if not each.default and each.is_leaving(version)]


def report_leaving(leaving: Sequence[Row], given: Mapping[str, Any]) -> None:
    """Warn (NK618) where a call uses what the newest version has removed."""
    for each in leaving:
        if not each.parameter or each.parameter in given:
            report("NK618", each.leave(), remedy=each.instead, severity="warning")


def check_version(row: Row, version: str) -> None:
    """Refuse the call of a name that ``version`` lacks (NK608)."""
    if not row.is_in(version):
        refuse("NK608", f"{row.short} {row.absence(version)}", remedy=row.instead or OTHER_VERSION)


def check_argument(called: str, error: TypeError, changes: Sequence[Row], form: str) -> None:
    """Refuse an argument that another version has: NK609 where it comes later, NK608 where it is gone."""
    version = version_here()
    for row in changes:
        if f"'{row.parameter}'" in str(error) and not row.default and not row.is_in(version):
            message = f"{called}: the argument `{row.parameter}` {row.absence(version)}"
            refuse("NK608" if row.is_gone(version) else "NK609", message, remedy=row.instead or form)
