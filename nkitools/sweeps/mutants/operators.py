"""All mutants of a source: every operator at every place where it applies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nkitools.sweeps.mutants import control, instructions, places, statements
from nkitools.sweeps.mutants.registry import OPERATORS, Operator
from nkitools.sweeps.mutants.source import Edit, Mutant, Source

__all__ = ["MODULES", "OPERATORS", "Operator", "mutants_of"]

# They fill the table when they are imported.
MODULES = (statements, places, instructions, control)


def mutants_of(source: Source) -> Iterator[Mutant]:
    """The mutants, in the order of the operators and of the text; what two operators do alike counts for the first."""
    seen = {source.text}
    for name, operator in OPERATORS.items():
        for edit in operator.edits(source):
            text = source.text[: edit.start] + edit.new + source.text[edit.stop :]
            if text in seen or not _parses(source, edit):
                continue
            seen.add(text)
            yield Mutant(
                kernel=source.kernel,
                operator=name,
                function=source.function_at(edit.line),
                line=edit.line,
                code=source.lines[edit.line - 1].strip(),
                old=source.text[edit.start : edit.stop],
                new=edit.new,
                text=text,
            )


def _parses(source: Source, edit: Edit) -> bool:
    """Return whether the function that an edit is in, or the constant, is still Python."""
    start, stop = max(span for span in map(source.span, source.tree.body) if span[0] <= edit.start)
    try:
        ast.parse(source.text[start : edit.start] + edit.new + source.text[edit.stop : max(stop, edit.stop)])
    except SyntaxError:
        return False
    return True
