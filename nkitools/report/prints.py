"""Device prints as people are shown them: as they come, or the first ones, each cut to a readable length."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from nkitools.output_streams import write_line

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print


def first_prints(prints: Iterable[Print], limit: int, lines: int) -> list[str]:
    """Return the texts of the first ``limit`` prints, each cut to ``lines`` lines.

    A last text says how many more prints there are.
    """
    rest = iter(prints)
    texts = [_cut(one.text(), lines) for one in islice(rest, limit)]
    more = sum(1 for _ in rest)
    return [*texts, f"... and {more} more"] if more else texts


def show_print(one: Print, file: TextIO) -> None:
    """Write a print: into a terminal as it suits that, into anything else as plain text."""
    width = shutil.get_terminal_size().columns if file.isatty() else None
    write_line(terminal_text(one, width, color="NO_COLOR" not in os.environ), file)


def terminal_text(one: Print, width: int | None, *, color: bool) -> str:
    """Return a print for a terminal of ``width``: a table if it fits, else shortened as by NumPy; None: plain text."""
    if width is None:
        return one.text()
    from rich.console import Console

    from nkitools.report.print_table import heading, table_of

    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        highlight=False,
        markup=False,
        emoji=False,
    )
    table = table_of(one, width)
    with console.capture() as shown:
        console.print(heading(one), soft_wrap=True)
        if table is not None:
            console.print(table)
        elif not one.is_text:
            console.print(one.values_text(), soft_wrap=True)
    return "\n".join(line.rstrip() for line in shown.get().splitlines())


def _cut(text: str, limit: int) -> str:
    lines = text.splitlines()
    if len(lines) <= limit:
        return text
    return "\n".join([*lines[:limit], f"... ({len(lines) - limit} more lines)"])
