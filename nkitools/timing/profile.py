"""A profile of Neuron Explorer, as far as its published schema says what its tables mean.

The fields are those of version 7.4.0 of the schema (SDK 2.31, *Profile Parquet Schema Reference*). Another major
version may have other tables: that of SDK 2.33 is read where it has the same fields with the same units, as a profile
says of itself in its table SchemaFields.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from nkitools.timing.what_if import covered_ns

SCHEMAS = {7: "2.31", 12: "2.33"}  # known major versions of the schema, and the SDK of each
# The fields that are read of each table: those that every row has, and those that may be left out.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "Metadata": (("profile_schema_version",), ("instance_type", "is_simulation")),
    "Instruction": (
        ("start_ts", "end_ts", "duration_ns", "engine", "opcode"),
        (
            "pcore_idx",
            "kernel_instruction_name",
            "nki_source_location",
            "bir_debug_info_source_location",
            "dma_trigger_start_ts",
            "dma_trigger_end_ts",
        ),
    ),
    "DmaPacket": (("start_ts", "end_ts"), ("pcore_idx",)),
    "Summary": ((), ("total_time", "hbm_read_bytes", "hbm_write_bytes")),
    "ActiveTime": (("engine", "duration_ns"), ("pcore_idx",)),
    "KernelInstructions": (("kernel_instruction_name",), ("file_path", "line_number")),
    "SchemaFields": (("table_name", "field_name", "field_unit"), ()),
}
_UNITS = {
    ("Instruction", "duration_ns"): "nanoseconds",
    ("DmaPacket", "start_ts"): "nanoseconds",
    ("ActiveTime", "duration_ns"): "nanoseconds",
    ("Summary", "total_time"): "seconds",
    ("Summary", "hbm_read_bytes"): "bytes",
    ("Summary", "hbm_write_bytes"): "bytes",
}
_WAITS = "EVENT_SEMAPHORE"  # the opcode of instructions that wait for a semaphore only
_PLACE = re.compile(r"([^\s\[\]\"',]+):(\d+)")

Row: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str, int]  # a file's name without its folders, and a line


class ProfileError(ValueError):
    """The folder has no profile that can be read; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The facts of a profile about one execution."""

    schema: str  # the version of its schema
    instance: str  # the type of the instance, '' where the profile has none
    is_simulated: bool  # whether the compiler simulated it, so that nothing was measured
    latency_us: float  # of the device, without the host
    engines: dict[tuple[int, str], float]  # microseconds in which an engine of a core works, transfers are "dma"
    hbm_read_bytes: int | None  # None where the profile does not say
    hbm_written_bytes: int | None  # None where the profile does not say
    lines: dict[tuple[str, int, str], float]  # microseconds by file name, line and engine; overlaps count twice


def read_profile(folder: str | os.PathLike[str]) -> Profile:
    """Return the profile in a folder of Parquet tables.

    ProfileError for a folder without tables, a schema of an unknown major version, and a table or field that is
    missing; ModuleNotFoundError with what to install where the package ``pyarrow`` is not there.
    """
    tables = _Tables(Path(folder))
    facts = tables.rows("Metadata")[0]
    schema = str(facts.get("profile_schema_version"))
    _must_be_known(schema)
    tables.check(schema)
    instructions = tables.rows("Instruction")
    packets, summary, active = (tables.rows(each, may_miss=True) for each in ("DmaPacket", "Summary", "ActiveTime"))
    return Profile(
        schema=schema,
        instance=facts.get("instance_type") or "",
        is_simulated=bool(facts.get("is_simulation")),
        latency_us=_latency(summary, [*instructions, *packets]),
        engines=_engines(active, instructions, packets),
        hbm_read_bytes=_sum(summary, "hbm_read_bytes"),
        hbm_written_bytes=_sum(summary, "hbm_write_bytes"),
        lines=_lines(instructions, tables),
    )


class _Tables:
    """The tables of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, list[Path]] = defaultdict(list)
        for path in sorted(folder.glob("*.parquet")):
            self._files[re.sub(r"_\d+$", "", path.stem)].append(path)  # large tables are split: Instruction_0
        if "Metadata" not in self._files:
            of_json = " The JSON form ended with SDK 2.33: process the profile again." * any(folder.glob("*.json"))
            raise ProfileError(
                f"{folder} has no Metadata.parquet: give a folder that `neuron-explorer` wrote.{of_json}"
            )

    def rows(self, table: str, *, may_miss: bool = False) -> list[Row]:
        """Return the rows of a table with the fields of `_FIELDS` that are there."""
        parquet = _parquet()
        fields, optional = _FIELDS[table]
        files = self._files.get(table, [])
        found = list[Row]()
        for file in files:
            there = set(parquet.read_schema(file).names)
            for field in fields:
                if field not in there:
                    raise ProfileError(f"{file} has no field {field}: its schema is another than the published one")
            wanted = [field for field in (*fields, *optional) if field in there]
            found += parquet.read_table(file, columns=wanted).to_pylist()
        if not found and not may_miss:
            raise ProfileError(f"{self._folder} has no rows of the table {table}")
        return found

    def check(self, schema: str) -> None:
        """Raise ProfileError where the profile itself says other fields or units than the published ones."""
        said: dict[str, dict[str, str]] = defaultdict(dict)  # units by table and field
        for row in self.rows("SchemaFields", may_miss=True):
            said[row["table_name"]][row["field_name"]] = row["field_unit"]
        for table, units in said.items():
            for field in (each for kind in _FIELDS.get(table, ()) for each in kind):
                if field not in units:
                    raise ProfileError(f"{table} of schema {schema} has no field {field}, which is read here")
                unit = _UNITS.get((table, field), units[field])
                if units[field] != unit:
                    raise ProfileError(f"{field} of {table} is in {units[field]} there, and in {unit} as published")


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "profiles need the package pyarrow: pip install 'nkitools[profile]'", name=error.name
        ) from error
    return parquet


