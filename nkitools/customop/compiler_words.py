"""The compiler's words as the author of a source is shown them."""

from __future__ import annotations

import re

_OURS = "nkitools CO112"
# The first line of a message, or of the lines that lead to one.
_HEAD = re.compile(r"^(?:[^\n]+?:\d+(?::\d+)?: (?:fatal error|error|warning): |[^\n]+?: In |In file included from )")
_NOTE = re.compile(r"^[^\n]+?:\d+(?::\d+)?: note: ")
_INTERNAL = (("torch::nkt_host::", "torch::"), ("nkt_host::", "torch::"))


def authors_words(text: str, unit: str = "") -> str:
    """Return what a compiler says without our own remarks (CO112), our names, and lines about the ``unit`` around."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if _HEAD.match(line):
            blocks.append([])
        if not unit or unit not in line:
            blocks[-1].append(line)
    told = "".join("".join(block) for block in blocks if not (block and _OURS in block[0]))
    for internal, theirs in _INTERNAL:
        told = told.replace(internal, theirs)
    return told


def names_an_error(text: str) -> bool:
    """Return whether a compiler's words have an error among them."""
    return re.search(r": (?:fatal )?error: ", text) is not None
