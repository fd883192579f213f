"""The page of sweeps: the answers of the terminal in one self-contained file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from nkitools.record.whole_file import write_whole
from nkitools.report.page.document import environment, read_asset


def write_sweep_page(sweeps: Sequence[Mapping[str, Any]], title: str, path: str | os.PathLike[str]) -> None:
    """Write the page of the answers of sweeps, see `nkitools.sweeps.plain_answers.plain`. OSError: it cannot be."""
    template = environment().from_string(read_asset("sweep.html.j2"))
    write_whole(path, template.render(sweeps=sweeps, title=title, style=read_asset("page.css")))
