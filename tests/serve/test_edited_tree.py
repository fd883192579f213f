"""The tree of an edited text is that of the text alone, and keeps the statements that no edit has touched."""

import ast
import random
from pathlib import Path

import pytest

from nkitools.lint.module import Module, Unreadable, module_of
from nkitools.serve.edited_tree import edited_tree

TEXT = '''"""A file."""
import nki.language as nl

@decorated
def first(a):
    return a  # one

VALUE = (1,
         2)
x = 1; y = """
text
"""

class Kept:
    def method(self):
        return nl.exp


def last(b):
    return b
'''
PIECES = (
    "",
    "x = 1",
    "    y = 2",
    "def f(c):",
    '"""',
    "(",
    ")",
    "\\",
    "@again",
    "else:",
    "if x:",
    "# said",
    "x = 1; z = 3",
)


def module(text: str, earlier: Module | None = None) -> Module:
    before = None if earlier is None else earlier.scope
    return module_of(text, "file.py", "", "", lambda each: edited_tree(earlier, each), before)


def result_of(text: str, earlier: Module | None) -> Module | tuple[str, int, int]:
    """Return the file of a text, or what is wrong with the text, and where."""
    try:
        return module(text, earlier)
    except Unreadable as error:
        return str(error), error.line, error.column


def shown(found: Module) -> tuple[str, list[object]]:
    """Return all of a tree, with its places, and what each scope binds."""
    scopes = [
        (each.imports, sorted(each.variables), sorted(each.definitions), each.outer) for each in found.scope.all()
    ]
    tree = ast.dump(found.scope.node, include_attributes=True)
    return tree, [(*each[:3], None if each[3] is None else list(found.scope.all()).index(each[3])) for each in scopes]


@pytest.mark.parametrize("seed", range(6))
def test_edited_text_has_its_own_tree(seed: int) -> None:
    """After each of many random edits the tree, its places and its scopes are those of the text parsed alone."""
    chosen, known, kept = random.Random(seed), module(TEXT), 0
    for _ in range(60):
        lines = known.text.split("\n")
        at = chosen.randrange(len(lines))
        lines[at : at + chosen.choice([0, 1, 1, 1, 2])] = [chosen.choice(PIECES)]
        text = "\n".join(lines)
        alone, edited = result_of(text, None), result_of(text, known)
        if isinstance(alone, tuple) or isinstance(edited, tuple):
            assert edited == alone
            continue
        assert shown(edited) == shown(alone)
        kept += sum(each in known.scope.node.body for each in edited.scope.node.body)
        known = edited
    assert kept  # the test would say nothing otherwise


def test_untouched_statements_stay_the_same_objects() -> None:
    """An edit inside of a function leaves all other statements of the file, and their scopes' nodes, as they are."""
    known = module(TEXT)
    edited = module(TEXT.replace("return a  # one", "return a + 1"), known)
    before, after = known.scope.node.body, edited.scope.node.body
    assert [one is other for one, other in zip(before, after, strict=True)] == [True, True, False, *[True] * 5]
    assert edited.functions[15, "method"][1].nodes is known.functions[15, "method"][1].nodes
    assert edited.functions[15, "method"][1].module is edited.scope


def test_text_of_a_file_is_followed(tmp_path: Path) -> None:
    """Findings after an edit that moves all lines, and after one that moves none, are those of a new look."""
    from nkitools.serve.open_files import OpenFiles

    head = "import nki\nimport nki.language as nl\n\n\n"
    text = head + "@nki.jit\ndef one(x):\n    return nl.nothing(x)\n\n\n@nki.jit\ndef two(x):\n    return nl.exp(x)\n"
    files, path = OpenFiles(), tmp_path / "kernel.py"
    for changed in (text, text.replace("nl.exp", "nl.missing"), "\n" + text, text.replace("one(x)", "one(x, y)")):
        alone = OpenFiles().put(path, changed).findings
        assert files.put(path, changed).findings == alone
        assert [each.line for each in alone]
