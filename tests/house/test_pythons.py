"""The versions of Python of AWS's images: each that nkitools can be installed on is declared and tested."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PYTHON = re.compile(r"\b3\.(\d+)\b")
# AWS's release notes: the wheels of each set of packages that docs/how-to/hardware.md names.
IMAGES = {"native torch": range(12, 15), "2.31": range(11, 14), "2.29.1": range(11, 13)}


def of_images() -> Iterator[tuple[str, range]]:
    """The versions that the guide names, in the remark beside ``python --version``."""
    guide = (REPOSITORY / "docs/how-to/hardware.md").read_text()
    for named in re.search(r"^python --version +# (.*)$", guide, re.MULTILINE)[1].split("; "):  # type: ignore[index]
        image, _, versions = named.partition(": ")
        numbers = [int(number) for number in PYTHON.findall(versions)]
        yield image, range(numbers[0], numbers[-1] + 1)


def test_the_guide_has_the_versions_of_each_image() -> None:
    """The guide says of each image what its wheels are for, from 3.11 on."""
    assert dict(of_images()) == IMAGES


def test_each_version_of_an_image_is_declared_and_tested() -> None:
    """By a classifier, and in a job of the workflow: Ubuntu 26.04 has 3.14, and the native wheels take it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    declared = {
        int(number) for line in project["classifiers"] if "Python :: 3." in line for number in PYTHON.findall(line)
    }
    jobs = re.findall(r"^ +python: \[(.*?)\]", (REPOSITORY / ".github/workflows/test.yml").read_text(), re.MULTILINE)
    tested = {int(number) for line in jobs for number in PYTHON.findall(line)}
    wanted = {version for versions in IMAGES.values() for version in versions}
    assert wanted <= declared == tested
    assert project["requires-python"] == f">=3.{min(declared)}"
