"""A kernel and what is expected of it under each NKI version: the findings at its lines, and its result by NumPy.

A comment at the end of a line has the rules that are found there: ``# 0.6: lint NK616; 0.7: NK602; auto: NK618``.
``lint NK616`` is found by lint alone, ``run NK402`` by a run alone, and ``NK602`` by both. ``auto`` is expected
to be as 0.7 where a line has no ``auto``, and the former front end as 0.6.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

"""
# The end of kernels that compute nothing but a number in Python.
SCALED = """\
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.multiply(nl.load(x), factor))
    return out
"""
_MARKS = re.compile(r"  # ((?:0\.|auto|custom).*)$")
VERSIONS = ("0.6", "0.7", "auto", "custom")  # custom is 0.7 with the former front end of the compiler
_ALIKE = {"auto": "0.7", "custom": "0.6"}


@dataclass(frozen=True)
class Case:
    """One kernel: ``kernel(x)`` of a text."""

    row: str  # the construct of the language
    text: str  # the file without its imports; without `return out` a number `factor` is what it computes
    expected: float | Callable[[np.ndarray[Any, Any]], Any]  # the result, or the number that x is multiplied with
    raises: type[BaseException] | None = None  # the kernel's own exception
    results: tuple[tuple[str, float], ...] = ()  # the number under versions that compute another one
    versions: tuple[str, ...] = VERSIONS  # those that have all the names of the text

    @property
    def source(self) -> str:
        """Return the whole file."""
        text = textwrap.dedent(self.text)
        return HEAD + text + ("" if "return out" in text else SCALED)

    def marked(self, version: str, by: str) -> list[tuple[str, int]]:
        """Return the rules and lines that ``lint`` or a ``run`` finds under a version."""
        found = []
        for number, line in enumerate(self.source.splitlines(), start=1):
            marks = _MARKS.search(line)
            parts = [each.split(": ") for each in marks.group(1).split("; ")] if marks else []
            said = {name: rules.split(", ") for name, rules in parts}
            for rule in said.get(version, said.get(_ALIKE.get(version, ""), [])):
                only, _, name = rule.rpartition(" ")
                if only in ("", by):
                    found.append((name, number))
        return found

    def result(self, x: np.ndarray[Any, Any], version: str) -> np.ndarray[Any, Any]:
        """Return what the kernel returns for ``x``."""
        number = dict(self.results).get(version, dict(self.results).get(_ALIKE.get(version, ""), self.expected))
        return np.asarray(number(x) if callable(number) else x * np.float32(number), dtype=np.float32)
