"""The kernel of a verdict while its rows are made: its first run, and others that pass."""

from __future__ import annotations

from dataclasses import dataclass, field

from nkitools.precision.runs import Half
from nkitools.verdict.bench import Bench, JudgedRun
from nkitools.verdict.cases import Given


@dataclass
class Asked:
    """The options of a verdict's rows."""

    chips: tuple[str, ...] = ()
    seed: int = 0
    max_traffic: float | None = None


@dataclass
class Trial:
    """A kernel on trial. ``first``: the run of the given arguments. ``right``: other runs that pass."""

    bench: Bench
    asked: Asked
    first: JudgedRun
    seconds: float  # of the first run
    right: list[JudgedRun] = field(default_factory=list)

    @property
    def half(self) -> Half:
        """Return the results on the given arguments."""
        assert self.first.ran.half is not None
        return self.first.ran.half

    @property
    def given(self) -> Given:
        """Return the given arguments."""
        return self.first.given

    @property
    def is_nki(self) -> bool:
        """Return whether the run has a record of instructions: an NKI kernel without ranks."""
        return self.bench.described.kind == "nki" and self.bench.launch.get("ranks") is None
