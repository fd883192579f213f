"""``x: nt.tensor[128, 512] = ...``: the annotated shape of a variable is that of its tensor (NK109).

Python never evaluates annotations of local variables. So they are read from the source, if there is one, and compared
with the variable's value when the kernel makes its next tensor, or ends.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from nkitools.authors_code.positions import line_of
from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.typing import Annotation
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.kernel_state import TENSOR_MADE
from nkitools.record.source_sites import Site, author_frame
from nkitools.rules.finding import report


@dataclass(frozen=True, eq=False)
class Statement:
    """``name: annotation = value``, and its lines."""

    name: str
    annotation: CodeType
    first: int
    last: int


@lru_cache(maxsize=64)
def statements(file: str, text: str) -> tuple[Statement, ...]:
    """Return the statements of a file whose annotation of a variable may be a tensor with sizes."""
    return tuple(
        Statement(
            node.target.id,
            compile(ast.Expression(node.annotation), file, "eval"),
            node.lineno,
            node.end_lineno or node.lineno,
        )
        for node in nodes_of(text)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _may_be_a_shape(node.annotation)
    )


def _may_be_a_shape(annotation: ast.expr) -> bool:
    """``tensor[...]`` or ``nt.tensor[...]``, without calls: it is evaluated."""
    if not isinstance(annotation, ast.Subscript):
        return False
    named = annotation.value
    name = named.id if isinstance(named, ast.Name) else named.attr if isinstance(named, ast.Attribute) else ""
    return name == "tensor" and not any(isinstance(node, ast.Call) for node in ast.walk(annotation))


class _Watch:
    """Waits for the end of each annotated statement."""

    def __init__(self) -> None:
        self.pending: tuple[FrameType, Statement] | None = None
        self.reported: set[Statement] = set()

    def made(self) -> None:
        """Check the annotation of a tensor that is being made."""
        frame = author_frame(2)
        statement = None if frame is None else _around(frame)
        if self.pending is not None and (frame is not self.pending[0] or statement is not self.pending[1]):
            self.compare()
        if frame is not None and statement is not None:
            self.pending = frame, statement

    def compare(self) -> None:
        """Compare the variable of the statement that has ended with its annotation."""
        if self.pending is None:
            return
        frame, statement = self.pending
        self.pending = None
        value: Any = frame.f_locals.get(statement.name)
        sizes = _sizes(frame, statement)
        shape = getattr(value, "shape", None)
        if sizes is None or not hasattr(value, "element") or shape == sizes or statement in self.reported:
            return
        self.reported.add(statement)
        code = frame.f_code
        with placed(Site(code.co_filename, statement.first, None, code.co_name, statement.name), frame):
            message = (
                f"`{statement.name}`, {describe(value.base)}, has the shape {list(value.shape)} and is annotated with "
                f"{list(sizes)} (err_annotation_shape_mismatch)"
            )
            remedy = "Correct the annotation, or the shape of the assigned tensor."
            report("NK109", message, remedy=remedy, facts={"code": "err_annotation_shape_mismatch"})


def _around(frame: FrameType) -> Statement | None:
    line = line_of(frame)
    known = statements(frame.f_code.co_filename, text_of(frame.f_code))
    return next((each for each in known if each.first <= line <= each.last), None)


def _sizes(frame: FrameType, statement: Statement) -> tuple[int, ...] | None:
    """Return the annotated sizes; None if the annotation is something else, or cannot be evaluated here."""
    try:
        found = eval(statement.annotation, frame.f_globals, frame.f_locals)
    except Exception:
        return None  # a name that only a type checker knows, say
    if not isinstance(found, Annotation):
        return None
    sizes = [whole(size) for size in found.sizes]
    return None if None in sizes else tuple(size for size in sizes if size is not None)


@contextmanager
def checked_annotations(code: CodeType | None) -> Iterator[None]:
    """Compare annotations while the block runs, if the file of ``code`` has some."""
    if code is None or not statements(code.co_filename, text_of(code)):
        yield
        return
    watch = _Watch()
    token = TENSOR_MADE.set(watch.made)
    try:
        yield
        watch.compare()
    finally:
        TENSOR_MADE.reset(token)
