"""Probes: every write to a named tensor, or by a line of the source, becomes a device print.

A probe uses the writes that a record keeps (`nkitools.record.watch.watching`), once the record has the instruction.
"""

from __future__ import annotations

import difflib
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from nkitools.facts.light_classes import dataclass, field
from nkitools.record.loop_counters import moment_of
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Wanted, is_among, is_file
from nkitools.record.record import Record
from nkitools.record.run import Run
from nkitools.record.run_listeners import attend_runs
from nkitools.record.source_sites import Site, author_frame
from nkitools.record.tensor_names import names_in_kernel
from nkitools.record.watch.watching import watching
from nkitools.record.watch.written import Written

_LINE = re.compile(r"(?P<file>.+):(?P<line>\d+)")
_PATTERN = re.compile(r"[*?\[]")
_FORM = 'Say watch="preds", watch=["preds", "giou.py:57"] or watch={"preds": "*", "giou.py:57": {"m": 3}}.'


# Which writes of a watch count: "*", True or ... for all, loop counters with their values, or a function of the print.
Condition: TypeAlias = bool | str | EllipsisType | Mapping[str, Wanted] | Callable[[Print], object]
Watch: TypeAlias = str | Iterable[str] | Mapping[str, Condition]


class WatchWarning(UserWarning):
    """Warns of a watch that recorded nothing."""


@dataclass(frozen=True)
class Probe:
    """One watch: ``name`` is a tensor's (with ``*`` and ``?`` as wildcards), or ``file.py:57``."""

    name: str
    condition: Callable[[Print], object] | None = None

    @property
    def is_line(self) -> bool:
        """Return whether a line is watched, and no tensor."""
        return _LINE.fullmatch(self.name) is not None

    def named(self, names: Iterable[str], places: Iterable[tuple[str, int]]) -> str | None:
        """Return the name under which the probe records a write; None if the probe does not want it.

        That is one of the tensor's ``names``, or the probe's line if it is among ``places``: the lines of the
        instruction and of the calls around it.
        """
        line = _LINE.fullmatch(self.name)
        if line is not None:
            is_there = any(number == int(line["line"]) and is_file(file, line["file"]) for file, number in places)
            return self.name if is_there else None
        if _PATTERN.search(self.name):
            return next((name for name in names if fnmatch.fnmatchcase(name, self.name)), None)
        return self.name if self.name in names else None

    def prints(self, written: Written, names: Sequence[str]) -> Print | None:
        """Return the write as a print, with the tensor's name or the line as prefix; None if it is not wanted."""
        prefix = self.named(names, ((written.file, written.line), *written.callers))
        if prefix is None:
            return None
        reduced = written.reduced
        one = Print(
            prefix=prefix,
            value=np.asarray(written.value) if reduced is None else reduced.corners,
            shape=written.shape,
            dtype=written.dtype,
            program=written.program,
            loops=written.loops,
            file=written.file,
            line=written.line,
            memory=written.memory,
            rank=written.rank,
            issued=written.position + 1,
            unwritten=written.unwritten,
            reduced=reduced,
            tensor=names[0] if names and self.is_line else "",
        )
        return one if self.condition is None or self.condition(one) else None


