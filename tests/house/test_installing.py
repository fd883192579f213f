"""What pages tell people to install can be installed: nkitools is not on PyPI yet, and no version has a tag."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cases import each

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docs/**/*.yml",
        "editors/**/*.md",
        "nkitools/cli/templates/**/*",
        ".github/**/*.yml",
    )
    for path in REPOSITORY.glob(pattern)
    if path.is_file() and not {"_build", "node_modules"} & set(path.parts)
)
BY_NAME = re.compile(r"""\b(?:pip3?|pipx|uv|uvx)\b(?: \w+)*(?: -[-\w]+)* install[^\n`#]*?[\s'"]nkitools(?![-/.\w])""")
"""A command that asks an index for nkitools; a path, `.[test]`, names none."""
PUBLISHED = re.compile(r"\bnot on PyPI yet\b")
COMMITS = REPOSITORY / "docs" / "how-to" / "github-actions.md"


def asks_for_what_is_not_there(text: str) -> list[str]:
    """Return the commands that install nkitools by its name, of a page that does not say that it is not there."""
    return [] if PUBLISHED.search(text) else [found.group() for found in BY_NAME.finditer(text)]


@each("path", PAGES, lambda path: str(path.relative_to(REPOSITORY)))
def test_no_page_installs_from_pypi_without_a_word(path: Path) -> None:
    """A page that names nkitools in `pip install` says that it is not on PyPI yet."""
    assert asks_for_what_is_not_there(path.read_text(encoding="utf-8")) == []


@each(
    "text, is_found",
    [
        ("pip install nkitools", True),
        ("pip install 'nkitools[test]'", True),
        ("python -m pip install --quiet nkitools pytest", True),
        ("pip install pytest nkitools==0.2", True),
        ('pip install "nkitools @ git+https://host/nkitools"', True),
        ("pip install '.[test]'    # in the clone of nkitools", False),
        ("pip install ../nkitools", False),
        ("pip install pygls` beside nkitools", False),
        ("nkitools is not on PyPI yet: pip install nkitools", False),
    ],
)
def test_such_commands_are_found(text: str, is_found: bool) -> None:
    """In every form, and no others."""
    assert bool(asks_for_what_is_not_there(text)) == is_found


def test_no_message_upgrades_from_pypi() -> None:
    """An extra of the installed nkitools comes without an index that has it; a newer nkitools does not."""
    sources = (path.read_text(encoding="utf-8") for path in (REPOSITORY / "nkitools").rglob("*.py"))
    assert [found for text in sources for found in re.findall(r"install (?:--upgrade|-U) '?nkitools", text)] == []


def blocks(language: str) -> list[str]:
    """Return the blocks of the section on pre-commit."""
    section = COMMITS.read_text(encoding="utf-8").partition("## Before each commit")[2]
    return re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)


def test_the_hook_of_a_project_is_that_of_the_repository() -> None:
    """Both entries run the same command on the same files."""
    [own] = blocks("yaml")
    hooks = (REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    for key in ("id", "name", "entry", "types"):
        line = re.compile(rf"\b{key}: .*")
        assert line.search(own)[0] == line.search(hooks)[0]  # type: ignore[index]


@pytest.mark.process
def test_the_entry_of_pre_commit_names_a_commit_that_is_there(tmp_path: Path) -> None:
    """The documented lines write it, for a repository without a tag."""
    if shutil.which("git") is None or shutil.which("sh") is None:
        pytest.skip("git is not installed")
    origin = tmp_path / "nkitools"

    def git(*words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=e")
        return subprocess.run(
            ["git", *who, "-C", str(origin), *words], capture_output=True, text=True, check=True
        ).stdout

    origin.mkdir()
    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "first")
    [lines] = blocks("sh")
    lines = lines.replace("path/to/nkitools", str(origin))
    subprocess.run(["sh", "-c", lines], cwd=tmp_path, check=True)
    entry = (tmp_path / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert f"  - repo: {origin}\n    rev: {git('rev-parse', 'HEAD')}    hooks:\n" in entry
