"""The compiler's words as the author of a source is shown them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from nkitools.customop.toolchain import INCLUDE
from nkitools.facts.tsv import rows_of

_OURS = "nkitools CO112"
# The first line of a message, the lines of the includes that lead to one, and where the following ones are.
_MESSAGE = re.compile(r"^[^\n]+?:\d+(?::\d+)?: (?:fatal error|error|warning|note): ")
_WAY = re.compile(r"^(?:In file included|\s+) from ")
_CONTEXT = re.compile(r"^[^\n]+?: In ")
_HEADERS = f"{INCLUDE}{os.sep}"
# What sources of other extensions of torch have, by the compiler's words, and what a custom operator has in its place.
_REMEDIES = Path(__file__).with_name("compiler_remedies.tsv")
_INTERNAL = (("torch::nkt_host::", "torch::"), ("c10::nkt_host::", "c10::"), ("nkt_host::", "torch::"))


def authors_words(text: str, unit: str = "") -> str:
    """Return a compiler's messages for an author.

    Left out are our own remarks (CO112), notes on our headers, our names, and lines about the surrounding ``unit``.
    """
    blocks: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        way = all(_WAY.match(each) for each in blocks[-1])  # leads to the message that follows
        if _CONTEXT.match(line) or (_MESSAGE.match(line) and not way) or (_WAY.match(line) and not way):
            blocks.append([])
        if not unit or unit not in line:
            blocks[-1].append(line)
    told = "".join("".join(block) for block in blocks if not _is_ours(block))
    for internal, theirs in _INTERNAL:
        told = told.replace(internal, theirs)
    return told


def _is_ours(block: Sequence[str]) -> bool:
    """Return whether a message is a remark of ours, or a note on one of our headers."""
    message = next((line for line in block if _MESSAGE.match(line)), "")
    return _OURS in message or (": note: " in message and _HEADERS in message)


def remedies_of(text: str) -> str:
    """Return a line of remedy for each thing that a source takes for granted and custom operators lack; '' for none."""
    found = [(re.search(row["pattern"], text), row["remedy"]) for row in rows_of(_REMEDIES)]
    return "".join("\n" + remedy.format(*filter(None, match.groups())) for match, remedy in found if match is not None)
