"""How Sphinx builds the documentation."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from docs.generate_calibration import calibration_page  # noqa: E402  found by the line above
from docs.generate_cheat_sheet import cheat_sheet  # noqa: E402
from docs.generate_chips import chip_page  # noqa: E402
from docs.generate_coverage import coverage_page  # noqa: E402
from docs.generate_gallery import gallery_page  # noqa: E402
from docs.generate_instructions import INTRODUCTION, instruction_pages  # noqa: E402
from docs.generate_known_faults import known_faults_page  # noqa: E402
from docs.generate_options import option_page  # noqa: E402
from docs.generate_page_pictures import page_pictures  # noqa: E402
from docs.generate_pictures import pictures_page  # noqa: E402
from docs.generate_rules import rule_page  # noqa: E402
from docs.generate_supported_versions import supported_versions_page  # noqa: E402

project = "nkitools"
author = "the nkitools authors"
release = importlib.metadata.version("nkitools")
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "pictures"]
html_theme = "furo" if find_spec("furo") is not None else "alabaster"
html_title = f"nkitools {release}"
html_show_sourcelink = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them

GENERATED = {
    "calibration.md": calibration_page, "cheat_sheet.md": cheat_sheet, "chips.md": chip_page,
    "coverage.md": coverage_page, "options.md": option_page,
    "instructions.md": lambda: INTRODUCTION, "known-faults.md": known_faults_page, "rules.md": rule_page,
    "supported-versions.md": supported_versions_page,
}  # fmt: skip


def write_generated_pages(app: Any) -> None:
    """Write the pages that come from the package's own tables; left alone where nothing has changed."""
    (HERE / "reference" / "instructions").mkdir(exist_ok=True)
    pages = {name: page() for name, page in GENERATED.items()}
    pages |= {f"instructions/{name}.md": text for name, text in instruction_pages().items()}
    pages["../pictures/shown.md"] = pictures_page(HERE / "pictures").replace("](", "](pictures/")
    pages["gallery.md"] = gallery_page(HERE / "pictures").replace("](gallery_", "](../pictures/gallery_")
    pages["../pictures/page.md"] = page_pictures(HERE / "pictures").replace("](", "](../pictures/")
    for name, text in pages.items():
        path = HERE / "reference" / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def add_what_only_html_shows(app: Any, page: str, source: list[str]) -> None:
    """Show the comments ``<!-- html ... -->`` in place of what is for plain viewers, number code, add the contents."""
    text = re.sub(r"<!-- html\s(.*?)\s?-->", r"\1", source[0], flags=re.DOTALL)
    text = re.sub(r"<!-- plain -->.*?<!-- end -->|<!-- interface -->\n(?:\|[^\n]*\n)*", "", text, flags=re.DOTALL)
    numbered = re.compile(r"^<!-- shown: \S+ numbered -->\n```(\w+)\n", re.MULTILINE)
    text = numbered.sub(r"```{code-block} \1\n:linenos:\n\n", text)
    if page == "index":
        for caption, listed in re.findall(r"^### (.*)\n\n((?:- .*\n)+)", text, re.MULTILINE):
            entries = "\n".join(re.findall(r"\]\((.*?)\.md\)", listed))
            text += f"\n:::{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n:hidden:\n\n{entries}\n:::\n"
    source[0] = text


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_what_only_html_shows)
    app.connect("builder-inited", write_generated_pages)
