"""Kernels that mix the two dialects: the legacy ``neuronxcc.nki`` and the modern ``nki`` (NK608).

"Usage of the ``neuronxcc.nki.*`` namespace inside NKI kernels raises a compilation error as of NKI 0.4.0" (migration
guide, Migrating from NKI 0.1.0 to NKI 0.2.0); the legacy compiler does not take ``nki`` either.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from types import FrameType
from typing import NoReturn

from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import refuse

_MODULES = {"nl": "language", "nisa": "isa"}
_REMEDY = (
    "Write the whole kernel in one dialect (a function without a decorator runs as one of nki). To migrate it, import "
    "nki, nki.isa and nki.language in the place of neuronxcc.nki and its modules; `nkitools explain NK608` lists what "
    "replaces the names that are gone."
)


def refuse_mixed(called: str, dialect: str, kernel: str) -> NoReturn:
    """NK608: a function of one dialect in a kernel of the other, and which line belongs to which."""
    frame = author_frame(2)
    module, _, name = called.partition(".")
    message = f"{dialect}.{_MODULES[module]}.{name} is called in a kernel of {kernel}{imports_of(frame)}"
    refuse("NK608", message, remedy=_REMEDY)


def imports_of(frame: FrameType | None) -> str:
    """``; line 1 imports nki, line 3 neuronxcc.nki.language as nl`` of the author's file, where its source is known."""
    if frame is None:
        return ""
    lines = _imports(text_of(frame.f_code))
    return "; " + ", ".join(f"line {line} imports {text}" for line, text in lines) if lines else ""


@lru_cache(maxsize=32)
def _imports(source: str) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            names = [each for each in node.names if _is_nki(each.name)]
            found += [(node.lineno, each.name + (f" as {each.asname}" if each.asname else "")) for each in names]
        elif isinstance(node, ast.ImportFrom) and _is_nki(node.module or ""):
            found.append((node.lineno, f"{', '.join(each.name for each in node.names)} from {node.module}"))
    return tuple(sorted(found))


def _is_nki(module: str) -> bool:
    return module.partition(".")[0] in ("nki", "neuronxcc")
