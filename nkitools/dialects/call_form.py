"""Wrong, missing and unknown arguments of a dialect's functions are findings (NK609), not bare TypeErrors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import takewhile
from types import FunctionType
from typing import Any, NoReturn

from nkitools.chip.core import CORE
from nkitools.chip.dialect_semantics import DialectSemantics
from nkitools.facts import options
from nkitools.facts.light_classes import replace
from nkitools.facts.versions import LanguageVersion
from nkitools.rules.catalogue import removed_argument
from nkitools.rules.finding import Finding, KernelError, error_of, refuse


def language_here() -> LanguageVersion:
    """Return the NKI version that holds: that of the run, outside of a run that of the option."""
    core = CORE.get()
    return core.language if core is not None else options.language()


def with_call_forms(
    prefix: str, names: dict[str, Any], dialect: DialectSemantics | None = None, outside: str = ""
) -> dict[str, Any]:
    """Return the plain functions among ``names``, each refusing a call that its signature does not take.

    ``dialect``: the one that the calling kernel must be of; None for any. ``outside``: the dialect's code for a call
    outside of a kernel, where no run adds it to the message (NK611).
    """
    return {
        name: _checked(prefix, name, value, dialect, outside)
        for name, value in names.items()
        if isinstance(value, FunctionType) and not hasattr(value, "instruction")  # those refuse such calls themselves
    }


def _checked(
    prefix: str, name: str, function: Callable[..., Any], dialect: DialectSemantics | None, outside: str
) -> Callable[..., Any]:
    called = f"{prefix}.{name}"

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        core = CORE.get()
        if core is not None and dialect is not None and core.dialect is not dialect:
            from nkitools.dialects.mixed import refuse_mixed

            refuse_mixed(called, dialect.name, core.dialect.name)
        try:
            return function(*args, **kwargs)
        except KernelError as error:
            found = error.finding
            _check_shape(called, function, args, found)
            if not outside or found.rule != "NK611" or "code" in found.facts:
                raise
            said, facts = f"{found.message} ({outside})", {**found.facts, "code": outside}
            raise error_of(replace(found, message=said, facts=facts)) from None
        except TypeError as error:
            # Binding fails before the function has a frame: what is raised inside of it is another matter.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            wrong = error
        try:
            wrong_call(called, inspect.signature(function), function.__qualname__, wrong)
        except KernelError as error:
            _check_shape(called, function, args, error.finding)
            raise

    return checked


def _check_shape(called: str, function: Callable[..., Any], args: tuple[Any, ...], found: Finding) -> None:
    """NK609: a shape in pieces, in a call that ends with a finding: ``nl.zeros(128, 64, dtype=...)``."""
    sizes = list(takewhile(lambda each: isinstance(each, int), args))
    if len(sizes) > 1 and next(iter(inspect.signature(function).parameters), "") == "shape":
        from nkitools.facts.invented_names import shape_remedy

        remedy = shape_remedy(sizes)
        if found.rule == "NK609":
            raise error_of(replace(found, remedy=f"{remedy} {found.remedy}")) from None
        refuse("NK609", f"{called} takes a shape as one tuple", remedy=remedy)


def wrong_call(name: str, form: inspect.Signature, raised_by: str, error: TypeError) -> NoReturn:
    """Refuse a call that does not fit its form (NK609), or that passes an argument which is gone (NK608).

    ``raised_by`` is what the error's text calls the function.
    """
    core = CORE.get()
    argument, instead = removed_argument(error)
    if instead and (core is None or not core.dialect.has_removed_arguments):
        refuse("NK608", f"{name}: the argument `{argument}` was removed from NKI", remedy=instead)
    text = str(error).replace(f"{raised_by}()", f"{name}()")
    from nkitools.facts.invented_names import keyword_remedy

    meant = keyword_remedy(argument, form.parameters)
    refuse("NK609", text, remedy=f"{meant}The call form is {name}{str(form).replace(chr(39), '')}.")
