"""The kernels that the yardstick makes mistakes in."""

from __future__ import annotations

from pathlib import Path

from nkitools.edits.source import Source


def sources(root: Path) -> list[Source]:
    """The NKI kernels of the repository, both dialects, by name."""
    found = []
    for path in sorted((root / "kernels" / "nki").rglob("*.py")):
        if path.stem == "__init__":
            continue
        name = ".".join(path.relative_to(root / "kernels" / "nki").with_suffix("").parts)
        found.append(Source(path.read_text(encoding="utf-8"), name))
    return found