def _must_be_known(schema: str) -> None:
    major = schema.partition(".")[0]
    if not major.isdigit() or int(major) not in SCHEMAS:
        known = " and ".join(f"{each} (SDK {sdk})" for each, sdk in SCHEMAS.items())
        raise ProfileError(f"the profile has schema {schema}: major version {major} is not known here, {known} are")


def _latency(summary: Sequence[Row], events: Sequence[Row]) -> float:
    """Return the time of the execution as the runtime reports it, else from the first event to the last one."""
    times = [row["total_time"] for row in summary if row.get("total_time") is not None]
    if times:
        return float(max(times)) * 1e6
    if not events:
        raise ProfileError("the profile has no instructions, and no total_time in its Summary")
    return float(max(row["end_ts"] for row in events) - min(row["start_ts"] for row in events)) / 1e3


def _engine(name: str) -> str:
    """Return our name of an engine: the tables write ``tensor``, ``Tensor`` or ``Pool``."""
    return {"pool": "gpsimd"}.get(name.lower(), name.lower())


def _core(row: Row) -> int:
    return int(row.get("pcore_idx") or 0)


def _engines(
    active: Sequence[Row], instructions: Sequence[Row], packets: Sequence[Row]
) -> dict[tuple[int, str], float]:
    """Return how long each engine works, without waits for semaphores; merged intervals where no table says it."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for row in active:
        found[_core(row), _engine(row["engine"])] += row["duration_ns"] / 1e3
    spans: dict[tuple[int, str], list[Row]] = defaultdict(list)
    for row in instructions if not active else ():
        if row["opcode"] != _WAITS:
            spans[_core(row), _engine(row["engine"])].append(row)
    for row in packets:
        spans[_core(row), "dma"].append(row)
    for key, rows in spans.items():
        found[key] = _covered_us([(row["start_ts"], row["end_ts"]) for row in rows])
    return dict(found)


def _covered_us(spans: Sequence[tuple[int, int]]) -> float:
    import numpy as np

    starts, ends = np.array(spans, np.int64).T
    first = starts.min()  # times since 1970 in nanoseconds are too large for exact differences of floats
    return covered_ns((starts - first).astype(float), (ends - first).astype(float)) / 1e3


def _sum(summary: Sequence[Row], field: str) -> int | None:
    values = [row[field] for row in summary if row.get(field) is not None]
    return int(sum(values)) if values else None


def _lines(instructions: Sequence[Row], tables: _Tables) -> dict[tuple[str, int, str], float]:
    """Return the time of each line on each engine; an instruction of several lines counts in equal parts.

    Transfers count for the line of the instruction that triggered them.
    """
    named = {
        row["kernel_instruction_name"]: (Path(row["file_path"]).name, int(row["line_number"]))
        for row in tables.rows("KernelInstructions", may_miss=True)
        if row.get("file_path") and row.get("line_number") is not None
    }
    found: dict[tuple[str, int, str], float] = defaultdict(float)
    for row in instructions:
        places = _places(row, named)
        triggered, ended = row.get("dma_trigger_start_ts"), row.get("dma_trigger_end_ts")
        for file, line in places:
            if row["opcode"] != _WAITS:
                found[file, line, _engine(row["engine"])] += row["duration_ns"] / 1e3 / len(places)
            if triggered is not None and ended is not None:
                found[file, line, "dma"] += (ended - triggered) / 1e3 / len(places)
    return dict(found)


def _places(row: Row, named: dict[str, Place]) -> list[Place]:
    for field in ("nki_source_location", "bir_debug_info_source_location"):
        places = {(Path(file).name, int(line)) for file, line in _PLACE.findall(row.get(field) or "")}
        if places:
            return sorted(places)
    place = named.get(row.get("kernel_instruction_name") or "")
    return [place] if place else []
