"""The author's line, and whose frames are whose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.authors_code.positions import line_at
from nkitools.record.source_sites import UNKNOWN, Sites, author_frame, is_internal, site_at
from tests.launch.kernels import doubled


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


def test_an_instruction_without_a_line_has_that_of_the_nearest_before() -> None:
    """Python has none for instructions that it adds by itself; code without any line has that of its function."""
    code = compile("x = 1\ny = 2\nz = 3\n", "<string>", "exec")
    at = [2 * number for number, (line, *_) in enumerate(code.co_positions()) if line == 2]
    assert [line_at(code, each, None) for each in at] == [2] * len(at)
    assert line_at(code, at[0], 7) == 7
    assert line_at(code.replace(co_linetable=b"", co_firstlineno=12), at[0], None) == 12


def _without_lines(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function`` with code in which no instruction has a line."""
    code = function.__code__
    count = len(code.co_code) // 2
    table = bytes([0xF8 | 7]) * (count // 8) + (bytes([0xF8 | (count % 8 - 1)]) if count % 8 else b"")
    bare = code.replace(co_linetable=table)
    made = type(function)(bare, function.__globals__, function.__name__, None, function.__closure__)
    assert {line for *_, line in made.__code__.co_lines()} == {None}
    return made


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_of_code_without_lines_stays_itself(raised: type[BaseException]) -> None:
    """Ctrl-C between two lines was a TypeError of nkitools."""

    def kernel(x: Any) -> Any:
        raise raised

    with pytest.raises(raised) as caught:
        nkitools.simulate(_without_lines(kernel), np.ones((4, 4), np.float32))
    assert caught.tb.tb_next.tb_frame.f_code.co_name == "kernel"
    assert caught.tb.tb_next.tb_lineno == kernel.__code__.co_firstlineno


def test_a_run_of_code_without_lines_is_saved_and_read(tmp_path: Path) -> None:
    """Its instructions have the first line of their function."""
    run = nkitools.simulate(_without_lines(doubled.function), np.ones((4, 4), np.float32))
    run.save(tmp_path / "run.json")
    read = nkitools.load_run(tmp_path / "run.json")
    assert {each.line for each in read.instructions} == {doubled.function.__code__.co_firstlineno}
