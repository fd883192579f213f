"""The kernels with wrong values are what their tables say: wrong as they stand, right with the right lines."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.wrong_values.cases import BEYOND, FAMILIES, INNOCENT, SINGLE, Case, Mistake, cases, mended
from benchmarks.wrong_values.judge import judged
from tests import cases as counts

# The kernels take two minutes: a fourth of them by default, all under `make soak`.
EVERY = slice(None, None, 1 if counts.FULL else 4)
ALL = {f"{each.family}/{each.name}": each for each in cases()}
NKI = [name for name, each in ALL.items() if each.family in SINGLE and not each.is_pallas]
PALLAS = [name for name, each in ALL.items() if each.family in SINGLE and each.is_pallas]
TWO = [name for name, each in ALL.items() if each.family == BEYOND and each.mistakes]
OTHER = [name for name, each in ALL.items() if each.family == BEYOND and not each.mistakes]
RIGHT = [name for name, each in ALL.items() if each.family == INNOCENT]


def rows(case: Case, text: str, folder: Path, settings: list[dict[str, Any]], *, thorough: bool = False) -> Any:
    """What a text of a case gives for settings of its inputs."""
    path = folder / f"{case.name}_{len(list(folder.iterdir()))}.py"  # Python may keep the code of a name and a size
    path.write_text(text, encoding="utf-8")
    rtol, atol = case.constant("tolerance")
    request = {"path": str(path), "settings": settings, "rtol": rtol, "atol": atol, "thorough": thorough}
    return judged(request)["rows"]


def every(case: Case) -> list[dict[str, Any]]:
    return [case.settings(), *case.unseen]


def test_the_set_stays_as_it_was() -> None:
    """No case is exchanged or added after the first measurement; half of the mistakes are public ones."""
    assert Counter(each.family for each in cases()) == {
        "modern": 24,
        "legacy": 23,
        "pallas": 15,
        "beyond": 15,
        "innocent": 20,
    }
    nki = [ALL[name] for name in NKI]
    assert sum(each.source.startswith("https://github.com/") for each in nki) == 29
    assert sum(bool(ALL[name].source) for name in PALLAS) == 8
    assert len({each.path.stem for each in cases()}) == len(cases())
    files = {path for family in FAMILIES for path in (cases()[0].path.parents[1] / family).glob("*.py")}
    assert files == {each.path for each in cases()}


@pytest.mark.soak
@pytest.mark.parametrize("name", NKI[EVERY])
def test_an_nki_kernel_is_wrong_in_its_values_alone(name: str, tmp_path: Path) -> None:
    """The wrong one runs without an error and differs on all arguments; the right one agrees on these and more."""
    case = ALL[name]
    assert rows(case, case.text, tmp_path, every(case)) == [{"agrees": False, "errors": []}] * 3
    settings = [*every(case), case.settings(1)]
    assert rows(case, case.right_text, tmp_path, settings) == [{"agrees": True, "errors": []}] * 4


@pytest.mark.frameworks
@pytest.mark.process
@pytest.mark.soak
@pytest.mark.parametrize("name", PALLAS[EVERY])
def test_a_pallas_kernel_is_wrong_in_its_values_alone(name: str, tmp_path: Path) -> None:
    """The whole check of the wrong one finds no error, and its values differ; those of the right one agree."""
    case = ALL[name]
    thorough = rows(case, case.text, tmp_path, [case.settings()], thorough=True)
    assert thorough == [{"agrees": False, "errors": []}]
    assert not any(each["agrees"] for each in rows(case, case.text, tmp_path, list(case.unseen)))
    assert rows(case, case.right_text, tmp_path, every(case)) == [{"agrees": True, "errors": []}] * 3


@pytest.mark.soak
@pytest.mark.parametrize("name", TWO[EVERY])
def test_two_mistakes_are_two(name: str, tmp_path: Path) -> None:
    """Both mended the kernel is right on all arguments, with one of them mended on some it is not."""
    case = ALL[name]
    assert len(case.mistakes) == 2
    assert rows(case, case.text, tmp_path, every(case)) == [{"agrees": False, "errors": []}] * 3
    assert rows(case, case.right_text, tmp_path, every(case)) == [{"agrees": True, "errors": []}] * 3
    for mistake in case.mistakes:
        found = rows(case, mended(case.text, (mistake,)), tmp_path, every(case))
        assert not all(each["agrees"] for each in found)
        assert not found[0]["agrees"]


@pytest.mark.soak
@pytest.mark.parametrize("name", OTHER[EVERY])
def test_another_algorithm_differs(name: str, tmp_path: Path) -> None:
    """The kernel runs without an error, and computes something else."""
    case = ALL[name]
    assert rows(case, case.text, tmp_path, every(case)) == [{"agrees": False, "errors": []}] * 3


@pytest.mark.soak
@pytest.mark.parametrize("name", RIGHT[EVERY])
def test_a_right_kernel_meets_a_wrong_reference_or_tolerance(name: str, tmp_path: Path) -> None:
    """The kernel is that of a case without its mistake; what its file says of it makes it fail."""
    case = ALL[name]
    assert functions(case.text) == functions(ALL[case.of].right_text)
    assert rows(case, case.text, tmp_path, [case.settings()]) == [{"agrees": False, "errors": []}]


def functions(text: str) -> dict[str, str]:
    """The functions of a text, without the reference."""
    found = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    return {each.name: ast.unparse(each) for each in found if each.name != "reference"}


def test_mistakes_are_mended_where_they_stand() -> None:
    """A text replaces that of its line, an empty one stands before the line; another text there is refused."""
    text = "a = 1\nb = 1\nc = 1\n"
    assert mended(text, (Mistake(2, "1", "2"),)) == "a = 1\nb = 2\nc = 1\n"
    assert mended(text, (Mistake(2, "", "x = 0"), Mistake(3, "c = 1", "c = 2"))) == "a = 1\nx = 0\nb = 1\nc = 2\n"
    with pytest.raises(ValueError, match="line 1 has no"):
        mended(text, (Mistake(1, "b", "c"),))
