"""A device print in a wide terminal: its tile as a table with row and column numbers; NaN and infinity are coloured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.array_text import EDGE, short
from nkitools.rules.shown_text import shown

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from nkitools.chip.numerics import Array
    from nkitools.record.prints.device_print import Print

_ROWS = 2 * EDGE + 2  # so many are shown without leaving any out
_GAP = "…"
_BETWEEN = 2  # columns of the terminal between two of the table


def table_of(one: Print, width: int) -> Table | None:
    """Return the values of a print as a table of at most ``width`` columns of the terminal.

    It has as many columns of the tile as fit; None if not even three from each end fit, for packed dtypes, and for
    other than one or two dimensions.
    """
    if one.value.dtype.names or len(one.shape) not in (1, 2) or one.is_text:
        return None
    value, *masks = (_as_matrix(each) for each in (one.value, one.mask, one.unwritten))
    assert value is not None
    shape = one.shape if len(one.shape) == 2 else (1, *one.shape)
    rows = _some(shape[0], shape[0] if shape[0] <= _ROWS and one.is_whole else 2 * EDGE)
    columns = _some(shape[1], 2 * EDGE)
    if one.is_whole:
        columns = _fitting(value, rows, shape[1], width)
    cells = [
        [
            _cell(value, masks, _at(row, shape[0], value.shape[0]), _at(column, shape[1], value.shape[1]))
            for column in columns
        ]
        for row in rows
    ]
    if _width(rows, columns, [[text for text, _ in line] for line in cells]) > width:
        return None
    return _table(rows, columns, cells)


def heading(one: Print) -> RenderableType:
    """Prefix, place and tensor in one line, the notes and numbers in further ones."""
    from rich.text import Text

    tensor = "" if one.is_text else f" {shown(one.described())}"
    text = Text.assemble((shown(one.prefix), "bold"), " [", (shown(one.place()), "cyan"), "]", tensor)
    notes = one.notes() if not one.is_whole else [*one.notes(), one.numbers()]
    for note in filter(None, notes):
        text.append(f"\n({note})", "dim")
    return text


def _as_matrix(value: Array | None) -> Array | None:
    return value if value is None or value.ndim == 2 else value.reshape(1, -1)


def _some(size: int, count: int) -> list[int | None]:
    """Return the first and last indices of an axis, ``count`` of them, with None for those left out between them."""
    if size <= count:
        return list(range(size))
    half = count // 2
    return [*range(half), None, *range(size - half, size)]


def _at(index: int | None, size: int, kept: int) -> int | None:
    """Return the position of an index among the kept elements of an axis."""
    return index if index is None or index < kept - EDGE or size == kept else index - size + kept


def _fitting(value: Array, rows: list[int | None], size: int, width: int) -> list[int | None]:
    """As many columns as fit, but three from each end at least: by the widest number among those shown."""
    looked_at = value[[row for row in rows if row is not None]][:, : max(width // 3, 2 * EDGE)]
    widest = max([len(_number(each)) for each in looked_at.ravel()] + [len(str(size - 1)), 2])
    room = width - len(str(value.shape[0] - 1)) - _BETWEEN
    if size * (widest + _BETWEEN) <= room:
        return _some(size, size)
    beside_the_gap = (room - len(_GAP) - _BETWEEN) // (widest + _BETWEEN)
    return _some(size, max(2 * EDGE, beside_the_gap // 2 * 2))


def _number(element: object) -> str:
    number = float(element)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else short(number)


def _cell(value: Array, masks: list[Array | None], row: int | None, column: int | None) -> tuple[str, str]:
    """Return the text of an element and its style."""
    if row is None or column is None:
        return _GAP, "dim"
    masked, unwritten = (each is not None and bool(each[row, column]) for each in masks)
    if masked:
        return "--", "dim"
    text = _number(value[row, column])
    if unwritten:
        return text, "dim strike"
    number = float(value[row, column])
    return text, "bold red" if np.isnan(number) else "yellow" if np.isinf(number) else ""


def _width(rows: list[int | None], columns: list[int | None], cells: list[list[str]]) -> int:
    widths = [max(len(str(row)) for row in rows)]
    for number, column in enumerate(columns):
        widths.append(max([len(str(column)) if column is not None else 1] + [len(line[number]) for line in cells]))
    return sum(widths) + _BETWEEN * len(widths)


def _table(rows: list[int | None], columns: list[int | None], cells: list[list[tuple[str, str]]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, _BETWEEN, 0, 0), header_style="dim")
    table.add_column("", justify="right", style="dim", no_wrap=True)
    for column in columns:
        table.add_column(_GAP if column is None else str(column), justify="right", no_wrap=True)
    for row, line in zip(rows, cells, strict=True):
        table.add_row(_GAP if row is None else str(row), *(Text(text, style) for text, style in line))
    return table
