"""The compiler's words as the author of a source is shown them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from nkitools.customop.toolchain import INCLUDE

_OURS = "nkitools CO112"
# The first line of a message, the lines of the includes that lead to one, and where the following ones are.
_MESSAGE = re.compile(r"^[^\n]+?:\d+(?::\d+)?: (?:fatal error|error|warning|note): ")
_WAY = re.compile(r"^(?:In file included|\s+) from ")
_CONTEXT = re.compile(r"^[^\n]+?: In ")
_HEADERS = f"{INCLUDE}{os.sep}"
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
        r"error: (?:too few arguments to function '[^'\n]*|no matching function for call to ')\b(full)\(",
        "Give the dtype: torch::{0}(sizes, value, torch::kFloat).",
    ),
    (
        r"error: (?:'at' (?:does not name a type|has not been declared)|use of undeclared identifier 'at')",
        "at:: is no namespace of custom operators: write torch::Tensor.",
    ),
    (r"error: (?:[^\n]* has )?no member named '(options)'", "Give the dtype in place of {0}(): torch::kFloat."),
    (
        r"error: [^\n]*(?:'TensorOptions' is not a member|no (?:member|type) named 'TensorOptions')",
        "Give the dtype itself in place of TensorOptions: torch::kFloat.",
    ),
    (
        r"error: [^\n]*'(TORCH_CHECK|TORCH_INTERNAL_ASSERT|AT_ASSERTM?)'",
        "{0} is not there in custom operators: write assert(condition).",
    ),
    (
        r"error: (?:[^\n]* has )?no member named '(data_ptr|data|item)'",
        "Custom operators have no {0}(): reach elements by accessor<T, N>(), or copy them by tcm_accessor().",
    ),
    (r"error: (?:[^\n]* has )?no member named '(contiguous)'", "Leave {0}() out: tensors of a device are contiguous."),
    (
        r"error: [^\n]*(?:'(empty|zeros|ones)_like' is not a member|no member named '(empty|zeros|ones)_like')",
        "Give sizes and dtype in place of _like: torch::empty(x.sizes(), torch::kFloat).",
    ),
)
_INTERNAL = (("torch::nkt_host::", "torch::"), ("c10::nkt_host::", "c10::"), ("nkt_host::", "torch::"))


def authors_words(text: str, unit: str = "") -> str:
    """Return what a compiler says to an author.

    Our own remarks (CO112) are left out, notes on our headers, our names, and lines about the ``unit`` around.
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
    found = [(re.search(pattern, text), remedy) for pattern, remedy in _REMEDIES]
    return "".join("\n" + remedy.format(*match.groups()) for match, remedy in found if match is not None)
