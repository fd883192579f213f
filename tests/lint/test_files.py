"""Which files of a directory are looked at, and what becomes of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.lint.files import python_files
from tests.lint.linted import findings, places

pytestmark = pytest.mark.usefixtures("parsed")

BAD = {
    "no Python": (b"import nki\ndef kernel(x:\n    pass\n", 2, "it is not valid Python"),
    "an indentation": (b"import nki\n    x = 1\n", 2, "unexpected indent"),
    "a null byte": (b"import nki\nx = '\0'\n", 1, "null byte"),
    "no UTF-8": (b"import nki\nname = '\xff'\n", 2, "utf-8"),
    "an unknown encoding": (b"# coding: klingon\nimport nki\n", 1, "no other encoding"),
}


def names(directory: Path, *paths: Path) -> list[str]:
    return [path.relative_to(directory).as_posix() for path in python_files(paths or (directory,), lambda path: False)]


def test_what_is_looked_at(tmp_path: Path) -> None:
    """Python files in order, none of hidden directories, caches and environments."""
    for name in ("b.py", "a.py", "sub/c.py", "notes.txt", "script", ".hidden/d.py", "__pycache__/e.py", "venv/f.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    assert names(tmp_path) == ["a.py", "b.py", "sub/c.py"]
    assert names(tmp_path, tmp_path / "script", tmp_path / "a.py", tmp_path) == ["script", "a.py", "b.py", "sub/c.py"]
    assert [path.name for path in python_files([tmp_path], lambda path: path.name == "sub")] == ["a.py", "b.py"]


def test_links(tmp_path: Path) -> None:
    """A directory that holds itself ends, a file under two names is looked at once, a link to nowhere not at all."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").touch()
    (tmp_path / "sub" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "z.py").symlink_to(tmp_path / "sub" / "a.py")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "missing.py")
    assert names(tmp_path) == ["z.py"]


def test_an_empty_directory(tmp_path: Path) -> None:
    """Has nothing."""
    assert names(tmp_path) == []


@pytest.mark.parametrize(("raw", "line", "text"), BAD.values(), ids=BAD)
def test_a_file_that_is_no_source_is_a_finding(tmp_path: Path, raw: bytes, line: int, text: str) -> None:
    """With the line, and without a traceback; the others are linted all the same."""
    bad, good = tmp_path / "bad.py", tmp_path / "good.py"
    bad.write_bytes(raw)
    good.write_text("import nki\n\n\n@nki.jit\ndef kernel(x):\n    return {x}\n")
    found = findings(bad, good)
    assert [(each.rule, each.line) for each in found] == [("NK601", line), ("NK601", 6)]
    assert text in found[0].message
    assert found[0].file == str(bad)


def test_encodings_that_a_file_declares(tmp_path: Path) -> None:
    """As Python reads it, a byte order mark included."""
    source = "import nki\n\n\n@nki.jit\ndef kernel(x):\n    return 'größe', {x}\n"
    (tmp_path / "latin.py").write_bytes(("# coding: latin-1\n" + source).encode("latin-1"))
    (tmp_path / "marked.py").write_bytes(source.encode("utf-8-sig"))
    assert places(findings(tmp_path / "latin.py", tmp_path / "marked.py")) == [("NK601", 7, 21), ("NK601", 6, 21)]


def test_windows_lines(tmp_path: Path) -> None:
    """Carriage returns move nothing."""
    path = tmp_path / "kernels.py"
    path.write_bytes(b"import nki\r\n\r\n\r\n@nki.jit\r\ndef kernel(x):\r\n    return {x}\r\n")
    assert places(findings(path)) == [("NK601", 6, 12)]


def test_a_directory_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    """What the system refuses is a finding of the file."""
    found = findings(tmp_path)  # a directory where a file should be
    assert [(each.rule, each.message) for each in found] == [("NK601", "the file cannot be read: Is a directory")]
