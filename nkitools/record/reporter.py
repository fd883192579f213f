"""From a broken rule to a finding that names the author's line, tensors, counters and program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

from nkitools.chip.core import CORE
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import replace
from nkitools.record.allowed_rules import allowance
from nkitools.record.loop_counters import Place, counters, place_of
from nkitools.record.record import Record
from nkitools.record.run_session import Findings, Kept
from nkitools.record.source_sites import Site, author_frame
from nkitools.record.tensor_names import are_named, facts_of, name_of, with_names
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import NO_FACTS, Drawing, Finding, StopRun, error_of

# A finding in a loop comes in each iteration, with its own counters; beyond so many their messages are not written.
MAX_REPEATS = 1000
# A few pictures are enough for one line.
MAX_PICTURES = 8


class _Said(NamedTuple):
    """A message that a place has made: its rule, its text, the storages in it with their names, and its counter."""

    rule: str
    message: str
    names: tuple[tuple[int, str], ...]
    kept: Kept


class Reporter:
    """Reports broken rules: it keeps findings and raises errors, as the level and the run's ``findings`` decide.

    The first 1000 findings of one rule at one site have their own messages; later ones are counted with the last of
    them. A message that a site has made before is only counted.
    """

    def __init__(self, findings: Findings, record: Record) -> None:
        self.findings = findings
        self.level = findings.level
        self.record = record
        self.reports = 0  # of all rules, kept or not
        self._times = defaultdict[tuple[str, Site], int](int)
        self._latest: dict[tuple[str, Site], Finding] = {}
        self._said: dict[tuple[Any, ...], _Said] = {}  # by place, and by the message without the author's names
        self._forms: dict[tuple[Any, ...], _Said] = {}  # the same by the message without storages
        self._noted: dict[tuple[Any, ...], tuple[_Said, str, Place]] = {}
        self.latest: _Said | None = None  # of the last report, where its next times need not be written
        self._place: tuple[Site, FrameType | None] | None = None
        self._moment: tuple[tuple[int, ...], dict[str, int]] | None = None

    def __call__(
        self,
        rule: Rule,
        message: str,
        fatal: bool,
        about: Sequence[Any],
        remedy: str,
        picture: Drawing | None = None,
        facts: Mapping[str, Any] = NO_FACTS,
    ) -> bool:
        self.reports += 1
        self.latest = None
        if self.level == "off" and not fatal:
            return False
        frame = author_frame(2)
        said: tuple[Any, ...] = ()
        if self._place is None and self.record.report_site < 0 and frame is not None and not fatal:
            said = rule.id, rule.severity, id(frame.f_code), frame.f_lasti, message
            if self._is_repeated(said, frame):
                return True
        number = self.record.sites.current(2) if self.record.report_site < 0 else self.record.report_site
        site, frame = self._place or (self.record.sites[number], frame)
        verdict = self.findings.verdict(rule.id, rule.severity, fatal=fatal)
        self._times[rule.id, site] += 1
        times, latest = self._times[rule.id, site], self._latest.get((rule.id, site))
        program, loops = self._moment or _moment_of(frame)
        if latest is not None and times > MAX_REPEATS and not (verdict.raised or fatal):
            finding = replace(latest, program=program, loops=loops)
        else:
            named = with_names(message, frame, self.record)
            known = facts_of(about, facts, frame, self.record)
            remedy = with_names(remedy, frame, self.record, "the tensor")
            finding = self._finding(rule, site, named, remedy, program=program, loops=loops, facts=known)
            self._latest[rule.id, site] = finding
        if (
            picture is not None
            and (verdict.raised or fatal or times <= MAX_PICTURES)
            and self.findings.is_new(finding, verdict)
        ):
            finding = replace(finding, picture=picture())
        kept = self.findings.keep(finding, verdict)
        if verdict.raised:
            raise error_of(finding) from None
        if fatal:
            raise StopRun
        if kept is not None and said:
            self._keep_said(said, frame, finding.message, kept)
        return True

    def _keep_said(self, said: tuple[Any, ...], frame: FrameType | None, message: str, kept: Kept) -> None:
        """Keep a message that a place may have again."""
        *place, text = said
        parts = text.split("\0")
        names = tuple((int(each), name_of(frame, int(each), self.record)) for each in parts[1::2])
        self._forms[(*place, *parts[::2])] = self.latest = _Said(said[0], message, names, kept)
        self._keep_again(said, self.latest)

    def _keep_again(self, said: tuple[Any, ...], known: _Said) -> None:
        if len(self._said) >= MAX_REPEATS:
            self._said.clear()
        self._said[said] = known

    def _is_repeated(self, said: tuple[Any, ...], frame: FrameType) -> bool:
        """Count a message that the place has made before; return False if it is new, or names other tensors."""
        known = self._said.get(said)
        if known is None:
            *place, text = said
            parts = text.split("\0")
            form = self._forms.get((*place, *parts[::2]))
            if form is None:
                return False
            names = zip(parts[1::2], form.names, strict=True)
            known = form._replace(names=tuple((int(each), name) for each, (_, name) in names))
            self._keep_again(said, known)
        return self._count(known, frame)

    def _count(self, known: _Said, frame: FrameType) -> bool:
        """Count a known message; return False if it now names other tensors, or another allowance accepts it."""
        if known.kept.reason != allowance(known.rule):
            return False
        variables = frame.f_locals
        if not are_named(known.names, frame, variables, self.record):
            return False
        core = CORE.get()
        program, loops = (core.program, counters(frame, variables)) if core is not None else ((), {})
        self.findings.repeated(known.kept, program, loops, known.message)
        self.latest = known
        return True

    def counts(self, frame: FrameType, about: int, message: str = "", *, begins: bool = False) -> bool:
        """Count a report about a storage that the place has made before (see `note`); return False if it is new.

        ``begins``: further reports of the same call may follow, with the same loop counters (``core.counted``, which
        the caller sets to None at the end of the call).
        """
        known = self._noted.get((id(frame.f_code), frame.f_lasti, about, message))
        if known is None:
            return False
        said, name, around = known
        core = CORE.get()
        if core is not None:
            counted = core.counted
            if counted is None or counted[0] is not frame or counted[1] != about or counted[2] != name:
                variables = frame.f_locals
                tensor = variables.get(name)
                is_named = tensor.__class__ is NkiTensor and tensor.storage.id == about
                loops = around.counters(frame, variables) if is_named else None
                counted = None if loops is None else (frame, about, name, loops)
                if begins:
                    core.counted = counted
            if counted is not None and said.kept.reason == allowance(said.rule):
                self.findings.repeated(said.kept, core.program, counted[3], said.message)
                self.reports += 1
                return True
        if not self._count(said, frame):
            return False
        self.reports += 1
        return True

    def note(self, frame: FrameType, about: int, message: str = "") -> None:
        """Let `counts` count repeats of the last report of the author's ``frame``, which is always the same for one
        storage and ``message``.
        """
        said = self.latest
        if said is not None and all(storage == about for storage, _ in said.names) and frame is author_frame(2):
            name = said.names[0][1] if said.names else ""
            if len(self._noted) >= MAX_REPEATS:
                self._noted.clear()
            self._noted[id(frame.f_code), frame.f_lasti, about, message] = said, name, place_of(frame)

    @contextmanager
    def placed(
        self,
        site: Site,
        frame: FrameType | None = None,
        *,
        program: tuple[int, ...] = (),
        loops: dict[str, int] | None = None,
    ) -> Iterator[None]:
        """Place the reports inside the block at an earlier site of the author's; ``frame`` is the author's, if known.

        ``program`` and ``loops``: of the moment that the reports are about, if it has passed.
        """
        self._place = site, frame
        self._moment = None if loops is None else (program, loops)
        try:
            yield
        finally:
            self._place = self._moment = None

    def _finding(self, rule: Rule, site: Site, message: str, remedy: str, **more: Any) -> Finding:
        return Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=message,
            file=site.file,
            line=site.line,
            column=site.column,
            remedy=remedy,
            function=site.function,
            rank=self.record.rank,
            **more,
        )


def _moment_of(frame: FrameType | None) -> tuple[tuple[int, ...], dict[str, int]]:
    """Return the program and the loop counters of now."""
    core = CORE.get()
    return (core.program, counters(frame)) if core is not None else ((), {})
