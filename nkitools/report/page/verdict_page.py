"""The page of a verdict on a kernel: its rows as a table, in one file that needs nothing from outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from nkitools.record.whole_file import write_whole
from nkitools.report.page.document import environment, read_asset


def write_verdict_page(verdict: Mapping[str, Any], sentence: str, title: str, path: str | os.PathLike[str]) -> None:
    """Write the page of a verdict, as plain data. OSError: it cannot be."""
    template = environment().from_string(read_asset("verdict.html.j2"))
    write_whole(path, template.render(verdict=verdict, sentence=sentence, title=title, style=read_asset("page.css")))
