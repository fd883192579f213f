"""The source of code that runs: the text of its file, as long as that text still gives this very code.

A file may be edited after it was imported. Then its text is another program's: it is not compiled in place of the code,
and findings do not name its lines. A text that once gave the code is kept for it.
"""

from __future__ import annotations
import __future__ as future

import ast
import linecache
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from nkitools.facts.kept import Kept

_FEATURES = sum(getattr(future, name).compiler_flag for name in future.all_feature_names)
_OF_PYTEST = "@pytest_ar"  # a name in assertions that pytest has rewritten
_MANY = "a large project's files and functions"
_texts = Kept[str, tuple[list[str], str]]("the lines of files and their texts, while linecache has them", 4096, _MANY)
_kept = Kept[tuple[str, CodeType], str]("the texts that codes were made of", 4096, _MANY)
_shown = Kept[str, str]("the texts of files as the code that runs has them", 4096, _MANY)


class SourceChanged(UserWarning):
    """Warns that the file of a kernel has changed since its code was loaded."""


def text_of(code: CodeType) -> str:
    """Return the text of the file that gives ``code``; '' if there is none, as after an edit."""
    file = code.co_filename
    now, kept = current_text(file), _kept.get((file, code), "")
    if now is not kept and _index(now, code) is not None:
        kept = now
        keep_text(code, now)
    _shown[file] = kept
    return kept


def is_changed(code: CodeType) -> bool:
    """Return True if the file of ``code`` is there, and its text does not give this code any more.

    False for a function whose assertions pytest has rewritten, as pytest's settings decide how, and for code that has
    no lines.
    """
    has_lines = any(line for *_, line in code.co_lines())
    return has_lines and bool(current_text(code.co_filename)) and not text_of(code) and not _is_of_pytest(code)


def keep_text(code: CodeType, text: str) -> None:
    """Keep a text as the source of a code, and of the functions in it."""
    for each in nested_codes(code):
        _kept[code.co_filename, each] = text


def shown_text(file: str) -> str:
    """Return the text of a file as it was when its running code was loaded; without such code its current text."""
    found = _shown.get(file)
    return current_text(file) if found is None else found


def current_text(file: str) -> str:
    """Return the current text of a file, or of a notebook's cell; '' if it is not available.

    It is one object as long as linecache keeps the same lines. Code of ``exec`` shares the name ``<string>`` with
    the program of ``python -c``, whose text linecache has from Python 3.13 on.
    """
    if file == "<string>":
        return ""
    linecache.checkcache(file)
    lines = linecache.getlines(file)
    if file not in _texts or _texts[file][0] is not lines:
        _texts[file] = lines, "".join(lines)
    return _texts[file][1]


def tree_of(text: str) -> ast.Module:
    """Return the tree of a source text. Raises SyntaxError, ValueError, RecursionError, MemoryError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes: Python's own, and not about kernels
        return ast.parse(text)


_tree = lru_cache(maxsize=32)(tree_of)  # no caller changes the trees


def nodes_of(text: str) -> Iterator[ast.AST]:
    """Return the nodes of a source text; none of a text that is no Python."""
    try:
        return ast.walk(_tree(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return iter(())


def compiled_again(code: CodeType, text: str, changed: ast.Module | str) -> CodeType | None:
    """Compile the source of ``code`` after an edit, a tree or a text; return the code in the place of ``code``.

    ``text``: the source before the edit; None if it does not have ``code``. SyntaxError or ValueError for a source that
    is no Python.
    """
    index = _index(text, code)
    if index is None:
        return None
    flags = code.co_flags & _FEATURES
    source = changed if isinstance(changed, str) else ast.fix_missing_locations(changed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes
        module = compile(source, code.co_filename, "exec", flags=flags, dont_inherit=True)
    return list(nested_codes(module))[index]


def alone(text: str, line: int, other: str) -> tuple[str, str]:
    """Return two texts of a module without the other functions and classes; the lines that are left stay in place.

    ``line``: in the function, class or statement that is kept. ``other``: the text after an edit of that. Both texts as
    they are if the line is in none, or if they differ elsewhere.
    """
    first, last = _span(text, line)
    lines, others = text.splitlines(keepends=True), other.splitlines(keepends=True)
    rest = len(lines) - last
    if not first or lines[: first - 1] != others[: first - 1] or lines[last:] != others[len(others) - rest :]:
        return text, other
    small = list(_small(text, first))
    return "".join(small), "".join([*small[: first - 1], *others[first - 1 : len(others) - rest], *small[last:]])


@lru_cache(maxsize=64)
def _small(text: str, kept: int) -> tuple[str, ...]:
    """Return the lines of a text, empty in all functions and classes but the one that begins at line ``kept``."""
    lines = text.splitlines(keepends=True)
    for node in _tree(text).body:
        first = _first_line(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and first != kept:
            lines[first - 1 : node.end_lineno] = ["\n"] * ((node.end_lineno or 0) - first + 1)
    return tuple(lines)


def _span(text: str, line: int) -> tuple[int, int]:
    """Return the first and last line of the statement of a module that a line belongs to; 0 and 0 for none."""
    for node in _tree(text).body if text else ():
        if _first_line(node) <= line <= (node.end_lineno or 0):
            return _first_line(node), node.end_lineno or 0
    return 0, 0


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def is_alike(code: CodeType, other: CodeType) -> bool:
    """Return True if two functions have one name, and the same variables of the functions around them."""
    return (code.co_qualname, code.co_freevars) == (other.co_qualname, other.co_freevars)


@contextmanager
def running(codes: Sequence[tuple[FunctionType, CodeType]]) -> Iterator[None]:
    """Let functions run other code while the block runs."""
    kept = [(function, function.__code__) for function, _ in codes]
    try:
        for function, code in codes:
            function.__code__ = code
        yield
    finally:
        for function, code in kept:
            function.__code__ = code


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and those of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested_codes(constant)


def lines_of(code: CodeType) -> tuple[int, int]:
    """Return the first and the last line of a function, its decorators included."""
    lines = [line for each in nested_codes(code) for *_, line in each.co_lines() if line]
    return min(lines, default=0), max(lines, default=0)


def is_at(node: ast.expr | ast.stmt, code: CodeType) -> bool:
    """Return True if ``code`` was compiled from a node; columns decide, as a line may have several lambdas."""
    first, last = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
    places = [(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None]
    inside = [each for each in places if each != (code.co_firstlineno, 0)]  # the begin of the code has no column
    return all(first <= each < last for each in inside)


def _index(text: str, code: CodeType) -> int | None:
    """Return the index of a code object among those of a text; None if the text does not have it."""
    found = _codes(text, code.co_flags & _FEATURES, _is_of_pytest(code)) if text else {}
    return found.get(code)


def _is_of_pytest(code: CodeType) -> bool:
    return any(_OF_PYTEST in each.co_names for each in nested_codes(code))


@lru_cache(maxsize=64)
def _codes(text: str, flags: int, is_rewritten: bool) -> dict[CodeType, int]:
    """Return the index of each code object of a text. Code objects are equal if they do the same at the same lines."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source: Any = text
            if is_rewritten:
                from _pytest.assertion.rewrite import rewrite_asserts

                source = ast.parse(text)
                rewrite_asserts(source, text.encode())
            module = compile(source, "<text>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError, ImportError, TypeError, RecursionError):
        return {}
    return {code: number for number, code in reversed(list(enumerate(nested_codes(module))))}
