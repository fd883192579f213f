"""The versions that nkitools was tested with: one table, which all other places agree with."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs.generate_supported_versions import supported_versions_page
from nkitools.cli import main
from nkitools.facts import supported_versions
from nkitools.facts.supported_versions import installed_outside, outside, packages, release, table

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
LOWER = re.compile(r"^([A-Za-z_-]+)(?:\[\w+\])?>=([\d.]+)$")


def lower_bounds() -> dict[str, str]:
    """The lower bounds in pyproject.toml, of the package itself and of its extras."""
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    return {found[1]: found[2] for line in lines if (found := LOWER.match(line))}


def test_the_rows_are_in_order_and_say_how() -> None:
    """Versions ascend within a package; each row has one of three words and a note."""
    for package in packages():
        versions = [release(row.number) for row in table() if row.package == package]
        assert versions == sorted(set(versions))
    assert {row.how for row in table()} <= {"CI", "by hand", "not tested"}
    assert all(row.note for row in table())
    assert set(packages()) == {"Python", "jax", "libtpu", "numpy", "ml_dtypes", "torch", "pytest", "hypothesis"}


@pytest.mark.parametrize("package", ["jax", "numpy", "ml_dtypes", "pytest", "hypothesis"])
def test_the_lower_bounds_are_the_oldest_that_were_tested(package: str) -> None:
    """``numpy>=2.1`` where 2.1.0 was tested: pip installs nothing older than that."""
    oldest, bound = release(supported_versions.tested(package)[0]), release(lower_bounds()[package])
    assert oldest[: len(bound)] == bound


def test_the_pythons_are_those_of_the_metadata() -> None:
    """Classifiers name the rows of Python; `requires-python` the first; the workflow runs those that CI tests."""
    rows = [row for row in table() if row.package == "Python"]
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert declared == [row.number for row in rows]
    assert PROJECT["requires-python"] == f">={rows[0].number}"
    workflow = (REPOSITORY / ".github/workflows/test.yml").read_text()
    in_jobs = set(re.findall(r'"(3\.\d+)"', workflow))
    assert {row.number for row in rows if row.how == "CI"} <= in_jobs


@pytest.mark.parametrize(
    ("package", "version", "word"),
    [
        ("numpy", "1.26.4", "older"),
        ("numpy", "2.1.3", ""),
        ("numpy", "2.5.99", ""),  # a patch release of a release that was tested
        ("numpy", "2.6.0", "newer"),
        ("numpy", "3.0.0rc1", "newer"),
        ("jax", "0.9.2", "older"),
        ("jax", "0.11.0", ""),
        ("jax", "0.12.0.7", ""),
        ("jax", "0.12.1", "newer"),
        ("jax", "0.10.1", "older"),
        ("libtpu", "0.0.41", "older"),
        ("libtpu", "0.1.0", "newer"),
        ("hypothesis", "6.999.0", ""),
        ("hypothesis", "7.0.0", "newer"),
        ("Python", "3.12.9", ""),
        ("Python", "3.14.0", "newer"),
        ("pytest", "nonsense", ""),
    ],
)
def test_a_version_outside_is_named_with_the_nearest_tested(package: str, version: str, word: str) -> None:
    """The sentence has the installed version, and the bound that it lies beyond."""
    sentence = outside(package, version)
    assert bool(sentence) == bool(word)
    if word:
        bound = supported_versions.tested(package)[-1 if word == "newer" else 0]
        expected = f"{package} {version} is {word} than the versions that nkitools was tested with ({bound})"
        assert sentence == expected


def test_a_package_without_a_row_is_an_error() -> None:
    """Nothing is known of it, which is not the same as being tested."""
    with pytest.raises(KeyError, match="rich"):
        supported_versions.tested("rich")


def test_what_is_absent_is_not_outside() -> None:
    """Only installed packages are compared."""
    versions = {"numpy": "2.99.0", "torch": None, "jax": "0.1"}
    assert [each.split()[0] for each in installed_outside(versions, versions.get)] == ["numpy", "jax"]


@pytest.fixture
def newer_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment whose pip says that NumPy 99.1.0 is installed."""
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "99.1.0" if name == "numpy" else version(name))


SENTENCE = "numpy 99.1.0 is newer than the versions that nkitools was tested with"


@pytest.mark.process
@pytest.mark.usefixtures("newer_numpy")
def test_doctor_names_it() -> None:
    """In one line of the text, and as a part of the JSON; the exit code stays 0."""
    runner = CliRunner()
    done = runner.invoke(main, ["doctor"])
    assert done.exit_code == 0
    assert done.output.count(SENTENCE) == 1
    parts = json.loads(runner.invoke(main, ["doctor", "--format", "json"]).output)["parts"]
    assert [part["name"] for part in parts if SENTENCE in part["found"]] == ["numpy"]


KERNEL_TEST = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copied(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out

def test_copied(run_kernel):
    x = np.ones((4, 4), np.float32)
    assert (run_kernel(copied, x) == 1).all()
"""


NEWER = """
from importlib import metadata

version = metadata.version
metadata.version = lambda name: "99.1.0" if name == "numpy" else version(name)
"""


@pytest.mark.process
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_session_names_it_once_and_stays_green(pytester: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Where warnings are errors, and where several workers have imported it, too."""
    pytester.makeconftest(NEWER)
    pytester.makepyfile(test_one=KERNEL_TEST, test_two=KERNEL_TEST)
    done = pytester.runpytest_subprocess("-W", "error", *workers)
    done.assert_outcomes(passed=2)
    assert str(done.stdout).count(SENTENCE) == 1


def test_the_page_has_each_row() -> None:
    """Package, version and how, in the order of the table."""
    page = supported_versions_page()
    assert [line for line in page.splitlines() if line.startswith(("| Python", "| jax"))] == [
        f"| {row.package} | {row.number} | {row.how} | {row.note} |"
        for row in table()
        if row.package in ("Python", "jax")
    ]
