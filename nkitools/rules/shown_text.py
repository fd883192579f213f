"""Text of names, prints and messages as terminals and logs may be given it: what would command them is escaped."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

# Control characters but the tab and the end of a line, signs that turn or hide the text around, half characters.
_COMMANDING = (  # compiled when it is used
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"
)
# Where GitHub's and Azure's logs find a command: `::error` first in a line, `##[error]` and `##vso[...]` anywhere.
_LOG_COMMAND = r"(?m)^([^\S\n]*):(?=:)|#(?=#(?:\[|vso\[))"


def shown(text: str) -> str:
    """Return ``text`` with signs that command a terminal or a log as escapes: ``\\x1b``, ``\\u202e``, ``\\x3a``."""
    text = re.sub(_COMMANDING, lambda sign: _escaped(sign[0]), text)
    if "::" not in text and "##" not in text:
        return text
    return re.sub(_LOG_COMMAND, lambda sign: "\\x23" if sign[0] == "#" else f"{sign[1]}\\x3a", text)


def shown_line(text: str) -> str:
    """Return `shown` of ``text`` in one line."""
    return shown(text.replace("\n", "\\n"))


def preformatted(text: str) -> str:
    """Return a text as HTML that keeps its lines and columns."""
    from html import escape  # which few runs need

    return f"<pre>{escape(shown(text))}</pre>"


def shown_file(path: str, *, whole: bool = True) -> str:
    """Return the name of a file in messages: its path, or its last part; for a notebook's cell the cell's name."""
    return _cell_name(path) or (path if whole else os.path.basename(path))


def _cell_name(path: str) -> str | None:
    """Return the running notebook's name for the cell of a file, ``In[3]``; None for other files."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    named = None if shell is None else shell.compile.format_code_name(path)
    return None if named is None else str(named[1])


def _escaped(sign: str) -> str:
    number = ord(sign)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
