"""The source rules of a function that is about to run, and of the author's functions that it names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from nkitools.authors_code.called_functions import function_called, named_functions, plain_function
from nkitools.authors_code.source_text import is_at, shown_text, text_of
from nkitools.facts import options
from nkitools.facts.kept import Kept
from nkitools.facts.versions import LanguageVersion
from nkitools.lint.body_arguments import loop_calls
from nkitools.lint.engine import UNSEEN, look_at_function
from nkitools.lint.project import Found, Running, dialect_of
from nkitools.rules.finding import Finding

_project = Running()
_Known = dict[LanguageVersion, tuple[list[CodeType], tuple[Finding, ...]]]
_known: WeakKeyDictionary[FunctionType, _Known] = WeakKeyDictionary()


def source_findings(function: Callable[..., Any], language: LanguageVersion | None = None) -> tuple[Finding, ...]:
    """Return the findings that only the source of a kernel, and of the author's functions that it names, shows.

    Errors and warnings only: hints belong to lint. A function whose source is not at hand (a session without history,
    a compiled module) has none, nor has one of the legacy dialect, which reports its own. The findings are made again
    when a function has other code or names another function. ``language``: by default that of the option.
    """
    language = language or options.language()
    plain = plain_function(function)
    if plain is None:
        return ()
    functions = list(named_functions(plain))
    codes = [each.__code__ for each in functions]
    known = _known.setdefault(plain, {})
    before, findings = known.get(language, ([], ()))
    if len(before) != len(codes) or not all(map(is_, before, codes)):
        findings = tuple(_findings(functions, language))
        known[language] = codes, findings
    return findings


def _findings(functions: Sequence[FunctionType], language: LanguageVersion) -> Iterator[Finding]:
    dialect = ""
    for each in functions:
        found = _found(each)
        if found is not None:
            dialect = dialect_of(found) or dialect
            if dialect == "modern":
                yield from _of_one(found, language, launched=each is functions[0])


def shows_changes(body: Callable[..., Any]) -> bool:
    """Return whether the source of a loop's body shows that it changes an outer object, ignored or not."""
    plain = function_called(body)
    if plain is None:
        return False
    from nkitools.lint.outer_changes import changes_of_body, changes_of_running  # for loops on the device alone

    code, found = plain.__code__, _found(plain)
    text = text_of(code)
    if found is not None:
        return any(True for _ in changes_of_running(found, _project))
    module = _project.running(code.co_filename, plain.__globals__, text)
    for scope in module.scope.all() if module is not None else ():
        for _, node in loop_calls(scope):
            if isinstance(node, ast.Lambda) and is_at(node, code) and module is not None:
                return any(True for _ in changes_of_body(node, module, scope, _project))
    return False


_by_node = Kept[tuple[ast.AST, LanguageVersion, bool], tuple[Finding, ...]](
    "findings in functions that kernels call", 4096, "a large project's functions; the tree of its file stays with each"
)


def _of_one(found: Found, language: LanguageVersion, *, launched: bool) -> tuple[Finding, ...]:
    """Return the findings of one function; they are made once."""
    key = (found.node, language, launched)
    if key not in _by_node:
        spoken = look_at_function(found, "modern", _project, UNSEEN, kernel=launched, language=language)
        _by_node[key] = tuple(each for each in spoken if each.severity != "hint" and not _is_ignored(each))
    return _by_node[key]


def _is_ignored(finding: Finding) -> bool:
    from nkitools.lint.ignores import ignores_of, without_ignored  # most kernels have no finding

    return not without_ignored([finding], ignores_of(shown_text(finding.file)))


def _found(function: FunctionType) -> Found | None:
    """Return a function in its source; None if the source is not available or has changed since."""
    code = function.__code__
    module = _project.running(code.co_filename, function.__globals__, text_of(code))
    place = None if module is None else module.functions.get((code.co_firstlineno, code.co_name))
    if module is None or place is None or place[1].outer is None:
        return None
    node, scope = place[0], place[1].outer
    parameters = tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args))
    return Found(module, scope, node) if parameters == code.co_varnames[: code.co_argcount] else None
