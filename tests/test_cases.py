"""Many small cases in one test: what each of them gets, and what is told of those that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import each


@each("name", ["one", "two", "three"])
def test_each_case_has_a_folder_of_its_own(name: str, tmp_path: Path) -> None:
    """Empty at its beginning, whatever the cases before have written."""
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "written").write_text(name)


def test_all_failures_are_told_with_their_cases() -> None:
    """And a case that passes is not among them."""

    @each("number", [1, 2, 3])
    def all_cases(number: int) -> None:
        assert number == 2

    with pytest.raises(ExceptionGroup) as raised:
        all_cases()
    assert [error.__notes__ for error in raised.value.exceptions] == [["case: 1"], ["case: 3"]]
