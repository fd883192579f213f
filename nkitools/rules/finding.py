"""What a rule says when it speaks: findings, and the errors that carry them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn

from nkitools.rules.catalogue import RULES, Rule


@dataclass(frozen=True)
class Finding:
    """One broken rule, told to its reader.

    ``file``, ``line`` and ``function`` are the author's own; ``program`` is the program id in the launch grid and
    ``loops`` maps the names of the enclosing loops' counters to their values at that moment.
    """

    rule: str
    slug: str
    severity: str
    message: str
    file: str
    line: int
    remedy: str
    column: int | None = None
    program: tuple[int, ...] = ()
    loops: dict[str, int] = field(default_factory=dict)
    function: str = ""

    def text(self) -> str:
        """One line: ``path:line:col: NK103 message`` (without the column where it is not known)."""
        column = f":{self.column}" if self.column is not None else ""
        return f"{self.file}:{self.line}{column}: {self.rule} {self.message}"

    def sentence(self) -> str:
        """The message, the remedy and the place, as an error shows them."""
        where = [f"at {self.file}:{self.line}"]
        if self.loops:
            where.append("loop " + ", ".join(f"{name}={value}" for name, value in self.loops.items()))
        if any(self.program):
            where.append("program " + ", ".join(str(index) for index in self.program))
        return f"{self.message} ({self.rule} {self.slug}).\n  {self.remedy}\n  {', '.join(where)}"


class KernelError(Exception):
    """A kernel broke a rule; ``.finding`` says which, where and what to do."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.sentence())
        self.finding = finding


class NotModelled(KernelError):
    """The kernel uses something that this version does not model (NK607). Raised at every rule level."""


def _also(*builtins: type[Exception]) -> type[KernelError]:
    """The KernelError that is at the same time the built-in exception AWS documents for the case."""
    name = "Kernel" + "".join(kind.__name__ for kind in builtins)
    return type(name, (KernelError, *builtins), {"__module__": __name__, "__doc__": KernelError.__doc__})


_ERRORS: dict[str, type[KernelError]] = {
    name: _also(kind)
    for name, kind in {
        "AssertionError": AssertionError,
        "IndexError": IndexError,
        "TypeError": TypeError,
        "ValueError": ValueError,
    }.items()
}


def error_class(rule: Rule) -> type[KernelError]:
    """The exception class of a rule: ``NotModelled`` for NK607, else one that is also the built-in AWS documents."""
    if rule.id == "NK607":
        return NotModelled
    return _ERRORS.get(rule.builtin, KernelError)


def error_of(finding: Finding) -> KernelError:
    """The exception that carries ``finding``."""
    return error_class(RULES[finding.rule])(finding)


Reporter = Callable[[Rule, str, bool, Sequence[Any], str], None]
REPORTER: ContextVar[Reporter | None] = ContextVar("nkitools_reporter", default=None)


def report(rule_id: str, message: str, *, about: Sequence[Any] = (), remedy: str = "", fatal: bool = False) -> None:
    """Say that ``rule_id`` is broken.

    Raises under ``rules="error"``, collects under ``"report"``, keeps silent under ``"off"``. ``fatal`` marks what cannot
    be computed at all: it ends the run at every level. ``about`` are the tensors concerned (to name them).
    """
    rule = RULES[rule_id]
    reporter = REPORTER.get()
    if reporter is not None:
        reporter(rule, message, fatal, about, remedy or rule.remedy)
        return
    if fatal or rule.severity == "error":
        raise error_of(Finding(rule.id, rule.slug, rule.severity, message, "<unknown>", 0, remedy or rule.remedy))


def refuse(rule_id: str, message: str, *, about: Sequence[Any] = (), remedy: str = "") -> NoReturn:
    """Report what cannot be computed; never returns."""
    report(rule_id, message, about=about, remedy=remedy, fatal=True)
    raise AssertionError("a fatal report returned")


def not_modelled(message: str, *, remedy: str = "") -> NoReturn:
    """Refuse by name what this version does not model (NK607)."""
    refuse("NK607", message, remedy=remedy)
