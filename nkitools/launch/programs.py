"""Run the programs of a launch: one core a program, one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.core import CORE, Core, SharedHbm
from nkitools.chip.generations import Generation, generation_of, resolve_chip
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.launch import settings
from nkitools.launch.arguments import Arguments
from nkitools.launch.read_only import check_write
from nkitools.launch.results import check_results
from nkitools.launch.signatures import bind, signature_of
from nkitools.launch.tracebacks import hands_over
from nkitools.record import collect
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.run import Run
from nkitools.rules.finding import REPORTER, StopRun, refuse
from nkitools.rules.finding import Reporter as Report

_MAX_PLANS = 50_000
_plans: dict[tuple[str, str], dict[tuple[Any, ...], Any]] = {}


@dataclass(frozen=True)
class Launch:
    """One kernel call: what to run, on what, how.

    ``wrap`` turns an argument's tensor into what the dialect hands to kernels; ``undefined_travels``: see `Core`;
    ``echo`` gets the text of device prints as they come; ``reported`` stands between the rules and the reporter, where
    a dialect has more to say.
    """

    function: Callable[..., Any]
    name: str
    grid: tuple[int, ...] = ()
    chip: str | None = None
    rules: str | None = None
    wrap: Callable[[NkiTensor], Any] | None = None
    undefined_travels: bool = False
    echo: Callable[[str], None] | None = None
    reported: Callable[[Report], Report] | None = None


def run_launch(launch: Launch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Run all programs of a launch; the run it returns was announced when it began.

    Exceptions of the kernel pass through. A run that collects its findings and cannot go on ends with outputs None.
    """
    if CORE.get() is not None:
        refuse("NK610", f"kernel {launch.name} is launched inside a running kernel")
    chip = resolve_chip(launch.chip)
    level = settings.resolve_level(launch.rules)
    record = Record()
    record.echo = launch.echo
    run = Run(launch.name, "builtin", chip, prints=record.prints, findings=record.findings, record=record)
    collect.announce(run)
    reporter = Reporter(level, record)
    token = REPORTER.set(reporter if launch.reported is None else launch.reported(reporter))
    try:
        settings.check_environment()
        run.outputs = _Programs(launch, generation_of(chip), record, reporter).run(args, kwargs)
    except StopRun:
        pass
    except BaseException as error:
        run.error = error
        reporter.add(error)
        raise
    finally:
        REPORTER.reset(token)
    return run


class _Programs:
    """The programs of one launch."""

    def __init__(self, launch: Launch, generation: Generation, record: Record, reporter: Reporter) -> None:
        self.launch = launch
        self.generation = generation
        self.record = record
        self.reporter = reporter
        # Programs of an LNC launch share their inputs (simulator guide, "How It Works").
        memory = MemoryRegion.shared_hbm if launch.grid else MemoryRegion.private_hbm
        self.arguments = Arguments(memory, launch.wrap)
        self.shared = SharedHbm()

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run them all; program 0's result in kind is that of the launch."""
        entered, named = _enter(self.launch, self.arguments, args, kwargs)
        for storage in self.arguments.storages:
            self.record.allocated(storage)
        results = []
        for program in itertools.product(*(range(size) for size in self.launch.grid)):
            self.record.begin_program(program)
            results.append(self._run_one(self._core(program), entered, named))
        check_results(results[0], self.record, self.reporter)
        self.arguments.finish()
        return self.arguments.leave(results[0])

    def _core(self, program: tuple[int, ...]) -> Core:
        return Core(
            self.generation,
            self.record,
            _plans_of(self.generation.name, self.reporter.level),
            self.launch.grid,
            program,
            self.shared,
            undefined_travels=self.launch.undefined_travels,
            input_ids=frozenset(storage.id for storage in self.arguments.storages),
        )

    @hands_over
    def _run_one(self, core: Core, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        token = CORE.set(core)
        try:
            # Not-a-number and overflow are results here, not mistakes of the host.
            with np.errstate(all="ignore"):
                return self.launch.function(*args, **kwargs)
        except ValueError as error:
            check_write(error, self.arguments, self.reporter)
            raise
        finally:
            CORE.reset(token)


def _plans_of(generation: str, level: str) -> dict[tuple[Any, ...], Any]:
    """The kept plans: a memo only, so it may be emptied at any time."""
    plans = _plans.setdefault((generation, level), {})
    if len(plans) > _MAX_PLANS:
        plans.clear()
    return plans


def _enter(
    launch: Launch, arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as tensors, each named by its parameter."""
    signature = signature_of(launch.function)
    bound = bind(launch.name, signature, args, kwargs)
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is kind.VAR_KEYWORD:
            bound.arguments[name] = {key: arguments.enter(key, item) for key, item in value.items()}
        else:
            bound.arguments[name] = arguments.enter(name, value)
    return bound.args, bound.kwargs
