"""The source of code that runs is the text that holds the very code, or none."""

from __future__ import annotations

import ast
import linecache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.authors_code.source_text import compiled_again, is_at, is_changed, nested_codes, shown_text, text_of
from nkitools.typing import SourceChanged

nkitools.install_stand_in(prefer="builtin")

TEXT = """
def first(x):
    return x + 1


def make(number):
    def inner(x):
        return x + number
    return inner


pair = (lambda x: x + 1), (lambda x: x - 1)
inner = make(3)


class Kept:
    def first(self, x):
        return x + 1
"""


def module(path: Path, text: str = TEXT) -> dict[str, Any]:
    """Return the names of a file as an import makes them."""
    path.write_text(text)
    names: dict[str, Any] = {"__name__": path.stem}
    exec(compile(text, str(path), "exec"), names)
    return names


def codes(names: dict[str, Any]) -> list[CodeType]:
    functions = [names["first"], names["inner"], *names["pair"], names["Kept"].first]
    assert all(isinstance(each, FunctionType) for each in functions)
    return [each.__code__ for each in functions]


def test_the_text_of_the_file_is_that_of_each_of_its_functions(tmp_path: Path) -> None:
    """Of functions in functions, of lambdas, of methods of a name that the file has twice."""
    for code in codes(module(tmp_path / "one.py")):
        assert text_of(code) == TEXT
        assert not is_changed(code)


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ("x + 1", "x - 1", [False, True, False, True, False]),  # the lambda's line, too
        ("x + number", "number + x", [True, False, True, True, True]),
        ("\ndef first", "\n\ndef first", [False] * 5),
        ("x + 1", "x + 10", [False, True, False, False, False]),
        ("def first(x)", "def first(y, x=0)", [False, True, True, True, True]),
        ("class", "class (", [False] * 5),
        ("", "", [True] * 5),
    ],
)
def test_an_edited_file_holds_what_has_not_changed(tmp_path: Path, old: str, new: str, holds: list[bool]) -> None:
    """Other operands, numbers, names, lines, and a text that is no Python."""
    found = codes(module(tmp_path / "one.py"))
    edited = TEXT.replace(old, new)
    (tmp_path / "one.py").write_text(edited)
    assert [text_of(code) == edited for code in found] == holds
    assert [is_changed(code) for code in found] == [not each for each in holds]


def test_a_text_that_held_the_code_is_kept_for_it(tmp_path: Path) -> None:
    """The file is edited and imported again, and the old code runs on: each has its own text."""
    path = tmp_path / "one.py"
    before = codes(module(path))[0]
    assert text_of(before) == TEXT
    other = TEXT.replace("x + 1", "x - 1")
    after = codes(module(path, other))[0]
    assert (text_of(before), text_of(after)) == (TEXT, other)
    assert shown_text(str(path)) == other
    assert text_of(before) == shown_text(str(path)) == TEXT


def test_code_without_a_file_has_no_source() -> None:
    """It is not changed either: nothing says otherwise."""
    names: dict[str, Any] = {}
    exec("def f(x): return x", names)
    assert text_of(names["f"].__code__) == ""
    assert not is_changed(names["f"].__code__)


def test_a_cell_of_a_notebook_has_the_text_that_it_was_run_with() -> None:
    """IPython keeps the lines of a cell; a feature of an earlier cell holds in it."""
    import __future__

    name, text = "<ipython-input-1-of-a-test>", "def f(x: Unknown):\n    return x\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(text, name, "exec", flags=flags, dont_inherit=True), names)
    assert text_of(names["f"].__code__) == text


def test_an_assertion_that_pytest_has_rewritten_is_its_source() -> None:
    """This file is one that pytest has rewritten."""
    assert "x == 1" == "x " + "== 1"
    code = test_an_assertion_that_pytest_has_rewritten_is_its_source.__code__
    assert text_of(code) == Path(__file__).read_text()


def test_code_is_found_again_in_a_changed_tree(tmp_path: Path) -> None:
    """By its place among the functions, not by its name and line: two lambdas share both."""
    names = module(tmp_path / "one.py")
    for code, found in zip(codes(names), (11, 13, 11, 9, 11), strict=True):
        tree = ast.parse(TEXT)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value == 1:
                node.value = 1
        made = compiled_again(code, TEXT, tree)
        assert made is not None
        closure = names["inner"].__closure__ if code.co_freevars else None
        function = FunctionType(made, names, closure=closure)
        arguments = (None, 10) if code.co_argcount == 2 else (10,)
        assert function(*arguments) == found


def test_lambdas_of_one_line_are_told_apart(tmp_path: Path) -> None:
    """By columns."""
    names = module(tmp_path / "one.py")
    nodes = [node for node in ast.walk(ast.parse(TEXT)) if isinstance(node, ast.Lambda)]
    assert [[is_at(node, each.__code__) for node in nodes] for each in names["pair"]] == [[True, False], [False, True]]
    assert len(list(nested_codes(compile(TEXT, "", "exec")))) == 8


KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl


def rows(x):
    return x.shape[0]


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((rows(x), x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""


@pytest.mark.parametrize("old", ["op=nl.add", "x.shape[0]"])
def test_a_kernel_of_an_edited_file_runs_as_it_was_imported(tmp_path: Path, old: str) -> None:
    """Of its own text, or of its helper's, a warning says so, once; a later run says nothing more."""
    kernel = module(tmp_path / "one.py", KERNEL)["kernel"]
    (tmp_path / "one.py").write_text(KERNEL.replace(old, "op=nl.multiply" if "op" in old else "x.shape[1]"))
    name = "kernel" if "op" in old else "rows"
    with pytest.warns(SourceChanged, match=f"^`{name}` runs as it was imported; .* Import it again") as caught:
        run = nkitools.simulate(kernel, np.full((4, 8), 3, np.float32))
    assert len(caught) == 1
    np.testing.assert_array_equal(run.outputs, np.full((4, 8), 6, np.float32))
    nkitools.simulate(kernel, np.full((4, 8), 3, np.float32))


def test_findings_show_the_lines_of_the_code_that_ran(tmp_path: Path) -> None:
    """After an edit the line of the file is another program's."""
    from nkitools.report.excerpt import excerpt

    path = tmp_path / "one.py"
    kernel = module(path, KERNEL)["kernel"]
    tall = np.ones((129, 8), np.float32)
    finding = nkitools.simulate(kernel, tall, rules="report").findings[0]
    shown = excerpt(finding.file, finding.line, None)
    path.write_text("\n\n\n" + KERNEL)
    nkitools.simulate(kernel, tall, rules="report")
    assert excerpt(finding.file, finding.line, None) == shown


def test_lines_of_a_file_edited_before_the_first_run_are_not_shown(tmp_path: Path) -> None:
    """No line is better than one of another program."""
    from nkitools.report.excerpt import excerpt

    kernel = module(tmp_path / "one.py", KERNEL)["kernel"]
    (tmp_path / "one.py").write_text("\n" + KERNEL)
    with pytest.warns(SourceChanged):
        run = nkitools.simulate(kernel, np.ones((129, 8), np.float32), rules="report")
    assert [excerpt(each.file, each.line, None) for each in run.findings] == [[]] * len(run.findings)
    assert "NK101" in {each.rule for each in run.findings}
