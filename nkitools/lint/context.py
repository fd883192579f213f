"""The state that the checks of one function share: its scope, the subscribed checks, and the findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from nkitools.facts import options
from nkitools.facts.light_classes import dataclass, field, replace
from nkitools.facts.versions import LanguageVersion
from nkitools.lint.abstract_values import Value
from nkitools.lint.module import Module
from nkitools.lint.project import Found, Project
from nkitools.lint.return_types import Arguments
from nkitools.lint.scope import LEGACY, Scope
from nkitools.rules.finding import Fact, Finding

Check = Callable[..., None]
Checks = Mapping[str, tuple[Check, ...]]


class Interface(Protocol):
    """The names of NKI: an empty interface; `nkitools.suggestions.lint_interface` has that of nkitools' dialects."""

    def wrong_call(self, name: str, node: ast.Call) -> tuple[str, str, str] | None:
        """Rule, message and remedy where the arguments do not fit the signature of ``name``."""

    def missing(self, name: str) -> tuple[str, str, str] | None:
        """Rule, message and remedy where NKI has no such name."""

    def meant(self, name: str, call: ast.Call | None, alone: bool) -> str:
        """Return the remedy for a missing name and its call; ``alone``: the call is a statement."""

    def form(self, name: str) -> str:
        """Return the call form of ``name`` as a sentence."""

    def bound(self, name: str, given: Arguments) -> dict[str, Value]:
        """Return the arguments of a call by their parameters; an empty dictionary where they do not fit."""


@dataclass(eq=False)
class Context:
    """A function and its file. ``dialect``: '' if unknown. ``kernel``: whether it is decorated as a kernel."""

    module: Module
    scope: Scope
    project: Project
    checks: Checks
    dialect: str = ""
    kernel: bool = False
    interface: Interface | None = None
    findings: list[Finding] = field(default_factory=list)
    around: tuple[ast.AST, ...] = ()  # the functions of kernel code that this one is defined in
    loop_body: str = ""  # fori_loop or while_loop, whose body the function is
    counters: list[str] = field(default_factory=list)  # of the loops on the device that are being looked at
    ordered: int = 0  # how many nl.no_reorder() are
    language: LanguageVersion = field(default_factory=options.language)  # the NKI version that holds
    loop_test: ast.expr | None = None  # the test of the innermost `while` that is being looked at
    testing: bool = False  # whether the test of an if, while or assert is being looked at

    @property
    def modern(self) -> bool:
        """Return whether the function certainly belongs to the modern dialect."""
        return self.dialect == "modern"

    @property
    def legacy(self) -> bool:
        """Return whether the function certainly belongs to the legacy dialect."""
        return self.dialect == "legacy"

    @property
    def function(self) -> str:
        """The name of the function."""
        return getattr(self.scope.node, "name", "")

    def tell(self, event: str, *args: Any) -> None:
        """Run the checks that are subscribed to an event."""
        for check in self.checks.get(event, ()):
            check(self, *args)

    def find(
        self, rule_id: str, node: ast.AST, message: str, remedy: str = "", severity: str = "", **facts: Fact
    ) -> None:
        """Note a broken rule at a node; ``severity`` is one below the rule's, where the case is less grave."""
        self.find_at(rule_id, getattr(node, "lineno", 0), self.module.column(node), message, remedy, severity, **facts)

    def find_at(
        self, rule_id: str, line: int, column: int, message: str, remedy: str = "", severity: str = "", **facts: Fact
    ) -> None:
        """Add a finding at a line and column."""
        place = (self.module.path, line, self.function)
        if not any((each.rule, each.line, each.column) == (rule_id, line, column) for each in self.findings):
            about = {"remedy": remedy, "severity": severity, "column": column, "facts": facts}
            self.findings.append(Finding.of(rule_id, message, place, **about))  # type: ignore[arg-type]

    def inside(self, scope: Scope) -> Context:
        """Return the context of a function defined inside this one."""
        return replace(
            self,
            scope=scope,
            kernel=False,
            around=(*self.around, self.scope.node),
            loop_body="",
            counters=[],
            ordered=0,
        )

    def at(self, found: Found) -> Context:
        """Return the context of a definition elsewhere."""
        return replace(self, module=found.module, scope=found.scope)

    def silent(self, scope: Scope) -> Context:
        """Return a context without checks."""
        return replace(self, scope=scope, checks={}, interface=None, counters=[])

    def is_api(self, dotted: str) -> bool:
        """Return whether a dotted name belongs to NKI."""
        return dotted == "nki" or dotted.startswith(("nki.", f"{LEGACY}.nki"))

    def is_rebound(self, owner: Scope, name: str) -> bool:
        """Return whether a function declares the name global or nonlocal, so that the assigned value is not certain."""
        return name in owner.declared

    def resolve(self, node: ast.expr) -> Found | None:
        """Return the definition of the project that an expression names."""
        return self.project.resolve(self.module, self.scope, node)
