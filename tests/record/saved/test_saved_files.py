"""Files of saved runs: whole or not at all; what is no whole saved run is refused with a sentence."""

from __future__ import annotations

import json
import linecache
import os
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

import nkitools
from nkitools.record.run import Run
from tests.record.saved.test_saved import RUNS, X, allowed, assert_same


def test_sources_are_kept_as_they_were(tmp_path: Path) -> None:
    """The file of the kernel may change or go after the run was saved."""
    script = tmp_path / "kernel.py"
    text = "def kernel(x):\n    # naïve\n    return x\n"
    script.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(text, str(script), "exec"), names)
    run = nkitools.simulate(names["kernel"], X)
    run.findings.append(allowed().allowed[0])
    run.findings[0] = type(run.findings[0])(**{**vars(run.findings[0]), "file": str(script)})
    run.save(tmp_path / "run.json")
    script.unlink()
    linecache.cache.pop(str(script), None)
    assert nkitools.load_run(tmp_path / "run.json").sources == {str(script): text, **run.sources}


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed save leaves the earlier file, and nothing beside it."""
    run = RUNS["printing"]()
    path = tmp_path / "run.json"
    path.write_text("before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        run.save(path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["run.json"]
    monkeypatch.undo()
    run.save(path)
    assert_same(nkitools.load_run(path), run)
    with pytest.raises(FileNotFoundError):
        run.save(tmp_path / "nowhere" / "run.json")


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    """What is written to is what the path means."""
    run = RUNS["printing"]()
    (tmp_path / "link.json").symlink_to(tmp_path / "run.json")
    run.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert_same(nkitools.load_run(tmp_path / "run.json"), run)
    run.save(os.devnull)
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("form", ["file", "json"])
def test_a_file_that_is_cut_off_is_refused_wherever_that_is(tmp_path: Path, form: str) -> None:
    """With its name and a sentence; never another exception."""
    path, run = tmp_path / "run.npz", RUNS["watched"]()
    run.save(path, compress=False)
    content = path.read_bytes() if form == "file" else run.to_json(compress=False).encode()
    for end in [*range(0, 200, 7), *range(200, len(content) - 1, 997), len(content) - 1]:
        path.write_bytes(content[:end])
        with pytest.raises(nkitools.SavedRunError) as error:
            nkitools.load_run(path)
        assert str(error.value).startswith(f"{path}: ")
        assert "\n" not in str(error.value)


def test_a_bit_that_is_another_is_seen_wherever_it_is(tmp_path: Path) -> None:
    """In the JSON and among the bytes of arrays: a file keeps checksums of both."""
    path = tmp_path / "run.npz"
    RUNS["printing"]().save(path)
    content = path.read_bytes()
    with ZipFile(path) as file:
        inside = [each.header_offset + 200 for each in file.infolist()]
    for at in (*inside, len(content) // 2):
        path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        with pytest.raises(nkitools.SavedRunError, match="damaged"):
            nkitools.load_run(path)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({}, "this is a zip, but no saved run of nkitools .those have run.json and arrays.npy."),
        ({"x.npy": b"1"}, "this is a zip, but no saved run"),
        ({"run.json": b"{}"}, "this is a zip, but no saved run"),
        ({"run.json": b"{}", "arrays.npy": b""}, "no saved run"),
        ({"run.json": b'{"format":"nkitools-run","version":3}', "arrays.npy": b""}, "up to version 2"),
        ({"run.json": b'{"format":"nkitools-run","version":2}', "arrays.npy": b""}, "damaged: it has no 'findings'"),
    ],
)
def test_a_zip_that_is_no_saved_run_is_said(tmp_path: Path, members: dict[str, bytes], said: str) -> None:
    """Other archives, a member too few, a later version, nothing in it."""
    with ZipFile(tmp_path / "run.npz", "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(nkitools.SavedRunError, match=said):
        nkitools.load_run(tmp_path / "run.npz")


def test_a_small_zip_is_no_large_run(tmp_path: Path) -> None:
    """Members that were compressed could be of any size; they are refused before they are unpacked."""
    with ZipFile(tmp_path / "run.npz", "w", ZIP_DEFLATED) as file:
        file.writestr("run.json", b" " * (64 << 20))
        file.writestr("arrays.npy", b"")
    with pytest.raises(nkitools.SavedRunError, match=r"run\.json is compressed"):
        nkitools.load_run(tmp_path / "run.npz")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no saved run"),
        ("{}", "no saved run"),
        ("[1, 2]", "no saved run"),
        ('{"schema": 1, "test": "x", "runs": []}', "no saved run"),
        ("import nki\n", "no saved run"),
        ("[" * 100_000, "no saved run"),
        ('{"format":"nkitools-run","version":"1"}', "version '1'"),
        ('{"format":"nkitools-run","version":3,"made_by":"9.0"}', r"version 3, made by nkitools 9\.0.*up to version 2"),
        ('{"format":"nkitools-run","version":1}', "damaged: it has no 'findings'"),
        ('{"format":"nkitools-run","version":1,"findings"', "cut off or damaged"),
    ],
)
def test_what_is_no_saved_run_is_said(text: str, said: str) -> None:
    """Other JSON, no JSON, later versions."""
    with pytest.raises(nkitools.SavedRunError, match=said):
        Run.from_json(text)
    with pytest.raises(ValueError, match=said):
        Run.from_json(text.encode())


def test_bytes_that_are_no_text_are_no_saved_run() -> None:
    """A trace, an image, a pickle."""
    with pytest.raises(nkitools.SavedRunError, match="no saved run"):
        Run.from_json(b"\x80\x04\x95\xff\xfe")


def _damages() -> list[tuple[str, Any]]:
    record = "records"
    return [
        ("findings", [{"rule": "NK101"}]),
        ("prints", [{"prefix": "x", "value": {"array": {"dtype": "float32", "shape": [9], "data": ""}}}]),
        ("prints", 7),
        ("expected", [99]),
        ("sources", None),
        ("outputs", [1]),
        (f"{record}.columns.plan", {"dtype": "int8", "shape": [1], "data": "AA=="}),
        (f"{record}.columns.site", None),
        (f"{record}.layouts", []),
        (f"{record}.storages", []),
        (f"{record}.plans", []),
        (f"{record}.instructions", 3),
        (f"{record}.programs", [["first", []]]),
        (f"{record}.meetings", [[0]]),
        (f"{record}.loops.parent", {"dtype": "int8", "shape": [2], "data": "AQA="}),  # each the other's
        (f"{record}.loops.site", {"dtype": "int8", "shape": [2], "data": "f38="}),
    ]


@pytest.mark.parametrize(("key", "value"), _damages())
def test_a_damaged_run_is_said(key: str, value: Any) -> None:
    """Keys of another kind, columns that name what is not there."""
    plain = json.loads(RUNS["printing"]().to_json(compress=False))
    inner = plain["records"][0] if key.startswith("records.") else plain
    *outer, last = key.removeprefix("records.").split(".")
    for name in outer:
        inner = inner[name]
    inner[last] = value
    with pytest.raises(nkitools.SavedRunError, match="damaged"):
        Run.from_json(json.dumps(plain))


def test_keys_of_later_nkitools_are_skipped() -> None:
    """New keys may come without a new version."""
    run = RUNS["printing"]()
    plain = json.loads(run.to_json())
    plain["later"] = plain["records"][0]["later"] = plain["prints"][0]["later"] = {"x": 1}
    plain["records"][0]["plans"][0]["later"] = 1
    assert_same(Run.from_json(json.dumps(plain)), run)
