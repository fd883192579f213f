"""The compiler's words as the author of a source is shown them."""

from __future__ import annotations

import re

_OURS = "nkitools CO112"
# The first line of a message, or of the lines that lead to one.
_HEAD = re.compile(r"^(?:[^\n]+?:\d+(?::\d+)?: (?:fatal error|error|warning): |[^\n]+?: In |In file included from )")
_NOTE = re.compile(r"^[^\n]+?:\d+(?::\d+)?: note: ")
# What sources of other extensions of torch have, and what a custom operator has in its place.
_REMEDIES = (
    (
        r"error: '?((?:torch/extension|ATen/|c10/|torch/library)[\w./]*)'?(?: file not found|: No such file)",
        "{0} is no header of custom operators: include <torch/torch.h>.",
    ),
    (
        r"error: (?:too few arguments to function '[^'\n]*|no matching function for call to ')\b(zeros|ones|empty)\(",
        "Give the dtype: torch::{0}(sizes, torch::kFloat).",
    ),
    (
        r"error: (?:'at' (?:does not name a type|has not been declared)|use of undeclared identifier 'at')",
        "at:: is no namespace of custom operators: write torch::Tensor.",
    ),
    (r"error: [^\n]* (?:has )?no member named '(options)'", "Give the dtype in place of {0}(): torch::kFloat."),
)
_INTERNAL = (("torch::nkt_host::", "torch::"), ("c10::nkt_host::", "c10::"), ("nkt_host::", "torch::"))


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


def remedies_of(text: str) -> str:
    """Return a line of remedy for each thing that a source takes for granted and custom operators lack; '' for none."""
    found = [(re.search(pattern, text), remedy) for pattern, remedy in _REMEDIES]
    return "".join("\n" + remedy.format(*match.groups()) for match, remedy in found if match is not None)


def names_an_error(text: str) -> bool:
    """Return whether a compiler's words have an error among them."""
    return re.search(r": (?:fatal )?error: ", text) is not None
