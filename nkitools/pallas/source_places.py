"""The author's lines: where an operation, a function or an error of JAX comes from."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from nkitools.authors_code.positions import line_of
from nkitools.pallas import jax_internals
from nkitools.pallas.jax_types import DebugInfo, SourceInfo
from nkitools.rules.finding import Finding, is_own

_FUNCTION_AT = re.compile(r"(?P<function>.*) at (?P<file>.+):(?P<line>\d+)$")


class Place(NamedTuple):
    """A line of the author's, and the function that it is in."""

    file: str = "<unknown>"
    line: int = 0
    function: str = ""

    def finding(
        self, rule: str, message: str, *, remedy: str = "", severity: str = "", point: tuple[int, ...] = ()
    ) -> Finding:
        """Return a finding of ``rule`` at this line and this point of the grid."""
        return Finding.of(rule, message, self, remedy=remedy, severity=severity, program=point)


NOWHERE = Place()


def is_authors(file: str) -> bool:
    """Return whether a file is the author's: neither JAX's nor ours, and a file at all."""
    return not (file.startswith((*_folders_of_jax(), "<frozen")) or is_own(file))


@cache
def _folders_of_jax() -> tuple[str, ...]:
    """Return the folders of JAX's own packages; an author's folder may be called jax as well."""
    specs = [importlib.util.find_spec(name) for name in ("jax", "jaxlib")]
    folders = [folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()]
    return tuple(os.path.join(folder, "") for folder in folders)


def of_source(source_info: SourceInfo | None, otherwise: Place = NOWHERE) -> Place:
    """Return the line of an equation; ``otherwise`` if JAX does not know it (an operation inside JAX)."""
    if source_info is None or jax_internals.moved(jax_internals.STATIC):
        return otherwise
    frames = jax_internals.of(jax_internals.SOURCES, "user_frames")(source_info.traceback)
    for frame in frames:
        if is_authors(frame.file_name):
            return Place(frame.file_name, frame.start_line, frame.function_name.rpartition(".")[2])
    return otherwise


def of_function(debug_info: DebugInfo | None, otherwise: Place = NOWHERE) -> Place:
    """Return the place at which a traced function is defined, from JAX's ``name at file:line``.

    A place in JAX itself counts only if ``otherwise`` has no line.
    """
    found = _FUNCTION_AT.match(str(getattr(debug_info, "func_src_info", "")))
    if found is None or (otherwise.line and not is_authors(found["file"])):
        return otherwise
    return Place(found["file"], int(found["line"]), found["function"].rpartition(".")[2])


def of_error(error: BaseException, otherwise: Place = NOWHERE) -> Place:
    """Return the author's innermost line in the tracebacks of an error of JAX.

    An error of JAX's lowering has a cause with the traceback of the operation. It is tried first: the error's own
    traceback leads only to the call of the whole function.
    """
    for each in _chain(error):
        for frame in reversed(traceback.extract_tb(each.__traceback__)):
            if is_authors(frame.filename) and frame.lineno and "site-packages" not in frame.filename:
                return Place(frame.filename, frame.lineno, frame.name)
    return otherwise


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the causes of an error, the first cause first."""
    if error is not None:
        yield from _chain(error.__cause__)
        yield error


def of_caller() -> Place:
    """Return the author's line that is running now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not is_authors(frame.f_code.co_filename):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, line_of(frame), frame.f_code.co_name)
