"""The verdict on a kernel: its rows, how sure they are, and their form as text and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = 1
PASS, FAIL, UNKNOWN = "pass", "fail", "unknown"

ROWS = {
    "given": "the outputs on the given arguments are those of the reference",
    "rules": "no rule of the chip is broken",
    "written": "every element of the outputs is written",
    "arguments": "the arguments stay as they were, but for those of `mutates`",
    "repeat": "a second run on the same arguments gives the same bits",
    "reference": "the outputs stay the same where the reference is another function",
    "frames": "the outputs stay the same where the caller's frames hold other arrays",
    "memory": "the outputs stay the same where the arguments lie elsewhere in memory",
    "constants": "the constants that enter from outside of the kernel",
    "values": "the outputs are right for other values in the same shapes",
    "depends": "the outputs depend on all that those of the reference depend on",
    "shapes": "the outputs are right in other shapes",
    "tolerance": "the tolerance that was used, and its room",
    "estimate": "the estimated time, with its band",
    "spills": "what spills from SBUF",
    "traffic": "the bytes from and to HBM beside the least that there can be",
    "versions": "the NKI versions under which it runs",
}
"""The rows by name, each with a sentence that is true if it passes. A name keeps its meaning."""


@dataclass(frozen=True)
class Row:
    """One question about a kernel, and its answer.

    ``row``: a name of `ROWS`. ``outcome``: ``pass``, ``fail`` or ``unknown``. ``tried``: what was run. ``why``: what
    was seen, or what is not known. ``data``: numbers and names of the answer, for JSON.
    """

    row: str
    outcome: str
    tried: str = ""
    why: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = "; ".join(filter(None, (self.tried, self.why)))
        return f"{self.outcome:<8}{self.row:<11}{said}"


@dataclass(frozen=True)
class Measured:
    """The cost of the run of the given arguments. ``floor_bytes``: of arguments and outputs, each moved once."""

    latency_us: float
    lower_us: float
    upper_us: float
    roof: str  # "compute" or "memory"; '' where it is not known
    spilled_bytes: int = 0
    hbm_bytes: int = 0
    floor_bytes: int = 0


@dataclass(frozen=True)
class Verdict:
    """The verdict on a kernel.

    ``how_sure``: how many usual mistakes, made in the kernel, the rows would have caught, and the situations that no
    run met. ``stopped``: why the kernel could not be tried; '' if it was. ``seconds``: the time of the whole verdict.
    """

    kernel: str
    chips: tuple[str, ...]
    rows: tuple[Row, ...]
    how_sure: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    seed: int = 0
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """Return ``fail`` if a row fails, else ``pass`` if the row ``given`` passes, else ``unknown``."""
        if any(each.outcome == FAIL for each in self.rows):
            return FAIL
        return PASS if any(each.row == "given" and each.outcome == PASS for each in self.rows) else UNKNOWN

    @property
    def status(self) -> int:
        """Return the exit status: 0 if no row fails, 1 if one does, 2 if the kernel could not be tried."""
        return 2 if self.stopped else int(self.outcome == FAIL)

    @property
    def failed(self) -> tuple[str, ...]:
        """Return the names of the rows that fail, in their order."""
        return tuple(each.row for each in self.rows if each.outcome == FAIL)

    def __getitem__(self, row: str) -> Row:
        """Return a row by its name. KeyError if it was not tried."""
        for each in self.rows:
            if each.row == row:
                return each
        raise KeyError(f"{row!r} is none of {', '.join(each.row for each in self.rows)}")

    def as_plain(self) -> dict[str, Any]:
        """Return the verdict for JSON, as docs/reference/verdict.md describes it."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "outcome": self.outcome,
            "status": self.status,
            "stopped": self.stopped,
            "chips": list(self.chips),
            "seed": self.seed,
            "seconds": self.seconds,
            "rows": [{**asdict(each), "data": dict(each.data)} for each in self.rows],
            "how_sure": dict(self.how_sure),
        }

    def sentence(self) -> str:
        """Return the verdict in one line, with how sure it is."""
        if self.stopped:
            return f"{self.kernel or 'the kernel'} could not be tried: {self.stopped}"
        counts = ", ".join(
            f"{sum(each.outcome == name for each in self.rows)} {name}" for name in (PASS, FAIL, UNKNOWN)
        )
        sure = f"; {self.how_sure['says']}" if self.how_sure.get("says") else ""
        return f"{self.kernel}: {self.outcome}: {counts}{sure}"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.rows), self.sentence()])
