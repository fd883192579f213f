"""The cases of a store as one table: CSV, or Parquet if pyarrow is installed."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from nkitools.record.whole_file import write_whole

_AS_TEXT = ("findings",)


def export(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> int:
    """Write stored cases, with a column for each name of a space, and return how many.

    ValueError for another ending than ``.csv`` and ``.parquet``; ImportError for Parquet without pyarrow.
    """
    ending = os.path.splitext(os.fspath(path))[1]
    if ending not in (".csv", ".parquet"):
        raise ValueError(f"{os.fspath(path)}: the ending says the form; write .csv or .parquet")
    names = list(dict.fromkeys(name for row in rows for name in row["values"]))
    table = [_flat(row, names) for row in rows]
    if ending == ".parquet":
        _write_parquet(table, path)
        return len(table)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(table[0]) if table else [*names])
    writer.writeheader()
    writer.writerows(table)
    write_whole(path, text.getvalue())
    return len(table)


def _flat(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a row of plain values: the case's names first, each as it is or as JSON."""
    own = {name: _plain(row["values"].get(name)) for name in names}
    rest = {name: json.dumps(value) if name in _AS_TEXT else value for name, value in row.items() if name != "values"}
    return {**own, **{(f"{name}_" if name in own else name): value for name, value in rest.items()}}


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _write_parquet(table: list[dict[str, Any]], path: str | os.PathLike[str]) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError("Parquet takes pyarrow: pip install 'nkitools[profile]', or write .csv") from None
    columns: dict[str, list[Any]] = {name: [row[name] for row in table] for name in (table[0] if table else {})}
    for name, values in columns.items():
        if len({type(value) for value in values if value is not None}) > 1 and not all(
            isinstance(value, (int, float, type(None))) for value in values
        ):
            columns[name] = [None if value is None else str(value) for value in values]
    parquet.write_table(pyarrow.table(columns), os.fspath(path))
