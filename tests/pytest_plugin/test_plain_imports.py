"""Test files that import NKI and ask for no fixture: what their failed import says, and the mark of their tests."""

from __future__ import annotations

import pytest

from tests.pytest_plugin.conftest import Author

TEST = """
{statement}
import pytest

def test_plain():
    pass

@pytest.mark.hw
def test_on_a_board():
    pass
"""
SENTENCE = "nkitools stands in for {root} with `pytest -o nki_stand_in=always`, or with the ini key"


@pytest.mark.process
@pytest.mark.parametrize(
    ("statement", "root"), [("import nki.language as nl", "nki"), ("from neuronxcc import nki", "neuronxcc")]
)
def test_a_failed_import_says_how_the_stand_in_comes_in(bare_author: Author, statement: str, root: str) -> None:
    """Under the error of the file and of a test that imports by itself."""
    result = bare_author.run_apart(test=TEST.format(statement=statement))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*ModuleNotFoundError: No module named '{root}'", SENTENCE.format(root=root) + "*"])
    result = bare_author.run_apart(test=f"def test_it():\n    {statement}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*ModuleNotFoundError: No module named '{root}'", SENTENCE.format(root=root) + "*"])


@pytest.mark.process
@pytest.mark.parametrize(
    ("statement", "chosen"),
    [("import nki.language as nl", 1), ("from neuronxcc.nki import language", 1), ("nki = 'import nki'", 0)],
)
def test_tests_of_such_a_file_run_in_simulation(bare_author: Author, statement: str, chosen: int) -> None:
    """``-m sim`` chooses them in a project that uses nkitools; a mark of the author's own stays as it is."""
    result = bare_author.run_apart("-m", "sim", "-o", "nki_stand_in=always", test=TEST.format(statement=statement))
    result.assert_outcomes(passed=chosen, deselected=2 - chosen)
    result = bare_author.run_apart("-m", "hw", "-o", "nki_stand_in=always", test=TEST.format(statement=statement))
    result.assert_outcomes(passed=1, deselected=1)
