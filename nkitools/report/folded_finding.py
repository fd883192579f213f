"""A finding as it is shown, with its repeats folded into it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from nkitools.report.pictures import picture_lines
from nkitools.rules.finding import Picture
from nkitools.rules.shown_text import shown, shown_line

_INDENT = "    "


@dataclass
class FoldedFinding:
    """A finding with the number of its repeats; ``place`` and ``last`` have the program and loop counters of both
    ends.

    ``source`` is the author's line with a caret. ``status`` is empty for a finding that was only collected, ``raised``
    for one that ended a run, ``caught`` where the test went on and passed, ``expected`` for one that a test asked for,
    and ``allowed`` for one that is accepted for a ``reason``. ``facts`` are those of the first.
    """

    rule: str
    severity: str
    text: str
    remedy: str
    source: list[str] = field(default_factory=list)
    picture: Picture | None = None
    place: str = ""
    last: str = ""
    status: str = ""
    reason: str = ""
    count: int = 1
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def raised(self) -> bool:
        """Return whether the finding ended a run."""
        return self.status == "raised"

    @property
    def is_open(self) -> bool:
        """Return whether the finding is neither expected nor allowed."""
        return self.status in ("", "raised", "caught")

    def lines(self, *, blocks: bool = False) -> list[str]:
        """Return the finding; below it, indented, its line, picture, remedy and place, and how many more there are.

        ``blocks``: whether pictures may have signs beyond ASCII.
        """
        picture = [] if self.picture is None else picture_lines(self.picture, blocks=blocks)
        where = self._where()
        below = [*self.source, *picture, self.remedy, *([where] if where else [])]
        return [shown(line) for line in (self.text, *(_INDENT + line for line in below))]

    def _where(self) -> str:
        if self.count == 1:
            return f"at {self.place}" if self.place else ""
        more = f"and {self.count - 1:,} more"
        if self.place == self.last:
            return f"at {self.place}, {more}" if self.place else more
        return f"{more}, first at {self.place or 'no loop'}, last at {self.last or 'no loop'}"

    def line(self) -> str:
        """All in one line: the finding, and how often it came."""
        return shown(f"{self.text} (x{self.count:,})" if self.count > 1 else self.text)

    def facts_line(self) -> str:
        """Return rule, number of times and facts as JSON."""
        return shown_line(json.dumps({"rule": self.rule, "count": self.count, "facts": self.facts}))

    def allowed_line(self) -> str:
        """Return the same with why it is accepted."""
        return shown(f"{self.line()}; allowed: {self.reason}") if self.reason else self.line()

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> FoldedFinding:
        """Return what ``dataclasses.asdict`` made, or what JSON has made of that."""
        picture = plain["picture"]
        return cls(**{**plain, "picture": None if picture is None else _picture(picture)})


def _picture(plain: dict[str, Any]) -> Picture:
    pairs = {name: tuple(tuple(pair) for pair in plain[name]) for name in ("rows", "meanings")}
    return Picture(**{**plain, "lines": tuple(plain["lines"]), **pairs})
