"""What the checks of one function share: where it stands, who listens, and what was found."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nkitools.lint.abstract_values import Value
from nkitools.lint.module import Module
from nkitools.lint.project import Found, Project
from nkitools.lint.return_types import Arguments
from nkitools.lint.scope import LEGACY, Definition, Scope
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding

Check = Callable[..., None]
Checks = Mapping[str, tuple[Check, ...]]


class Interface(Protocol):
    """What is known of the names of NKI: nothing, or what the dialects of nkitools tell (`nkitools.lint.interface`)."""

    def wrong_call(self, name: str, node: ast.Call) -> tuple[str, str, str] | None:
        """Rule, message and remedy where the arguments do not fit the signature of ``name``."""

    def missing(self, name: str) -> tuple[str, str, str] | None:
        """Rule, message and remedy where NKI has no such name."""

    def form(self, name: str) -> str:
        """How ``name`` is called, as a sentence."""

    def bound(self, name: str, given: Arguments) -> dict[str, Value]:
        """The arguments of a call by the parameters that they are for; none where they do not fit."""


@dataclass(eq=False)
class Context:
    """One function and its file. ``dialect``: ``modern``, ``legacy``, or '' where nothing shows it. ``kernel``: it is
    decorated as one.
    """

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
    wide: dict[ast.AST, str] = field(default_factory=dict)  # calls that make tiles of too many partitions, and which
    testing: bool = False  # whether the test of an if, while or assert is being looked at

    @property
    def modern(self) -> bool:
        """Whether the function is of the modern dialect for sure."""
        return self.dialect == "modern"

    @property
    def legacy(self) -> bool:
        """Whether it is of the legacy one."""
        return self.dialect == "legacy"

    @property
    def function(self) -> str:
        """The name of the function."""
        return getattr(self.scope.node, "name", "")

    def tell(self, event: str, *args: Any) -> None:
        """Let the checks that listen to an event look at it."""
        for check in self.checks.get(event, ()):
            check(self, *args)

    def find(self, rule_id: str, node: ast.AST, message: str, remedy: str = "") -> None:
        """Note a broken rule at a node."""
        self.find_at(rule_id, getattr(node, "lineno", 0), self.module.column(node), message, remedy)

    def find_at(self, rule_id: str, line: int, column: int, message: str, remedy: str = "") -> None:
        """The same at a line and column."""
        rule = RULES[rule_id]
        found = Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=message,
            file=self.module.path,
            line=line,
            remedy=remedy or rule.remedy,
            column=column,
            function=self.function,
        )
        if not any((each.rule, each.line, each.column) == (rule.id, line, column) for each in self.findings):
            self.findings.append(found)

    def inside(self, scope: Scope) -> Context:
        """The context of a function defined in this one."""
        return replace(
            self,
            scope=scope,
            kernel=False,
            around=(*self.around, self.scope.node),
            loop_body="",
            counters=[],
            ordered=0,
            wide={},
        )

    def at(self, found: Found) -> Context:
        """The same for a definition elsewhere."""
        return replace(self, module=found.module, scope=found.scope)

    def silent(self, scope: Scope) -> Context:
        """A context in which nobody listens."""
        return replace(self, scope=scope, checks={}, interface=None, counters=[])

    def is_api(self, dotted: str) -> bool:
        """Whether a dotted name is one of NKI's."""
        return dotted == "nki" or dotted.startswith(("nki.", f"{LEGACY}.nki"))

    def is_rebound(self, owner: Scope, name: str) -> bool:
        """Whether some function declares a name global or nonlocal, so that its value is not that of its assignment."""
        return any(name in scope.outside for scope in owner.all())

    def resolve(self, node: ast.expr) -> Found | None:
        """The definition of the project that an expression names."""
        return self.project.resolve(self.module, self.scope, node)

    def definition_of(self, node: ast.expr) -> Definition | None:
        """The same without its place."""
        found = self.resolve(node)
        return None if found is None else found.node
