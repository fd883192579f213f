"""The source of a kernel and of the functions it calls: parsed once, and checked by the rules on sources.

Without source (a session without history, a compiled module) nothing is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from types import CodeType, FunctionType
from typing import Any

from nkitools.authors_code.called_functions import plain_function
from nkitools.authors_code.source_text import current_text, nested_codes, text_of
from nkitools.dialects.legacy.kernels.annotations import statements
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.kernel_state import SKIP_SHARED_HBM_CHECK, form_of
from nkitools.lint.ignores import is_ignored
from nkitools.lint.legacy_scopes import Scopes, SourceFinding
from nkitools.lint.module import Unreadable, parse
from nkitools.lint.scope import LEGACY, Function, Scope, own_nodes
from nkitools.record.source_sites import Site
from nkitools.rules.finding import report


def functions_of(source: str) -> dict[tuple[int, str], tuple[Function, Scope]]:
    """Return the functions of a source text by first line and name; {} if the text does not parse."""
    try:
        return parse(source, "").functions
    except Unreadable:
        return {}


@lru_cache(maxsize=256)
def _findings(source: str, first: int, name: str) -> tuple[SourceFinding, ...]:
    found = functions_of(source).get((first, name)) if LEGACY in source else None
    return tuple(Scopes(found[1]).function()) if found is not None else ()


def report_source(functions: Iterable[FunctionType]) -> None:
    """NK208, NK601, NK605: report what the source of a kernel, and of the author's functions that it calls, shows."""
    shared_anywhere = SKIP_SHARED_HBM_CHECK in form_of().switches
    for code in (code for each in functions for code in nested_codes(each.__code__)):
        source = text_of(code)
        for found in _findings(source, code.co_firstlineno, code.co_name):
            if (found.rule == "NK208" and shared_anywhere) or is_ignored(source, found.rule, found.line):
                continue
            with placed(Site(code.co_filename, found.line, found.column, code.co_name)):
                report(found.rule, found.message, remedy=found.remedy, facts={"code": found.code})


class KnownSource:
    """The source of a kernel, looked at again when its functions or the texts of their files have changed."""

    def __init__(self) -> None:
        self._functions: Sequence[FunctionType] = ()
        self._code: CodeType | None = None
        self._files: tuple[str, ...] = ()
        self._texts: list[str] = []
        self._shows_nothing = False

    def shows_nothing(self, functions: Sequence[FunctionType], code: CodeType | None) -> bool:
        """Return True if the functions break no rule on sources and the file of ``code`` annotates no shapes."""
        texts = list(map(current_text, self._files))
        if functions is self._functions and code is self._code and all(map(is_, texts, self._texts)):
            return self._shows_nothing
        codes = [each for function in functions for each in nested_codes(function.__code__)]
        self._functions, self._code = functions, code
        self._files = tuple({each.co_filename for each in (*codes, *([] if code is None else [code]))})
        self._texts = list(map(current_text, self._files))
        self._shows_nothing = not (
            any(_findings(text_of(each), each.co_firstlineno, each.co_name) for each in codes)
            or (code is not None and statements(code.co_filename, text_of(code)))
        )
        return self._shows_nothing


@dataclass(frozen=True)
class Place:
    """The first line of a function, and its end: the line of its return, if it has only one."""

    function: Site
    end: Site


def place_of(function: Callable[..., Any]) -> Place:
    """Return the lines of ``def`` and of the only ``return``; line 0 of no file for an object without code."""
    plain = plain_function(function)
    if plain is None:
        return Place(*(Site("<unknown>", 0, None, ""),) * 2)
    code = plain.__code__
    file, name = code.co_filename, code.co_name
    found = functions_of(text_of(code)).get((code.co_firstlineno, name))
    if found is None:
        return Place(*(Site(file, code.co_firstlineno, None, name),) * 2)
    node = found[0]
    returns = [each.lineno for each in own_nodes(node.body) if isinstance(each, ast.Return)]
    lines = (node.lineno, returns[0] if len(returns) == 1 else node.lineno)
    return Place(*(Site(file, line, None, name) for line in lines))
