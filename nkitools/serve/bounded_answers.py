"""Answers to agents as compact JSON; long texts and lists lose their ends in an answer that would be too long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

Plain = dict[str, Any]
MOST_BYTES = 4_000  # of an answer, as JSON
# Parts that may be cut for that, at any depth of an answer.
_LONG = frozenset(
    {"costs", "doubted", "engines", "error", "findings", "printed", "prints", "text", "tiles", "traceback", "why"}
)


def bounded(found: Plain) -> Plain:
    """Return an answer of at most `MOST_BYTES`: the longest part that `_LONG` names is cut by half, again and again.

    It stays longer if the rest is. ``left_out``: how many elements or characters of a part were cut.
    """
    kept: Plain = json.loads(json.dumps(found, default=str))
    cut = Counter[str]()
    while _size(kept) > MOST_BYTES:
        holder, name = max(_long_parts(kept), key=lambda part: _size(part[0][part[1]]), default=({}, ""))
        if not name:
            break
        value = holder[name]
        holder[name] = value[: len(value) // 2]
        cut[name] += len(value) - len(value) // 2
    return kept | ({"left_out": dict(cut)} if cut else {})


def _long_parts(part: Any) -> Iterator[tuple[Plain, str]]:
    """Yield the objects within an answer, each with the name of a text or a list that may be cut."""
    if isinstance(part, dict):
        yield from (
            (part, name) for name in _LONG & part.keys() if isinstance(part[name], list | str) and len(part[name]) > 1
        )
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _long_parts(each)


def compact(plain: Any) -> str:
    """Return plain data as JSON without spaces."""
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _size(plain: Any) -> int:
    return len(compact(plain).encode("utf-8", "surrogatepass"))
