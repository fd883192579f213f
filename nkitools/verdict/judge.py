"""The reference of a verdict in its own process: the arguments, and the right results for them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.comparison.form import RETURNS_NONE
from nkitools.facts.case_space import drawn_points
from nkitools.kernel_file import BadRequest
from nkitools.precision.independent_reference import independent_of
from nkitools.precision.runs import arrays_in, copied
from nkitools.sweeps.checked_call import LAUNCH
from nkitools.targets.imports import stand_in
from nkitools.verdict.cases import Given
from nkitools.verdict.outside import outside_of
from nkitools.verdict.subject import Subject


@dataclass(frozen=True)
class Known:
    """The facts about a reference.

    ``is_function``: whether it computes the right results for other arguments. ``is_drawn``: whether a seed draws other
    arguments. ``has_space``: whether its author names other shapes. ``numbers``: the whole numbers in its text and its
    constants.
    """

    given: Given
    is_function: bool
    is_drawn: bool
    has_space: bool
    mutates: tuple[str, ...]
    numbers: frozenset[int]


@dataclass
class Judge:
    """The reference, loaded."""

    subject: Subject

    def __post_init__(self) -> None:
        """Load the reference."""
        stack = ExitStack()
        stack.enter_context(stand_in("always"))
        self._judged = self.subject.judged(stack)
        if self._judged.reference is None:
            raise BadRequest("nothing says what is right: give the file a `reference`, or name one")

    def known(self) -> Known:
        """Return the facts about the reference."""
        own = self._judged
        is_drawn = own.draw is not None and (own.space is None or "rng" in own.case_names)
        given = Given(*own.given, said="the given arguments")
        numbers = outside_of(self._function).numbers
        return Known(given, self._function is not None, is_drawn, own.space is not None, own.mutates, numbers)

    @property
    def _function(self) -> Any:
        reference = self._judged.reference
        return reference if callable(reference) and not hasattr(reference, "shape") else None

    def drawn(self, seed: int) -> Given:
        """Return the arguments that the author's `inputs` draws with a seed."""
        assert self._judged.draw is not None
        return Given(*self._judged.draw(seed, {}), said=f"inputs(rng) with seed {seed}")

    def cases(self, sample: int, seed: int, parameters: Sequence[str]) -> list[Given]:
        """Return cases of the author's space, ``sample`` at most, drawn with ``seed``."""
        own = self._judged
        assert own.draw is not None
        assert own.space is not None
        try:
            points = drawn_points(own.space, sample, seed)
        except (OSError, ValueError) as error:
            raise BadRequest(f"its space has no cases: {error}") from None
        return [self._case(point, seed, parameters) for point in points]

    def _case(self, point: Mapping[str, Any], seed: int, parameters: Sequence[str]) -> Given:
        own = self._judged
        assert own.draw is not None
        args, kwargs = own.draw(seed, point)
        bound = {*parameters[: len(args)], *kwargs, *own.case_names}
        rest = {name: value for name, value in point.items() if name not in bound}
        launch = {name: rest.pop(name) for name in LAUNCH if name in rest}
        keywords = {name: value for name, value in rest.items() if name in parameters}
        constants = {name: value for name, value in rest.items() if name not in parameters}
        said = ", ".join(f"{name}={value!r}" for name, value in point.items())
        return Given(args, {**kwargs, **keywords}, launch, constants, said)

    def right(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        changed: Sequence[str],
        mutates: Sequence[str],
        names: Sequence[str],
    ) -> Any:
        """Return the right results: those of the reference, then the arguments ``changed`` as it leaves its copies.

        If it returns nothing: all arguments that it ``mutates``. ``names``: the parameters of the kernel.
        """
        function = self._function
        if function is None:
            return self._judged.reference
        args, kwargs = copied((args, kwargs))
        with np.errstate(all="ignore"), independent_of(self._judged.kernel, args, kwargs):
            found = _called(function, args, kwargs)
        named = {**dict(zip(names, args, strict=False)), **kwargs}
        left = [named[name] for name in (changed if found is not None else mutates) if name in named]
        if found is None and not left:
            raise TypeError(RETURNS_NONE)
        return found if not left else [*(array for _, (_, array) in arrays_in("output", found)), *left]


def _called(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a reference with the kernel's arguments; by position if it has other names for them."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        parameters = inspect.signature(function).parameters
        known = {name: value for name, value in kwargs.items() if name in parameters}
        rest = [value for name, value in kwargs.items() if name not in parameters]
        return function(*args, *rest[: len(parameters) - len(args) - len(known)], **known)
    except ValueError:  # Python knows no signature of it
        pass
    return function(*args, **kwargs)
