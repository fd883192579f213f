"""The lists, dictionaries and sets whose contents the body of a loop carries on from one turn to the next."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from nkitools.dialects.legacy.kernels.carried_names import Bound, Reads, with_names
from nkitools.lint.outer_changes import OF_CONTAINERS, OF_LISTS
from nkitools.lint.scope import own_nodes, stored


def carried_containers(loop: ast.For, body: Iterable[ast.stmt]) -> dict[str, int]:
    """Return the names whose contents a loop changes, with the first line that does so.

    They are read in the loop's body before it changes them, or after the loop in ``body``, the function's body.
    """
    changed: dict[str, int] = {}
    for each in own_nodes(loop.body):
        base = _changed(each)
        if base is not None:
            changed[base.id] = min(changed.get(base.id, base.lineno), base.lineno)
    if not changed:
        return {}
    reads = _ReadsOfContents(set(), set())
    reads.block(loop.body, {each.id for each in stored([loop.target])})
    behind = {
        each.id
        for each in own_nodes(list(body))
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.lineno > (loop.end_lineno or 0)
    }
    return {name: line for name, line in sorted(changed.items()) if name in reads.exposed | behind}


class _ReadsOfContents(Reads):
    """Follows contents in place of names: a change of contents, ``tiles.append(tile)`` or ``tiles[0] = tile``, binds
    them.
    """

    def read(self, node: ast.AST, bound: Bound) -> Bound:
        """Return the names whose contents are new after a statement; it reads before it changes."""
        changed = [base for each in ast.walk(node) if (base := _changed(each)) is not None]
        if isinstance(node, ast.AugAssign):
            self.use({base.id for base in changed}, bound)
        own = set(map(id, changed))
        found = [each for each in ast.walk(node) if isinstance(each, ast.Name) and id(each) not in own]
        self.use({each.id for each in found if isinstance(each.ctx, ast.Load)}, bound)
        names = {each.id for each in found if isinstance(each.ctx, ast.Store)}
        return with_names(bound, names | {base.id for base in changed})


def _changed(node: ast.AST) -> ast.Name | None:
    """Return the name whose contents a call or an assignment changes."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name() as base, attr=method)) if method in OF_LISTS | OF_CONTAINERS:
            return base
        case ast.Subscript(value=ast.Name() as base, ctx=ast.Store() | ast.Del()):
            return base
    return None


def contents(value: object) -> tuple[object, ...] | None:
    """Return the contents of a list, a dictionary or a set; None for other values."""
    if isinstance(value, dict):
        return (*value.keys(), *value.values())
    return tuple(value) if isinstance(value, (list, set)) else None


def differ(first: Iterable[object], now: Iterable[object]) -> Iterator[bool]:
    """Yield for each entry whether it has changed: another object, or for numbers and strings another value."""
    for one, other in zip(first, now, strict=True):
        plain = isinstance(one, (bool, int, float, str, tuple)) and type(one) is type(other)
        yield one is not other and not (plain and one == other)
