"""The pages read right where people find them: as plain Markdown, and as the HTML that Sphinx builds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.shown_files import made_by_sphinx, pages, written_anew

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
PAGES = pages()
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")


def plain(page: Path) -> str:
    """Return the text that a plain viewer shows, without comments and the content of code blocks."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    return re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Return the anchors that a viewer makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", plain(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_reads_right_in_a_plain_viewer(page: Path) -> None:
    """No directive or role of Sphinx is shown, every link has words, and leads to a file and heading that git keeps."""
    text = plain(page)
    assert re.findall(r"^(?::::.*|```\{.*)|\{\w+\}`[^`]*`", text, re.MULTILINE) == []
    dead = []
    for words, target in LINK.findall(re.sub(r"`[^`\n]*`", "code", text)):
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        is_there = "://" in target or (to.exists() and not made_by_sphinx(to))
        if not words.strip() or not is_there or (anchor and "://" not in target and anchor not in anchors(to)):
            dead.append((words, target))
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_the_links_of_the_html_lead_somewhere(page: Path) -> None:
    """What only the HTML shows names a page that is there, or one that Sphinx builds."""
    for text in re.findall(r"<!-- html(.*?)-->", page.read_text(), flags=re.DOTALL):
        for words, target in LINK.findall(text):
            to = (page.parent / target.partition("#")[0]).resolve()
            assert words, target
            assert to.exists() or made_by_sphinx(to), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_the_code_of_a_page_is_that_of_its_file(page: Path) -> None:
    """`python -m docs.shown_files` would change nothing."""
    assert written_anew(page) == page.read_text()


def test_the_first_page_lists_every_page() -> None:
    """Each page of the folders stands in the lists of index.md, which are the contents of the HTML, too."""
    listed = {target for _, target in LINK.findall((DOCS / "index.md").read_text())}
    written = {str(page.relative_to(DOCS)) for page in PAGES if page.parent.parent == DOCS}
    assert written - listed == set()
