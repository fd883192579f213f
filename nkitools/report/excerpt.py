"""The author's line that a finding is about, with a caret under the column."""

from __future__ import annotations

from nkitools.authors_code.source_text import shown_text


def source_line(file: str, line: int) -> str:
    """Return a line of the author's source as it was when the code was loaded; '' if there is none."""
    lines = shown_text(file).splitlines()
    return lines[line - 1].rstrip() if 0 < line <= len(lines) else ""


def excerpt(file: str, line: int, column: int | None) -> list[str]:
    """Return the line after its number, and a caret below the begin of the expression; [] without the source."""
    source = source_line(file, line)
    shown = source.lstrip()
    if not shown:
        return []
    number = f"{line} | "
    lines = [number + shown]
    if column is not None:
        # Columns count bytes of UTF-8, as Python's code objects do.
        before = source.encode()[: column - 1].decode(errors="replace")
        at = len(before) - (len(source) - len(shown))
        if 0 <= at < len(shown):
            blank = "".join("\t" if sign == "\t" else " " for sign in shown[:at])
            lines.append(f"{'| ':>{len(number)}}{blank}^")
    return lines
