"""The table of kinds of edits, which the modules of kinds fill."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from nkitools.edits.source import Edit, Source

Node = TypeVar("Node", bound=ast.AST)
Edits = Callable[[Source, Node], Iterator[Edit]]


@dataclass(frozen=True)
class Kind:
    """One kind of mistake: its name, the author's deed, and the edits that make it at a node of a class."""

    name: str
    mistake: str
    nodes: type[ast.AST]
    edits: Edits[Any]

    def all(self, source: Source) -> Iterator[Edit]:
        """Yield the edits of a source, in the order of its nodes."""
        for node in [source.tree] if self.nodes is ast.Module else source.nodes:
            if isinstance(node, self.nodes):
                yield from self.edits(source, node)


KINDS: dict[str, Kind] = {}


def kind(
    name: str, mistake: str, nodes: type[Node], table: dict[str, Kind] = KINDS
) -> Callable[[Edits[Node]], Edits[Node]]:
    """Put a function into a table that yields the edits at one node of a class; `ast.Module` is the whole source."""

    def registered(edits: Edits[Node]) -> Edits[Node]:
        assert name not in KINDS | table, f"two kinds are called {name}"
        table[name] = Kind(name, mistake, nodes, edits)
        return edits

    return registered
