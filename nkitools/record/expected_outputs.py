"""The outputs that a kernel should have computed, kept beside the run for reports of the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nkitools.comparison.rule import Rule

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument


@dataclass(frozen=True, eq=False)
class Reference:
    """The expected outputs, in the containers that the kernel returns, and their allowed difference.

    If ``rtol`` or ``atol`` is given, an element agrees within ``atol + rtol * abs(expected)``, as in NumPy and torch.
    Without both the dtype of the output decides, see `nkitools.comparison.dtype_table`.
    """

    values: Argument
    rtol: float | None = None  # relative; 0 if only atol is given
    atol: float | None = None  # absolute; 0 if only rtol is given
    equal_nan: bool = True  # whether a NaN agrees with a NaN
    function: Callable[..., Any] | None = None  # returns the expected outputs for any arguments
    expect: Mapping[str, Callable[..., Any]] | None = None  # the same of tensors in the kernel, by their names
    rules: tuple[Rule, ...] = ()  # by which the outputs were compared, once they were

    @property
    def rule(self) -> Rule:
        """Return the rule of ``rtol``, ``atol`` and ``equal_nan``, by which an output agrees."""
        return Rule(self.rtol, self.atol, self.equal_nan)

    def rule_of(self, place: int) -> Rule:
        """Return the rule by which the output number ``place`` was compared; `rule` if it was not compared."""
        return replace(self.rules[place], equal_nan=self.equal_nan) if place < len(self.rules) else self.rule

    @property
    def is_stated(self) -> bool:
        """Return True if ``rtol`` or ``atol`` is given."""
        return self.rule.is_stated
