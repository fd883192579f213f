"""The bodies that a function hands to nl.fori_loop and nl.while_loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.lint.return_types import parts
from nkitools.lint.scope import Scope

_POSITIONS = {"fori_loop": 2, "while_loop": 1}


def loop_calls(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """Yield each loop on the device that a function begins, ``fori_loop`` or ``while_loop``, and its body."""
    for each in scope.calls:
        _, module, member = parts(scope.qualified(each.func))
        position = _POSITIONS.get(member) if module == "language" else None
        if position is None:
            continue
        named = next((key.value for key in each.keywords if key.arg == "body_fun"), None)
        body = named if named is not None else each.args[position] if len(each.args) > position else None
        if body is not None:
            yield member, body
