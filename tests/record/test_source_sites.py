"""The author's line, and whose frames are whose."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nkitools
from nkitools.record.source_sites import UNKNOWN, Sites, author_frame, is_internal, site_at


def test_nkitools_own_files_are_internal() -> None:
    """Its package and its generated code; nothing beside it, and no neighbour with a longer name."""
    assert is_internal(nkitools.__file__)
    assert is_internal("<nkitools generated>")
    assert not is_internal(__file__)
    assert not is_internal(nkitools.__file__.replace("__init__.py", "examples/kernels/nki/giou.py"))
    assert not is_internal("<string>")
    assert not is_internal(nkitools.__file__.replace("__init__.py", "").rstrip("/") + "_kernels/giou.py")


def test_the_authors_frame_is_the_innermost_of_theirs() -> None:
    """Here it is this test's own."""
    frame = author_frame()
    assert frame is sys._getframe()


def test_a_site_is_numbered_once() -> None:
    """The same expression is the same site; another one on the same line is another."""
    sites = Sites()
    numbers = [(sites.current(1), sites.current(1)) for _ in range(2)]
    assert numbers == [(0, 1), (0, 1)]
    first, second = sites.all
    assert first.line == second.line
    assert first.column is not None
    assert second.column is not None
    assert first.column < second.column
    assert first.file == __file__
    assert sites[0] is first
    assert sites[-1] is UNKNOWN


def test_equal_code_in_two_places_is_two_sites() -> None:
    """Kernels made by exec may share file name, line and bytecode offset."""
    sites = Sites()
    found = []
    for _ in range(2):
        names = {"sites": sites}
        exec("def kernel():\n    return sites.current(1)\n", names)
        found.append(names["kernel"]())  # type: ignore[operator]
    assert len(set(found)) == 2
    assert {sites[number].file for number in found} == {"<string>"}


def test_code_without_columns_has_none() -> None:
    """python -X no_debug_ranges leaves them out."""
    code = compile("x = 1\n", "<string>", "exec").replace(co_linetable=b"")
    site = site_at(code, 1, 0)
    assert (site.line, site.column, site.function) == (1, None, "<module>")


def test_the_same_code_in_two_files_has_two_sites(tmp_path: Path) -> None:
    """To Python the two code objects are equal."""
    kernels = []
    for name in ("first.py", "second.py"):
        path = tmp_path / name
        path.write_text("def kernel():\n    pass\n")
        namespace: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        kernels.append(namespace["kernel"].__code__)
    assert kernels[0] == kernels[1]
    assert [site_at(code, 2, 0).file for code in kernels] == [str(tmp_path / "first.py"), str(tmp_path / "second.py")]
