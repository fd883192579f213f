"""NKI as it is written down: the functions of `nisa`, `nl` and `ncc` here add their calls to the text of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_KEPT = {
    "ndarray", "register_alloc", "scalar_load", "rank_id", "collective_permute_implicit_current_processing_rank_id",
}  # fmt: skip
_INLINE = {"program_id", "num_programs", "ReplicaGroup"}
_LOOPS = {"fori_loop", "while_loop"}
_WRITERS: list[Writer] = []


class Writer:
    """The lines of a kernel, and names that are new."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth, self.count = 0, 0

    def say(self, line: str) -> None:
        """Add a line."""
        self.lines.append("    " * self.depth + line)

    def name(self) -> str:
        """Return a new name."""
        self.count += 1
        return f"v{self.count}"


@contextmanager
def written(signature: str) -> Iterator[Writer]:
    """Collect the calls within as the body of a function."""
    writer = Writer()
    writer.say(f"def {signature}:")
    writer.depth = 1
    _WRITERS.append(writer)
    try:
        yield writer
    finally:
        _WRITERS.pop()


class Symbol:
    """A part of the text that stands for a value; of a tensor with its shape and dtype."""

    def __init__(self, text: str, shape: tuple[int, ...] = (), dtype: Any = None) -> None:
        self.text, self.shape, self.dtype = text, tuple(shape), dtype

    def __repr__(self) -> str:
        return self.text

    def __getitem__(self, index: Any) -> Symbol:
        parts = index if isinstance(index, tuple) else (index,)
        shape = [
            len(range(*part.indices(size)))
            for part, size in zip(parts, self.shape, strict=False)
            if isinstance(part, slice)
        ]
        shown = ", ".join(_slice(part) if isinstance(part, slice) else repr(part) for part in parts)
        return Symbol(f"{self.text}[{shown}]", (*shape, *self.shape[len(parts) :]), self.dtype)

    def __rsub__(self, other: int) -> Symbol:
        return Symbol(f"{other} - {self.text}")

    def reshape(self, shape: tuple[int, ...]) -> Symbol:
        """Return other dimensions."""
        return Symbol(f"{self.text}.reshape({shape!r})", shape, self.dtype)

    def permute(self, order: tuple[int, ...]) -> Symbol:
        """Return the dimensions in another order."""
        return Symbol(f"{self.text}.permute({order!r})", tuple(self.shape[dim] for dim in order), self.dtype)

    def broadcast(self, dim: int, size: int) -> Symbol:
        """Return a dimension of one element as so many."""
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return Symbol(f"{self.text}.broadcast({dim}, {size})", shape, self.dtype)

    def ap(self, pattern: list[list[int]], **keywords: Any) -> Symbol:
        """Return an access pattern."""
        shape = tuple(count for _, count in pattern)
        return Symbol(f"{self.text}.ap({_arguments((pattern,), keywords)})", shape, self.dtype)


def _slice(part: slice) -> str:
    step = f":{part.step}" if part.step not in (None, 1) else ""
    return f"{part.start}:{part.stop}{step}"


def _arguments(given: Any, keywords: dict[str, Any]) -> str:
    return ", ".join([*map(repr, given), *(f"{key}={value!r}" for key, value in keywords.items())])


class Names:
    """The names of a module."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getattr__(self, name: str) -> Any:
        return Name(f"{self.path}.{name}")


class Name(Symbol):
    """A name of a module: a value, an enum, or a function that is called."""

    def __getattr__(self, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name(f"{self.text}.{name}")

    def __call__(self, *given: Any, **keywords: Any) -> Any:
        name = self.text.rpartition(".")[2]
        writer = _WRITERS[-1]
        if name in _LOOPS:
            *bounds, turn = given
            given = (*bounds, Symbol(_written_turn(writer, turn)))
        call = f"{self.text}({_arguments(given, keywords)})"
        if name in _INLINE:
            return Symbol(call)
        if name not in _KEPT:
            writer.say(call)
            return None
        kept = writer.name()
        writer.say(f"{kept} = {call}")
        return Symbol(kept, given[0] if name == "ndarray" else (), keywords.get("dtype"))


def _written_turn(writer: Writer, turn: Callable[[Any], Any]) -> str:
    """Write the body of a loop as a function; return its name."""
    name, counter = writer.name(), writer.name()
    writer.say(f"def {name}({counter}):")
    writer.depth += 1
    returned = turn(Symbol(counter))
    if returned is not None:
        writer.say(f"return {returned!r}")
    writer.depth -= 1
    return name


nisa, nl, ncc = Names("nisa"), Names("nl"), Names("ncc")
