"""The constants that a kernel reads from outside of it, and the limits of shapes that its text states."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import numpy as np

from nkitools.authors_code.called_functions import named_functions, plain_function
from nkitools.authors_code.named_values import globals_named, variables_around
from nkitools.authors_code.source_text import lines_of, text_of
from nkitools.launch.frameworks import framework_of

_LIMITS = re.compile(
    r"\b(?:multiples?|divisible|divides|assum\w+|exactly|fixed|only (?:for|works|supports)|64|128|256|512|1024|2048)\b"
)

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_OF_RESTS = re.compile(r"\bmin\(|\bmask|ceil|cdiv|div_up|- 1\) *//|-\(-|//-|%")


@dataclass(frozen=True)
class Outside:
    """The constants that a kernel reads, and its words about shapes.

    ``constants``: numbers, texts and arrays, each with its value or form in words; ``arrays``: the names of the arrays.
    ``limits``: a line of the kernel itself that limits shapes; '' if none does. ``reads_shapes``: whether the text
    names
    ``.shape`` or ``.size``; ``has_rests``: whether it computes sizes of partial tiles. ``numbers``: the whole numbers
    in
    the text and the constants.
    """

    constants: dict[str, str]
    arrays: tuple[str, ...] = ()
    limits: str = ""
    reads_shapes: bool = True
    has_rests: bool = True
    numbers: frozenset[int] = frozenset()


def outside_of(kernel: Any) -> Outside:
    """Return the constants and limits of a kernel and of the author's functions that it names."""
    function = plain_function(kernel)
    found: dict[str, Any] = {}
    limits, reads, rests = "", function is None, function is None
    numbers: set[int] = set()
    for each in () if function is None else named_functions(function):
        found |= {**globals_named(each), **variables_around(each)}
        first, last = lines_of(each.__code__)
        text = "\n".join((text_of(each.__code__) or "").splitlines()[first - 1 : last])
        limits = _limit_in(text) if each is function else limits
        reads = reads or ".shape" in text or ".size" in text
        numbers |= {int(number) for number in _NUMBER.findall(text)}
        rests = rests or _OF_RESTS.search(text) is not None
    numbers |= {value for value in found.values() if type(value) is int}
    shown = {name: _shown(value) for name, value in found.items()}
    arrays = tuple(name for name, value in found.items() if isinstance(value, np.ndarray) and value.size > 1)
    return Outside(
        {name: text for name, text in shown.items() if text}, arrays, limits, reads, rests, frozenset(numbers)
    )


def _shown(value: Any) -> str:
    """Return a value in words; '' for one that holds no data: functions, modules, classes, and names of NKI."""
    if isinstance(value, (bool, int, float, str, bytes)) and "nki" not in type(value).__module__:
        return repr(value)[:60]
    if framework_of(value) is not None:
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        return repr(value)[:60]
    return ""


def _limit_in(text: str) -> str:
    """Return a line of a comment or of the docstring that limits shapes; '' for none."""
    for line in text.splitlines():
        said = line.strip()
        comment = said.partition("#")[2]
        if comment and _LIMITS.search(comment):
            return said
    try:
        doc = ast.get_docstring(ast.parse(dedent(text)).body[0])  # type: ignore[arg-type]
    except (SyntaxError, IndexError, TypeError):
        doc = None
    return next((line.strip() for line in (doc or "").splitlines() if _LIMITS.search(line)), "")
