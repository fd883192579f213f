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

from nkitools.chip.core import CORE, current_core
from nkitools.chip.version_notices import report_notice
from nkitools.dialects.call_form import language_here, wrong_call
from nkitools.facts import versions
from nkitools.facts.versions import LanguageVersion, Notice, Row
from nkitools.issue.fast_path import caller, compiled
from nkitools.issue.instruction import Binder, Instruction
from nkitools.rules.finding import refuse

OTHER_VERSION = "Run the kernel under another version: nki_version= of nkitools.simulate, or the option --nki-version."
_STARS: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
_NAMED = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)


def narrowed(whole: Signature, changes: Sequence[Row], language: LanguageVersion) -> Signature:
    """Return the signature that a definition with every parameter has under ``language``."""
    kept = []
    for parameter in whole.parameters.values():
        rows = [row for row in changes if row.parameter == parameter.name]
        if not all(row.is_in(language) for row in rows if not row.default):
            continue
        older = [row for row in rows if row.default and row.is_in(language.strict)]
        kept.append(parameter.replace(default=_default(older[0])) if older else parameter)
    return whole.replace(parameters=kept)


def signature_in(value: Any, language: LanguageVersion) -> Signature:
    """Return the signature of a public function or instruction under ``language``."""
    changes: Sequence[Row] = getattr(value, "version_changes", ())
    found = signature(value)
    return narrowed(found, changes, language) if changes else found


def _default(row: Row) -> Any:
    """Return the older default in the table: a literal, a public name such as ``nl.add``, or `Parameter.empty` for
    ``-``.
    """
    if row.default == "-":
        return Parameter.empty
    try:
        return ast.literal_eval(row.default)
    except ValueError:
        module, _, name = row.default.rpartition("nl.")
        public, _, inside = name.partition(".")
        home = versions.names_of("nki.language" if module else row.module)[public].home
        return attrgetter(f"{public}.{inside}" if inside else public)(import_module(home))


class _Forms(dict[LanguageVersion, Any]):
    """The forms of a function under each version, each made when a run of the version calls it first."""

    def __init__(self, make: Callable[[LanguageVersion], Any]) -> None:
        self.make = make

    def __missing__(self, language: LanguageVersion) -> Any:
        form = self[language] = self.make(language)
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

    def _public_call(self) -> FunctionType:
        """Return the function that authors call: under a version that has all of the instruction, the usual one."""
        plain = caller(self, self.form, self.roles, depth=2)

        def call(*args: Any, **kwargs: Any) -> Any:
            core = CORE.get()
            if core is None or core.language is not self._whole_version:
                return plain(*self._bound_in_version(args, kwargs))
            try:
                return plain(*args, **kwargs)
            except TypeError as error:  # an argument that is given twice: plain refuses all other wrong calls
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                wrong = error.with_traceback(None)
            return self.refuse_call(wrong)

        call.__name__ = call.__qualname__ = self.name
        call.__module__, call.__annotations__ = self.function.__module__, {}
        call.version_changes = self.version_changes  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    @functools.cached_property
    def _whole_version(self) -> LanguageVersion | None:
        """Return the newest version, where it takes the whole signature as it is; else None."""
        newest = versions.language_of()
        is_whole = self.row.is_in(newest) and narrowed(self.signature, self.version_changes, newest) == self.signature
        return newest if is_whole and not noticed_in(self.row, self.version_changes, newest) else None

    def _bound_in_version(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call by the signature of the version of the run."""
        core, values = current_core(f"nisa.{self.name}"), None
        try:
            values = self.binders[core.language](*args, **kwargs)
        except TypeError as error:
            wrong = error.with_traceback(None)  # whose frames would hold it, and all that they name
        if values is None:  # outside of the except clause, so that the finding does not drag the TypeError along
            self.refuse_call(wrong)
        return tuple(values)

    def _binder(self, language: LanguageVersion) -> Binder:
        check_version(self.row, language)
        shown = narrowed(self.signature, self.version_changes, language)
        # A parameter that the version lacks gets the default of the definition.
        passed = [name if name in shown.parameters else f"_{name}" for name in self.parameters]
        defaults = {f"_{name}": each.default for name, each in self.signature.parameters.items()}
        bind = _compiled("_bound", shown, f"({', '.join(passed)},)", defaults)
        noticed = noticed_in(self.row, self.version_changes, language)

        def warned(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
            bound = tuple(bind(*args, **kwargs))
            report_notices(noticed, kwargs)
            return bound

        return warned if noticed else bind

    @property
    def call_form(self) -> str:
        """Return the signature under the version of the run, as a remedy shows it."""
        return self.form_of(narrowed(self.signature, self.version_changes, language_here()))

    def refuse_call(self, error: TypeError) -> NoReturn:
        """Refuse a call that does not fit the signature of the version."""
        check_argument(f"nisa.{self.name}", error, self.version_changes, self.call_form)
        super().refuse_call(error)


class _FunctionForm:
    """A plain function as one NKI version has it."""

    def __init__(self, function: FunctionType, row: Row, changes: tuple[Row, ...], language: LanguageVersion) -> None:
        check_version(row, language)
        self.noticed = noticed_in(row, changes, language)
        self.signature = narrowed(signature(function), changes, language)
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
        form = forms[language_here()]
        try:
            result = form.call(*args, **kwargs)
            report_notices(form.noticed, kwargs)
            return result
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


def noticed_in(row: Row, changes: Sequence[Row], language: LanguageVersion) -> list[tuple[str, Notice]]:
    """Return the findings of NK618 about a call under ``language``, each with its parameter, "" for the call itself."""
    found = ((each.parameter, versions.notice(each, language)) for each in (row, *changes) if not each.default)
    return [(parameter, each) for parameter, each in found if each is not None]


def report_notices(noticed: Sequence[tuple[str, Notice]], given: Mapping[str, Any]) -> None:
    """Report (NK618) where a call uses what the newest version has removed, or what is announced to go."""
    for parameter, notice in noticed:
        if not parameter or parameter in given:
            report_notice(notice)


def check_version(row: Row, language: LanguageVersion) -> None:
    """Refuse the call of a name that ``language`` lacks (NK608)."""
    if not row.is_in(language):
        refuse("NK608", f"{row.short} {row.absence(language)}", remedy=row.instead or OTHER_VERSION)


def check_argument(called: str, error: TypeError, changes: Sequence[Row], form: str) -> None:
    """Refuse an argument that only another version has: NK609 if it came later, NK608 if it was removed."""
    language = language_here()
    for row in changes:
        if f"'{row.parameter}'" in str(error) and not row.default and not row.is_in(language):
            message = f"{called}: the argument `{row.parameter}` {row.absence(language)}"
            refuse("NK608" if row.is_gone(language) else "NK609", message, remedy=row.instead or form)
