"""The kernel of a verdict with its arguments and its reference, in a form that another process can load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from nkitools.facts.case_space import Space
from nkitools.kernel_file import BadRequest, KernelFile, check_call, check_settings, load
from nkitools.kernel_settings import VARIABLE, constants_set, parameters_of, without_settings
from nkitools.sweeps.named_function import NamedFunction, named

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Draw = Callable[[int, Mapping[str, Any]], Arguments]


@dataclass(frozen=True)
class Judged:
    """The reference of a kernel, and the kernel's arguments.

    ``reference``: a function of the arguments, or arrays; None if nothing says what is right. ``draw``: makes the
    arguments of a seed and a case; None if only those that were ``given`` are known.
    ``case_names``: the names of a case that ``draw`` takes. ``kernel``: None if the process does not load its file.
    """

    given: Arguments
    reference: Any
    draw: Draw | None = None
    space: Space | None = None
    case_names: frozenset[str] = frozenset()
    mutates: tuple[str, ...] = ()
    kernel: Any = None


class Subject(Protocol):
    """The kernel of a verdict, from a file or from a process."""

    def candidate(self, stack: ExitStack) -> tuple[Any, Any]:
        """Return the kernel, and the reference if the process can have it; ``stack`` ends with the process."""

    def judged(self, stack: ExitStack) -> Judged:
        """Return the reference and the arguments."""


@dataclass(frozen=True)
class OfFile:
    """A kernel of a file. ``against``: the file and the name of the reference, if they are others.

    That file then says ``inputs``, ``space`` and ``mutates`` too, as far as it has them: an agent writes the kernel
    alone. ``arrays``: a file of arrays in the place of ``inputs``; ``arguments``: all of them by name.
    """

    file: str
    name: str
    against: tuple[str, str] | None = None
    arrays: str | None = None
    arguments: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def candidate(self, stack: ExitStack) -> tuple[Any, Any]:
        """Return the kernel, and the reference if the same file has it."""
        loaded = load(self.file)
        kernel = loaded.kernel(self.name)
        taken = self._judge(loaded).case_names()
        try:
            check_settings(loaded, kernel, self.settings, taken)
        except ValueError as error:
            raise BadRequest(str(error)) from None
        if self.arguments is not None:
            check_call(self.name, kernel, (), dict(self.arguments))
        rest = {name: value for name, value in self.settings.items() if name not in taken}
        stack.enter_context(constants_set(kernel, rest, vars(loaded.module)))
        return kernel, self._reference(loaded)

    def judged(self, stack: ExitStack) -> Judged:
        """Return the reference and the arguments that the file states, or the reference's own file."""
        loaded = self._judge(None)
        draw = loaded.arguments
        names = [each.name for each in parameters_of(draw) if each.kind not in VARIABLE]
        reference = self._reference(loaded)
        if callable(reference):
            reference = without_settings(reference, self.settings)
        given = ((), dict(self.arguments)) if self.arguments is not None else loaded.inputs(self.arrays, self.settings)
        is_drawn = "rng" in names and self.arrays is None and self.arguments is None
        return Judged(
            given,
            reference,
            partial(_drawn_of_file, loaded, self.settings) if is_drawn or loaded.space is not None else None,
            loaded.space if self.arrays is None and self.arguments is None else None,
            frozenset(names),
            tuple(loaded.mutates),
            loaded.kernel(self.name) if self._is_of(loaded) else None,
        )

    def _judge(self, own: KernelFile | None) -> KernelFile:
        """Return the file that states the reference and the arguments."""
        if self.against is None or Path(self.against[0]).resolve() == Path(self.file).resolve():
            return own or load(self.file)
        return load(self.against[0])

    def _is_of(self, loaded: KernelFile) -> bool:
        """Return True if the file ``loaded`` is the kernel's own."""
        return loaded.path.resolve() == Path(self.file).resolve()

    def _reference(self, loaded: KernelFile) -> Any:
        """Return the reference if the file ``loaded`` has it, else None."""
        if self.against is None:
            return loaded.reference
        is_there = Path(self.against[0]).resolve() == loaded.path.resolve()
        return loaded.function(self.against[1]) if is_there else None


def _drawn_of_file(loaded: KernelFile, settings: Mapping[str, Any], seed: int, case: Mapping[str, Any]) -> Arguments:
    return loaded.inputs(None, {**settings, **case, "rng": np.random.default_rng(seed)})


@dataclass(frozen=True)
class OfProcess:
    """A kernel of this process. ``inputs``: makes arguments of a random generator and the values of a case."""

    kernel: Any
    given: Arguments
    reference: Any
    inputs: Callable[..., Any] | None = None
    space: Space | None = None
    mutates: tuple[str, ...] = ()

    def candidate(self, _: ExitStack) -> tuple[Any, Any]:
        """Return the kernel and the reference."""
        return self.kernel, self.reference

    def judged(self, _: ExitStack) -> Judged:
        """Return the reference and the arguments."""
        names = [each.name for each in parameters_of(self.inputs)]
        draw = None if self.inputs is None else partial(_drawn, self.inputs)
        return Judged(self.given, self.reference, draw, self.space, frozenset(names), self.mutates, self.kernel)

    def is_named(self) -> bool:
        """Return whether a process that is no fork of this one can import the kernel, its reference and its inputs."""
        try:
            self.__reduce__()
        except ValueError:
            return False
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes the same: by names. ValueError for a function that has none."""
        functions = (self.kernel, self.reference, self.inputs)
        places = [named(each) if callable(each) else each for each in functions]
        return _of_names, (places, self.given, self.space, self.mutates)


def _of_names(places: list[Any], given: Arguments, space: Space | None, mutates: tuple[str, ...]) -> OfProcess:
    kernel, reference, inputs = (each.found() if isinstance(each, NamedFunction) else each for each in places)
    return OfProcess(kernel, given, reference, inputs, space, mutates)


def _drawn(inputs: Callable[..., Any], seed: int, case: Mapping[str, Any]) -> Arguments:
    """Return the arguments that a function makes of a random generator, its first parameter, and of a case."""
    parameters = [each.name for each in parameters_of(inputs)]
    own = {name: value for name, value in case.items() if name in parameters}
    is_drawn = bool(parameters) and parameters[0] not in case
    made = inputs(*[np.random.default_rng(seed)] * is_drawn, **own)
    if isinstance(made, Mapping):
        return (), dict(made)
    return (tuple(made) if isinstance(made, (tuple, list)) else (made,)), {}
