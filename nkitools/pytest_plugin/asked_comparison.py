"""The comparison that a call of `run_kernel` asks for: its reference, its tolerance, the arguments that may change."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.precision.tied_choices import TiedChoices
    from nkitools.record.expected_outputs import Reference

# What run_kernel takes for simulation alone: a device judges no rules and shows no values on the way.
OF_SIMULATION = ("nki_version", "rules", "sum_order", "watch")
_OF_LAUNCHES = ("grid", "chip", "ranks", *OF_SIMULATION)
_PASS_ONE = "Pass reference=, what the outputs should be, or a function of the arguments that returns it."


@dataclass(frozen=True, kw_only=True)
class AskedComparison:
    """The arguments of a call that ask for a comparison. ``kwargs``: the call's other keywords.

    ``stated``: the given keywords among ``rtol``, ``atol``, ``equal_nan`` and ``tolerance``.
    """

    kernel: Kernel
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    reference: Argument
    stated: Mapping[str, Any]
    expect: Mapping[str, Callable[..., Any]] | None
    mutates: tuple[str, ...]
    _left: dict[str, Any] = field(default_factory=dict)  # the arguments, as the reference has left its copies

    def of_the_kernel(self) -> dict[str, Any]:
        """Return the keywords for the kernel: without a reference also ``rtol`` and its kin, if they are its
        parameters.

        ValueError if they are not, as nothing would be compared.
        """
        if self.reference is not None:
            return self.kwargs
        for name in self.stated:
            if not has_parameter(self.kernel, name):
                _refuse(f"{name}= {self._without_a_reference(name)}. {_PASS_ONE}")
        return {**self.kwargs, **self.stated}

    def _without_a_reference(self, name: str) -> str:
        if self.expect is None:
            return f"has nothing to be used for: there is no reference=, and the kernel has no parameter {name}"
        return "is of outputs, and there is no reference= of them: what expect= names is compared in float64"

    def must_fit(self) -> None:
        """Raise ValueError for arguments that would be ignored or compared with nothing."""
        tolerance = self.stated.get("tolerance", "auto") if self.reference is not None else "auto"
        if tolerance != "auto":
            raise ValueError(f"tolerance: it may be 'auto', it is {tolerance!r}")
        if self.function is not None:
            _must_be_another(self.kernel, self.function)
        if self.expect is not None and not self.expect:
            _refuse("expect={} names no tensor: nothing is compared. Name one, or leave expect= out.")
        if self.mutates:
            self._must_be_changeable()

    def _must_be_changeable(self) -> None:
        """Refuse names in ``mutates`` that the kernel cannot change or that are compared with nothing."""
        from nkitools.targets.changed_arguments import must_be_changeable, must_change_arguments

        must_change_arguments(self.kernel, self.mutates)
        if self.reference is None:
            return
        if self.function is None:
            _refuse(
                f"mutates: the reference is no function, so that nothing says what {' and '.join(self.mutates)} should "
                "hold. Let reference= be a function that changes its own copy of it, and returns the outputs."
            )
        if self.kwargs.get("ranks") is not None:
            _refuse(
                "mutates: of ranks no argument is compared with what a reference has left in its copy. Leave "
                "reference= out, and compare the arguments in the test."
            )
        given = by_parameter(self.kernel, self.args, self._own)
        for name in self.mutates if given else ():
            must_be_changeable(name, given.get(name))

    @cached_property
    def function(self) -> Callable[..., Any] | None:
        """The reference if it is a function; else None."""
        reference: Any = self.reference
        return reference if callable(reference) and not hasattr(reference, "shape") else None

    @property
    def _own(self) -> dict[str, Any]:
        return {name: value for name, value in self.kwargs.items() if name not in _OF_LAUNCHES}

    def expected(self) -> Reference | None:
        """Return the expected outputs and tensors; None if the call names neither. A function gets copies."""
        if self.reference is None and self.expect is None:
            return None
        from nkitools.chip.chosen_chip import resolve_chip
        from nkitools.comparison.rule import stated_rule
        from nkitools.precision.independent_reference import independent_of
        from nkitools.precision.runs import copied
        from nkitools.record.expected_outputs import Reference

        if self.reference is None:
            return Reference(None, expect=self.expect)
        stated = self.stated
        rule = stated_rule(stated.get("rtol"), stated.get("atol"), equal_nan=stated.get("equal_nan", True))
        values = self.reference
        if self.function is not None:
            given, named = copied((self.args, self._own))
            chip, grid = resolve_chip(self.kwargs.get("chip")), self.kwargs.get("grid")
            with independent_of(self.kernel, given, named, chip=chip, grid=grid):
                values = self.function(*given, **named)
            self._left.update(by_parameter(self.kernel, given, named))
        found = copied(values)
        return Reference(found, rule.rtol, rule.atol, rule.equal_nan, function=self.function, expect=self.expect)

    @property
    def has_numbers(self) -> bool:
        """Return True if ``rtol`` or ``atol`` is stated."""
        return self.reference is not None and not {"rtol", "atol"}.isdisjoint(self.stated)

    def ties(self) -> TiedChoices:
        """Return the reference under tied choices."""
        from nkitools.precision.tied_choices import TiedChoices

        return TiedChoices(self.function, self.args, self._own)

    def changed(self) -> dict[str, tuple[Any, Any]]:
        """Return the arguments that the kernel may change, each with the reference's changed copy."""
        now = by_parameter(self.kernel, self.args, self._own)
        return {name: (now[name], self._left[name]) for name in self.mutates if name in self._left}


def _must_be_another(kernel: Kernel, reference: Callable[..., Any]) -> None:
    from nkitools.comparison.form import must_be_another

    must_be_another(kernel, reference)


def _refuse(said: str) -> NoReturn:
    from nkitools.comparison.form import NothingCompared

    raise NothingCompared(said)


def has_parameter(kernel: Kernel, name: str) -> bool:
    """Return True if a kernel takes a keyword of this name, by ``**kwargs`` too."""
    try:
        parameters = inspect.signature(kernel).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def by_parameter(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by parameter name; {} if they do not fit: the call of the kernel then raises."""
    try:
        from nkitools.launch.signatures import named_arguments

        signature = inspect.signature(kernel)
        return named_arguments(signature, signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {}
