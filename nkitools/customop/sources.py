"""The text of an operator's sources, read without a compiler."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_BRACKETS = {"(": 1, "<": 1, "[": 1, "{": 1, ")": -1, ">": -1, "]": -1, "}": -1}
_INCLUDED = re.compile(r"""^\s*#\s*include\s*(?:<([^>\n]+)>|"([^"\n]+)")""", re.MULTILINE)
_OF_PYTORCH = ("torch/", "ATen/", "c10/")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:=.*)?$", re.DOTALL)


def without_comments(text: str) -> str:
    """Return a C++ source with a space in place of each comment."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)


def host_headers(sources: Iterable[str]) -> set[str]:
    """Return the headers of PyTorch that sources include, also by way of headers beside them, but for torch/torch.h."""
    found, waiting, seen = set[str](), [Path(each) for each in sources], set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        for names in _INCLUDED.findall(without_comments(path.read_text(errors="replace"))):
            name = "".join(names)
            waiting.append(path.parent / name)
            found |= {name} if name.startswith(_OF_PYTORCH) and ".." not in name else set()
    return found - {"torch/torch.h"}


def defines(body: str, kernel: str) -> bool:
    """Return whether a source seems to define a function: its name, parameters, and a brace."""
    return _definition(body, kernel) is not None


def parameter_names(sources: Iterable[str], kernel: str, count: int) -> tuple[str, ...]:
    """Return the names of the ``count`` parameters of ``kernel``; () if its definition cannot be read."""
    for path in sources:
        try:
            body = without_comments(Path(path).read_text(errors="replace"))
        except OSError:
            continue
        found = _definition(body, kernel)
        if found is None:
            continue
        names = [_NAME.search(parameter.strip()) for parameter in _split(found[1])]
        if len(names) == count and all(names):
            return tuple(name[1] for name in names if name)
    return ()


def _definition(body: str, kernel: str) -> re.Match[str] | None:
    name = kernel.rpartition("::")[2]
    return re.search(rf"\b{name}\s*\(([^;{{}}]*)\)\s*(?:noexcept\s*)?\{{", body)


def _split(parameters: str) -> list[str]:
    """Split a text at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in parameters:
        depth += _BRACKETS.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts if parameters.strip() else []
