"""Reports and saves are there whole or not at all, as on a full disk."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.facts import options
from nkitools.pytest_plugin.report_files import file_name, write_report
from nkitools.record.whole_file import write_whole
from nkitools.report.page import write_page
from nkitools.report.page.index import write_index
from nkitools.report.perfetto import save_timeline
from tests.launch.kernels import doubled


@pytest.fixture
def run() -> Any:
    return nkitools.simulate(doubled, np.ones((4, 4), np.float32))


class _Full(io.FileIO):
    """A file on a disk that is full after the first bytes."""

    def write(self, data: Any) -> int:
        super().write(bytes(data)[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: Any, mode: str = "r", **_: Any) -> Any:
        return _Full(path, mode.replace("b", ""))

    monkeypatch.setattr("nkitools.record.whole_file.open", opened, raising=False)


def _save(run: Any, path: Path) -> None:
    run.save(path)


def _index(run: Any, path: Path) -> None:
    assert write_report(str(path.parent / "reports"), "test_x", "passed", [run]) == []
    write_index(path.parent / "reports", path)


@pytest.mark.parametrize("write", [_save, write_page, save_timeline])
@pytest.mark.parametrize("before", [None, "before"])
def test_a_full_disk_leaves_the_old_file_or_none(
    write: Callable[..., None], before: str | None, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file and the reason, and nothing is left beside the file."""
    if write is save_timeline:
        pytest.importorskip("perfetto")
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    _fill_the_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left") as caught:
        write(run, path)
    assert caught.value.filename == str(path)
    assert str(caught.value).endswith(f"No space left on device: '{path}'")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == ({} if before is None else {"file": before})


def test_a_report_on_a_full_disk_is_a_sentence_a_file(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a page that is cut off nor an empty JSON file."""
    _fill_the_disk(monkeypatch)
    with options.override(report_pages="all"):
        said = write_report(str(tmp_path), "test_x", "passed", [run])
    name = file_name("test_x")
    assert said == [
        f"page {name.replace('.json', '.html')} in {tmp_path} cannot be written: No space left on device",
        f"{name} in {tmp_path} cannot be written: No space left on device",
    ]
    assert list(tmp_path.iterdir()) == []


def test_an_index_keeps_the_old_one_on_a_full_disk(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other report."""
    (tmp_path / "reports").mkdir()
    _index(run, tmp_path / "index.html")
    before = (tmp_path / "index.html").read_text()
    _fill_the_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left"):
        write_index(tmp_path / "reports", tmp_path / "index.html")
    assert (tmp_path / "index.html").read_text() == before


def test_permissions_stay(tmp_path: Path) -> None:
    """A file that only its owner may read stays one, and a new file is as open makes it."""
    path = tmp_path / "file"
    path.write_text("before")
    path.chmod(0o600)
    write_whole(path, "after é")
    assert (path.read_text(encoding="utf-8"), path.stat().st_mode & 0o777) == ("after é", 0o600)
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "new", b"\xff")
    assert (tmp_path / "new").read_bytes() == b"\xff"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
