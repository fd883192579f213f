"""``nkitools estimate --measured``: profiles that the tests write by the published schema, beside estimates."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from nkitools.timing.calibration import local_rows
from tests.cli.test_estimate import KERNEL

pyarrow = pytest.importorskip("pyarrow", reason="the extra nkitools[profile] is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

START = 1_763_900_000_000_000_000  # nanoseconds since 1970, as profiles have them: too many digits for a float64


def instruction(start: int, end: int, engine: str, place: str | None, **more: Any) -> dict[str, Any]:
    """Return a row of the table Instruction; ``place`` is the text of its source location."""
    return {
        "start_ts": START + start,
        "end_ts": START + end,
        "duration_ns": end - start,
        "engine": engine,
        "opcode": "TENSOR_TENSOR",
        "nki_source_location": place,
        "dma_trigger_start_ts": None,
        "dma_trigger_end_ts": None,
        "kernel_instruction_name": None,
        **more,
    }


def schema_of(table: str, **units: str) -> list[dict[str, Any]]:
    """Return what a profile says of a table's fields."""
    return [{"table_name": table, "field_name": field, "field_unit": unit} for field, unit in units.items()]


def tables(**changes: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return a profile of 20 us: the Vector Engine works for 6 us, and packets are under way for 9 us of them."""
    dma = {"dma_trigger_start_ts": START + 1000, "dma_trigger_end_ts": START + 6000}
    packets = [(1000, 6000), (2000, 7000), (12_000, 15_000)]
    return {
        "Metadata": [{"profile_schema_version": "7.4.0", "instance_type": "trn1n.32xlarge", "is_simulation": False}],
        "Summary": [{"total_time": 20e-6, "hbm_read_bytes": 2_097_152, "hbm_write_bytes": 1_048_576}],
        "Instruction": [
            instruction(0, 100, "Sync", "squares.py:14", opcode="WRITE", **dma),
            instruction(7000, 11_000, "Vector", '["/home/me/squares.py:16"]'),
            instruction(10_000, 12_000, "Vector", '["squares.py:16", "squares.py:17"]'),
            instruction(0, 7000, "Vector", "squares.py:16", opcode="EVENT_SEMAPHORE"),
            instruction(15_000, 16_000, "Pool", None, kernel_instruction_name="inst.7:0"),
        ],
        "DmaPacket": [
            {"start_ts": START + first, "end_ts": START + last, "duration_ns": last - first} for first, last in packets
        ],
        "ActiveTime": [
            {"engine": "Vector", "duration_ns": 5000, "pcore_idx": 0},
            {"engine": "Pool", "duration_ns": 1000, "pcore_idx": 0},
        ],
        "KernelInstructions": [
            {"kernel_instruction_name": "inst.7:0", "file_path": "/home/me/squares.py", "line_number": 18}
        ],
        "SchemaFields": schema_of("Summary", total_time="seconds", hbm_read_bytes="bytes", hbm_write_bytes="bytes"),
        **changes,
    }


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "squares.py"
    path.write_text(KERNEL)
    return str(path)


def written(folder: Path, **changes: list[dict[str, Any]]) -> str:
    """Write a profile, its Instruction table in two files."""
    folder.mkdir()
    for name, rows in tables(**changes).items():
        parts = {name: rows} if name != "Instruction" else {f"{name}_0": rows[:2], f"{name}_1": rows[2:]}
        for part, of_part in parts.items():
            if of_part:
                parquet.write_table(pyarrow.Table.from_pylist(of_part), folder / f"{part}.parquet")
    return str(folder)


def estimated(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["estimate", *arguments])


def test_measured_figures_stand_beside_the_estimated_ones(file: str, tmp_path: Path) -> None:
    """The latency, engines, traffic and lines of the profile, each counted by hand; the chip is the profile's."""
    profile = written(tmp_path / "profile")
    (plain,) = json.loads(estimated(f"{file}::square", "--measured", profile, "--json").output)
    (alone,) = json.loads(estimated(f"{file}::square", "--chip", "trn1", "--json").output)
    assert plain["chip"] == "trn1"
    found = plain["measured"]
    assert found["latency"]["measured"] == pytest.approx(20.0)
    assert found["latency"]["estimated"] == plain["latency_us"] == alone["latency_us"]
    assert found["is_within_band"] is (plain["lower_us"] <= 20 <= plain["upper_us"])
    engines = {each["name"]: each["measured"] for each in found["engines"]}
    assert engines == pytest.approx({"vector": 5.0, "gpsimd": 1.0, "dma": 9.0})
    traffic = {each["name"]: (each["measured"], each["estimated"]) for each in found["traffic"]}
    assert traffic == {"HBM read": (2_097_152, 2_097_152), "HBM written": (1_048_576, 2_097_152)}
    lines = {each["name"]: each for each in found["lines"]}
    assert {name: each["measured"] for name, each in lines.items() if each["measured"] is not None} == pytest.approx(
        {
            "squares.py:14 sync": 0.1,
            "squares.py:14 dma": 5.0,
            "squares.py:16 vector": 5.0,
            "squares.py:17 vector": 1.0,
            "squares.py:18 gpsimd": 1.0,
        }
    )
    (vector,) = (each["busy_us"] for each in plain["engines"] if each["engine"] == "vector")
    assert lines["squares.py:16 vector"]["estimated"] == pytest.approx(vector)
    assert {name for name, each in lines.items() if each["estimated"]} == {
        "squares.py:14 dma",
        "squares.py:16 vector",
        "squares.py:17 dma",
    }


def test_the_page_shows_both_and_joins_a_calibration(file: str, tmp_path: Path) -> None:
    """A row for each kernel and variant; the same one again takes the place of the former."""
    profile, rows = written(tmp_path / "profile"), tmp_path / "mine.tsv"
    command = (f"{file}::square", "--measured", profile, "--join", str(rows))
    page = estimated(*command).output
    assert "measured (Neuron Explorer, schema 7.4.0, trn1n.32xlarge), beside the estimate:" in page
    assert any(line.split()[:3] == ["latency", "20", "us"] for line in page.splitlines())
    estimated(*command)
    estimated(*command, "--set", "WIDTH=4096")
    first, second = local_rows(rows)
    assert (first.id, second.id) == ("local/square/trn1/[128, 4096]/", "local/square/trn1/[128, 4096]/WIDTH=4096")
    assert first.published_us == second.published_us == pytest.approx(20.0)
    assert first.estimate_us != second.estimate_us
    assert first.variants_of == second.variants_of


def test_an_own_schema_of_sdk_2_33_is_read_without_a_summary(file: str, tmp_path: Path) -> None:
    """The latency is from the first event to the last one, engines from merged intervals without semaphore waits."""
    facts = [{"profile_schema_version": "12.0.1"}]
    profile = written(tmp_path / "profile", Metadata=facts, Summary=[], ActiveTime=[], KernelInstructions=[])
    (plain,) = json.loads(estimated(f"{file}::square", "--measured", profile, "--chip", "trn2", "--json").output)
    assert plain["chip"] == "trn2"
    found = plain["measured"]
    assert found["latency"]["measured"] == pytest.approx(16.0)
    assert {each["name"]: each["measured"] for each in found["engines"]} == pytest.approx(
        {"sync": 0.1, "vector": 5.0, "gpsimd": 1.0, "dma": 9.0}
    )
    assert [each["measured"] for each in found["traffic"]] == [None, None]


def refusal(file: str, profile: str, *arguments: str) -> str:
    result = estimated(f"{file}::square", "--measured", profile, *arguments)
    assert result.exit_code == 2
    return " ".join(result.output.split())


def test_what_cannot_be_read_is_refused_by_name(file: str, tmp_path: Path) -> None:
    """An unknown major version, other units, a missing field or table, another chip, and the JSON form."""
    schema = [{"profile_schema_version": "9.1.0", "instance_type": "trn1.2xlarge"}]
    assert "major version 9 is not known here, 7 (SDK 2.31) and 12 (SDK 2.33) are" in refusal(
        file, written(tmp_path / "major", Metadata=schema)
    )
    units = schema_of("Summary", total_time="milliseconds", hbm_read_bytes="bytes", hbm_write_bytes="bytes")
    assert "total_time of Summary is in milliseconds there, and in seconds as published" in refusal(
        file, written(tmp_path / "units", SchemaFields=units)
    )
    newer = [{"profile_schema_version": "12.0.1"}]
    places = schema_of("KernelInstructions", kernel_instruction_name="", path="", line_number="")
    assert "KernelInstructions of schema 12.0.1 has no field file_path, which is read here" in refusal(
        file, written(tmp_path / "unread", Metadata=newer, SchemaFields=places)
    )
    renamed = [{"start_ts": START, "end_ts": START + 1, "length_ns": 1, "engine": "Vector", "opcode": "NOP"}]
    assert "has no field duration_ns" in refusal(file, written(tmp_path / "field", Instruction=renamed))
    assert "has no rows of the table Instruction" in refusal(file, written(tmp_path / "table", Instruction=[]))
    whole = written(tmp_path / "whole")
    assert "the profile is of trn1n.32xlarge, not of trn2" in refusal(file, whole, "--chip", "trn2")
    assert "--measured is of one chip" in refusal(file, whole, "--chip", "trn1,trn2")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "profile.json").write_text("{}")
    assert "The JSON form ended with SDK 2.33" in refusal(file, str(tmp_path / "old"))


def test_a_simulated_profile_is_no_measurement(file: str, tmp_path: Path) -> None:
    """The page says so, and no calibration file has it."""
    facts = [{"profile_schema_version": "7.4.0", "is_simulation": True}]
    profile, rows = written(tmp_path / "profile", Metadata=facts), tmp_path / "mine.tsv"
    assert "nothing was measured" in estimated(f"{file}::square", "--measured", profile).output
    assert "does not join a calibration" in refusal(file, profile, "--join", str(rows))
    assert not rows.exists()


def test_a_missing_package_is_named(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, and the extra to install."""
    profile = written(tmp_path / "profile")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install 'nkitools[profile]'" in refusal(file, profile)
