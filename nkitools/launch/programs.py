"""Run the programs of a launch: one core a program, one after the other."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np

from nkitools.chip.core import CORE, Core, SharedHbm
from nkitools.chip.generations import generation_of, resolve_chip
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.launch import settings
from nkitools.launch.arguments import Arguments
from nkitools.record import collect
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter, StopRun
from nkitools.record.run import Run
from nkitools.record.sites import is_internal
from nkitools.rules.finding import REPORTER, refuse, report

_MAX_PLANS = 50_000
_plans: dict[tuple[str, str], dict[tuple[Any, ...], Any]] = {}


@dataclass(frozen=True)
class Launch:
    """One kernel call: what to run, on what, how.

    ``wrap`` turns an argument's tensor into what the dialect hands to kernels; ``undefined_travels``: see `Core`; ``echo`` gets the
    text of device prints as they come; ``finish`` looks at the result before it leaves.
    """

    function: Callable[..., Any]
    name: str
    grid: tuple[int, ...] = ()
    chip: str | None = None
    rules: str | None = None
    wrap: Callable[[NkiTensor], Any] | None = None
    undefined_travels: bool = False
    inputs_read_only: bool = False
    echo: Callable[[str], None] | None = None
    keywords: dict[str, Any] = field(default_factory=dict)


def _plans_of(generation: str, level: str) -> dict[tuple[Any, ...], Any]:
    """The kept plans: a memo only, so it may be emptied at any time."""
    plans = _plans.setdefault((generation, level), {})
    if len(plans) > _MAX_PLANS:
        plans.clear()
    return plans


def run_launch(launch: Launch, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run:
    """Run all programs of a launch; the run it returns was announced when it began."""
    chip = resolve_chip(launch.chip)
    generation = generation_of(chip)
    level = settings.resolve_level(launch.rules)
    record = Record()
    record.echo = launch.echo
    run = Run(launch.name, "builtin", chip, prints=record.prints, findings=record.findings, record=record)
    collect.announce(run)
    reporter = REPORTER.set(Reporter(level, record))
    shared = SharedHbm()
    programs = list(itertools.product(*(range(size) for size in launch.grid)))
    try:
        settings.check_environment()
        memory = MemoryRegion.shared_hbm if launch.grid else MemoryRegion.private_hbm
        arguments = Arguments(memory, launch.wrap)
        entered, named = _enter(launch.function, arguments, args, kwargs)
        for storage in arguments.storages:
            record.allocated(storage)
        results = []
        plans = _plans_of(generation.name, level)
        for program in programs:
            core = Core(
                generation,
                record,
                plans,
                launch.grid,
                program,
                shared,
                undefined_travels=launch.undefined_travels,
                input_ids=frozenset(storage.id for storage in arguments.storages),
                inputs_read_only=launch.inputs_read_only,
            )
            record.begin_program(program)
            results.append(_run_program(core, launch.function, entered, named))
        run.outputs = _collect_results(arguments, results[0], record)
    except StopRun:
        pass
    except BaseException as error:
        run.error = error
        error.__traceback__ = _authors_part(error.__traceback__)
        raise
    finally:
        REPORTER.reset(reporter)
    return run


def _enter(
    function: Callable[..., Any], arguments: Arguments, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as tensors, each named by its parameter."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", "kernel")
        signature = inspect.signature(function)
        refuse("NK609", f"{name}: {error}", remedy=f"The kernel's call form is {name}{signature}.")
    kinds = inspect.signature(function).parameters
    for name, value in bound.arguments.items():
        if kinds[name].kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(arguments.enter(f"{name}[{i}]", item) for i, item in enumerate(value))
        elif kinds[name].kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: arguments.enter(key, item) for key, item in value.items()}
        else:
            bound.arguments[name] = arguments.enter(name, value)
    return bound.args, bound.kwargs


def _run_program(
    core: Core, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    token = CORE.set(core)
    try:
        # Not-a-number and overflow are results here, not mistakes of the host.
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)
    finally:
        CORE.reset(token)


def _collect_results(arguments: Arguments, result: Any, record: Record) -> Any:
    """Program 0's result in kind, after a look at whether all of it was written (NK403)."""
    for tensor in _tensors(result):
        if tensor.buffer not in (MemoryRegion.shared_hbm, MemoryRegion.private_hbm):
            refuse(
                "NK201",
                f"the kernel returns {describe(tensor)}; results must be in HBM",
                about=(tensor,),
                remedy="Copy it into an nl.ndarray(..., buffer=nl.shared_hbm) with nisa.dma_copy and return that.",
            )
        _check_written(tensor, record)
    arguments.finish()
    return arguments.leave(result)


def _tensors(result: Any) -> list[NkiTensor]:
    result = getattr(result, "tensor", result)
    if isinstance(result, NkiTensor):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in _tensors(item)]
    return []


def _check_written(tensor: NkiTensor, record: Record) -> None:
    missing = tensor.storage.unwritten(tensor.layout, tensor.byte_offset)
    if missing is None:
        return
    flat = np.flatnonzero(missing)
    tensor.storage.poison_unwritten()
    contiguous = flat[-1] - flat[0] + 1 == flat.size
    span = f"elements {flat[0]}..{flat[-1]} ({flat.size})" if contiguous else (
        f"{flat.size} of {missing.size} elements, within elements {flat[0]}..{flat[-1]},"
    )
    site = record.sites[tensor.storage.site]
    report(
        "NK403",
        f"output {describe(tensor)}: {span} never written; it was allocated at {site.file}:{site.line}",
        about=(tensor,),
    )


def _authors_part(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without nkitools' own frames."""
    frames = []
    while traceback is not None:
        if not is_internal(traceback.tb_frame.f_code.co_filename):
            frames.append(traceback)
        traceback = traceback.tb_next
    rebuilt: TracebackType | None = None
    for each in reversed(frames):
        rebuilt = TracebackType(rebuilt, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return rebuilt


def storage_of(value: Any) -> Storage | None:
    """The storage behind a dialect's tensor."""
    tensor = getattr(value, "tensor", value)
    return tensor.storage if isinstance(tensor, NkiTensor) else None
