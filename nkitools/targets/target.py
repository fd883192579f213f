"""What a target is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from nkitools.record.run import Run


class Availability(NamedTuple):
    """Whether a target can run here; if not, ``reason`` says what was looked for and not found."""

    ok: bool
    reason: str


class Target(ABC):
    """One place where a kernel can run."""

    name: str

    @abstractmethod
    def available(self) -> Availability:
        """Whether this machine has it. Cheap: looked for once a process."""

    @abstractmethod
    def run(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Run:
        """Run ``kernel`` on arrays and say what happened.

        Raises ``NotModelled`` (NK607) for a kernel or an argument that this version cannot take to this target.
        """


def refuse(kernel: Any, message: str, remedy: str) -> NoReturn:
    """Raise ``NotModelled`` at the definition of ``kernel``: no line of it has run yet that could be named."""
    from nkitools.rules.catalogue import RULES
    from nkitools.rules.finding import Finding, NotModelled

    rule = RULES["NK607"]
    code = getattr(_function(kernel), "__code__", None)
    raise NotModelled(
        Finding(
            rule=rule.id,
            slug=rule.slug,
            severity=rule.severity,
            message=message,
            file=code.co_filename if code else "<unknown>",
            line=code.co_firstlineno if code else 0,
            remedy=remedy,
            function=kernel_name(kernel),
        )
    )


def kernel_name(kernel: Any) -> str:
    """The name of the author's function."""
    return str(getattr(_function(kernel), "__name__", type(kernel).__name__))


def _function(kernel: Any) -> Any:
    while hasattr(kernel, "__wrapped__"):
        kernel = kernel.__wrapped__
    return kernel
