"""Pictures of findings as lines of text: block signs if the terminal has them, else plain ASCII."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nkitools.rules.finding import Picture

_BLOCKS = str.maketrans({"#": "█", "+": "▒", ".": "·"})


def shows_blocks(stream: IO[Any] | None) -> bool:
    """Return whether ``stream`` can show signs beyond ASCII."""
    try:
        "█▒·".encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def picture_lines(picture: Picture, *, blocks: bool = False) -> list[str]:
    """Return the lines of the picture, each after its rows, and a line with the meanings of the signs."""
    labels = [f"row {first}" if first == last else f"rows {first}..{last}" for first, last in picture.rows]
    width = max(map(len, labels), default=0)
    shown = [line.translate(_BLOCKS) if blocks else line for line in picture.lines]
    lines = [f"{label:{width}}  {line}" for label, line in zip(labels, shown, strict=True)] if labels else shown
    return [*lines, _legend(picture, blocks=blocks)]


def _legend(picture: Picture, *, blocks: bool) -> str:
    signs = len(picture.lines[0])
    parted = "" if signs == picture.columns else f" in {signs} signs"
    said = ", ".join(f"{sign.translate(_BLOCKS) if blocks else sign} {meaning}" for sign, meaning in picture.meanings)
    return f"{picture.across} {picture.first}..{picture.first + picture.columns - 1}{parted}: {said}"