@dataclass(eq=False)
class Probes:
    """The probes of some runs, their ``counts`` by name, and the ``tensors`` and ``lines`` that the runs wrote.

    ``of_option``: they come from the option ``watch``, not from a call.
    """

    probes: tuple[Probe, ...]
    of_option: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    tensors: set[str] = field(default_factory=set)
    lines: set[str] = field(default_factory=set)
    # By record: how many of its writes have been looked at, and by position and storage what the others are called.
    _seen: dict[int, int] = field(default_factory=dict)
    _names: dict[tuple[int, int, int], list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts.update({probe.name: 0 for probe in self.probes})

    def wants(self, record: Record, position: int, storage: int, tensor: str, site: Site) -> bool:
        """Return whether a probe looks at a write: by the variables that hold its tensor now, or by the line."""
        frame = author_frame(2)
        names = list(dict.fromkeys(filter(None, (*names_in_kernel(frame, storage), tensor))))
        moment = record.moment or moment_of(frame)
        self.tensors.update(names)
        self.lines.add(f"{os.path.basename(site.file)}:{site.line}")
        places = [(site.file, site.line), *moment.callers]
        if all(probe.named(names, places) is None for probe in self.probes):
            return False
        self._names[id(record), position, storage] = names
        return True

    def look(self, record: Record, position: int) -> None:
        """Make prints of the writes of the instructions up to ``position``."""
        at = self._seen.get(id(record), 0)
        while at < len(record.writes) and record.writes[at].position <= position:
            written = record.writes[at]
            at += 1
            self._seen[id(record)] = at
            names = self._names.pop((id(record), written.position, written.storage), [])
            for probe in self.probes:
                one = probe.prints(written, names)
                if one is not None:
                    self.counts[probe.name] += 1
                    record.keep_print(one)

    def begun(self, run: Run) -> None:
        """Begin to watch a run."""
        run.probes.append(self)

    def ended(self, run: Run) -> None:
        """Print the remaining values of a run that has ended, also of one that failed."""
        for record in run.records or ((run.record,) if run.record is not None else ()):
            self.look(record, record.count)
            self._seen.pop(id(record), None)

    def as_plain(self) -> dict[str, Any]:
        """Names and counts, for a journey to another process."""
        return {"counts": dict(self.counts), "tensors": sorted(self.tensors), "lines": sorted(self.lines)}

    def merge(self, plain: Mapping[str, Any]) -> None:
        """Add the records of other probes with the same names, in the form of `as_plain`."""
        for name, count in plain["counts"].items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.tensors.update(plain["tensors"])
        self.lines.update(plain["lines"])

    def complaints(self) -> list[str]:
        """Return a sentence for each watch that recorded nothing, with names that are similar."""
        return [self._complaint(name) for name, count in self.counts.items() if not count]

    def _complaint(self, name: str) -> str:
        is_line = _LINE.fullmatch(name) is not None
        met = sorted((self.lines if is_line else self.tensors) - {""})
        near = difflib.get_close_matches(name, met, 3, 0.6) or [each for each in met if each.lower() == name.lower()]
        if any(probe.name == name and probe.condition is not None for probe in self.probes) and name in met:
            return f"watch {name!r} recorded nothing: it was written, but never where its condition holds"
        what = "no instruction at that line wrote a tensor" if is_line else "no tensor of that name was written"
        if near:
            return f"watch {name!r} recorded nothing: {what}; did you mean {' or '.join(map(repr, near))}?"
        some = f"written were {', '.join(met[:8])}{', ...' if len(met) > 8 else ''}" if met else "nothing was written"
        return f"watch {name!r} recorded nothing: {what}; {some}"


def probes_of(watch: Watch) -> Probes:
    """Return the probes of a ``watch`` argument or option. TypeError or ValueError if it is not one."""
    if isinstance(watch, str):
        watch = [name.strip() for name in watch.split(",") if name.strip()]
    if not isinstance(watch, (Mapping, Iterable)):
        raise TypeError(f"watch: must be names of tensors or lines, it is {watch!r}. {_FORM}")
    asked = dict(watch) if isinstance(watch, Mapping) else dict.fromkeys(watch, "*")
    for name in asked:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"watch: must be names of tensors or lines, one is {name!r}. {_FORM}")
    return Probes(tuple(Probe(name.strip(), _condition(name, said)) for name, said in asked.items()))


def _condition(name: str, said: Condition) -> Callable[[Print], object] | None:
    if said is Ellipsis or said is True or said == "*":
        return None
    if isinstance(said, Mapping):
        counters = dict(said)
        return lambda one: all(is_among(one.loops.get(counter), value) for counter, value in counters.items())
    if callable(said):
        found: Callable[[Print], object] = said
        return found
    raise ValueError(
        f"watch[{name!r}]: must be '*' for every write, counters like {{'m': 3}}, or a function of the print, "
        f"it is {said!r}. {_FORM}"
    )


def _nothing(tensor: str, file: str, line: int) -> bool:
    return False


@contextmanager
def probing(watch: Any, *, of_option: bool = False) -> Iterator[Probes]:
    """Record the writes that ``watch`` names as prints of the runs inside. TypeError, ValueError if it is no watch."""
    probes = probes_of(watch)
    probes.of_option = of_option
    with watching(_nothing, watcher=probes), attend_runs(probes):
        yield probes


def option_probes(runs: Iterable[Run]) -> Probes | None:
    """Return the records of the option ``watch`` in these runs together; None if it is not set."""
    together: Probes | None = None
    for run in runs:
        for probes in run.probes:
            if probes.of_option:
                together = together or Probes(())
                together.merge(probes.as_plain())
    return together
