"""Tries block sizes of a kernel: which fit into vector memory, and which the compiler accepts. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, overload

from nkitools.facts.case_space import Space, points_of
from nkitools.pallas.calls import Call, compiling_for, pallas_calls
from nkitools.pallas.check_modes import Plan
from nkitools.pallas.chips import CHIPS, MIB, Chip, chosen
from nkitools.pallas.compiled import Compiled, compile_calls, prepared
from nkitools.pallas.imports import jax_module, without_jax_warnings
from nkitools.pallas.jax_types import Argument
from nkitools.pallas.time_estimate import KernelEstimate, estimated
from nkitools.rules.finding import Finding

Block = TypeVar("Block")  # a choice, in the form that its function takes


@dataclass(frozen=True, kw_only=True)
class Attempt(Generic[Block]):
    """One block of a sweep on one chip: whether it fits and compiles, and its time. Sizes are in bytes."""

    block: Block
    chip: str
    vmem: int | None
    """The vector memory of the Pallas call that takes the most: each block once per buffer, and the scratch. None if
    the function refuses the block.
    """
    vmem_limit: int | None
    """The vector memory that the compiler gives that call. None if the function refuses the block."""
    compiled: Compiled | None
    """The compiler's answers to the Pallas calls. None if the function refuses the block."""
    findings: tuple[Finding, ...] = ()
    refused: str = ""
    """The ``ValueError`` by which the function refuses the block; '' if it does not."""
    estimates: tuple[KernelEstimate, ...] = ()
    """The estimated time of each different Pallas call; empty without ``estimates=True``, and unless the block is
    accepted.
    """

    @property
    def estimate_us(self) -> float | None:
        """Return the sum of the estimated times of the different Pallas calls in microseconds.

        A call that is made twice counts once. None without estimates, or if one call has none.
        """
        times = [each.latency_us for each in self.estimates]
        known = [time for time in times if time is not None]
        return sum(known) if known and len(known) == len(times) else None

    @property
    def fits(self) -> bool | None:
        """Return True if blocks and scratch of each Pallas call are within its limit of vector memory, else False.

        None if the function refuses the block.
        """
        if self.compiled is None:
            return None
        return all(kernel.vmem_bytes <= kernel.vmem_limit for kernel in self.compiled.kernels)

    @property
    def accepted(self) -> bool | None:
        """Return True if the compiler accepts the block.

        False if the function, a rule, JAX's lowering or the compiler refuses it. None if nothing refuses it, and there
        is no compiler or it took too long.
        """
        if self.compiled is None or any(finding.severity == "error" for finding in self.findings):
            return False
        return self.compiled.accepted

    @property
    def reason(self) -> str:
        """Return the function's ``ValueError`` as text, else rule and message of each finding; '' without both."""
        return self.refused or "; ".join(f"{finding.rule} {finding.message}" for finding in self.findings)

    def verdict(self) -> str:
        """Return the answer in a few words, the first of these that holds:

        - "refused": the function refuses the block;
        - a rule such as "PL103": the first one that the block breaks with an error;
        - "fits" or "too large": the compiler gave no answer, see ``fits``;
        - "about 3 us": the block has an estimate, see ``estimate_us``;
        - "compiles" or "not compiled": see ``accepted``.
        """
        if self.compiled is None:
            return "refused"
        errors = [finding.rule for finding in self.findings if finding.severity == "error"]
        if errors:
            return errors[0]
        if self.accepted is None:
            return "fits" if self.fits else "too large"
        if self.estimate_us is not None:
            return f"about {self.estimate_us:.4g} us"
        return "compiles" if self.accepted else "not compiled"


class Sweep(Sequence[Attempt[Block]]):
    """A sequence of the attempts of a sweep: those of the first block on each chip, then those of the next block.

    ``str()`` of it is a table of blocks and chips, with the reasons and differences below.
    """

    def __init__(self, attempts: Iterable[Attempt[Block]]) -> None:
        self._attempts = tuple(attempts)

    @overload
    def __getitem__(self, index: int) -> Attempt[Block]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Attempt[Block], ...]: ...
    def __getitem__(self, index: int | slice) -> Attempt[Block] | tuple[Attempt[Block], ...]:
        return self._attempts[index]

    def __len__(self) -> int:
        return len(self._attempts)

    def accepted(self, chip: str) -> list[Block]:
        """Return the blocks that are accepted on ``chip``, in the order in which they were given.

        The list is empty for a chip that the sweep does not have.
        """
        return [each.block for each in self if each.chip == chip and each.accepted]

    def ranked(self, chip: str) -> list[Block]:
        """Return the blocks that have an estimate on ``chip``, the fastest first; equally fast ones as they were given.

        The list is empty without ``estimates=True``, and for a chip that the sweep does not have.
        """
        return [each.block for each in self._fastest_first(chip)]

    def _fastest_first(self, chip: str) -> list[Attempt[Block]]:
        known = [each for each in self if each.chip == chip and each.estimate_us is not None]
        return sorted(known, key=lambda each: each.estimate_us or 0.0)

    def differences(self, chip: str) -> list[str]:
        """Return a sentence for each block of ``ranked(chip)`` but the first: its time as a multiple of that of the
        first, another bound if it has one, and compute and HBM traffic (of a single Pallas call also MXU use and
        spills) if they differ by more than 5 %.
        """
        ranked = self._fastest_first(chip)
        return [
            f"{each.block}: {what_differs(each.estimates, ranked[0].estimates, str(ranked[0].block))}"
            for each in ranked[1:]
        ]

    def __str__(self) -> str:
        chips = list(dict.fromkeys(each.chip for each in self))
        notes: list[str] = []
        table = [["block", "VMEM", *(self._heading(chip) for chip in chips)]]
        for start in range(0, len(self), max(len(chips), 1)):
            row = self[start : start + len(chips)]
            table.append([str(row[0].block), _sizes(row), *(_noted(each, notes) for each in row)])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table]
        why = [f"{chip}: {line}" for chip in chips for line in self.differences(chip)]
        return "\n".join([*(line.rstrip() for line in lines), *notes, *why, *self._without_compiler()])

    def _heading(self, chip: str) -> str:
        limits = {each.vmem_limit for each in self if each.chip == chip and each.vmem_limit is not None}
        return f"{chip} ({_mib(limits.pop())})" if len(limits) == 1 else chip

    def _without_compiler(self) -> Iterator[str]:
        reasons = {each.compiled.left_out for each in self if each.compiled and each.compiled.left_out}
        yield from (f"The compiler was not asked: {reason}." for reason in sorted(reasons))


def sweep(
    make_fn: Callable[[Block], Callable[..., Any]],
    /,
    *args: Argument,
    blocks: Iterable[Block] | Space,
    chips: str | Sequence[str] = ("v5e", "v6e", "tpu7x"),
    timeout: float = 120.0,
    estimates: bool = False,
) -> Sweep[Block]:
    """Return, for every block on every chip, whether ``make_fn(block)(*args)`` fits and is accepted by the compiler.

    Nothing is run.

    - ``make_fn`` takes one of ``blocks`` and returns the JAX function with Pallas calls to try.
    - ``args``: the function's arrays; only their shapes and dtypes count, so ``jax.ShapeDtypeStruct`` will do.
    - ``blocks``: the choices, or a space (a dictionary of lists, or the path of a TOML file with them): ``make_fn``
      then gets a dictionary with one value for each name, for all combinations.
    - ``chips``: names out of v4, v5e, v5p, v6e, tpu7x, in a sequence or a text with commas.
    - ``timeout``: seconds for the compilation of one Pallas call; after it the call has no answer.
    - ``estimates``: whether to estimate the time of each accepted block, as `estimate` does, for ``ranked`` and
      ``differences``.

    The result has one `Attempt` for each block and chip; ``str()`` of it is a table with the reasons below. Without the
    TPU compiler (libtpu) no block is accepted or estimated; rules, JAX's lowering and ``fits`` still answer.

    A ``ValueError`` of ``make_fn`` or of the function counts as its refusal of that block; other exceptions pass
    through unchanged. Raises ``ValueError`` for an unknown chip, for no blocks, for a space without lists of values and
    for a function without Pallas calls, ``OSError`` for a file that cannot be read, ``NotModelled`` (NK607) without
    JAX.
    """
    choices: list[Any] = list(points_of(blocks) if isinstance(blocks, (Mapping, str, os.PathLike)) else blocks)
    if not choices:
        raise ValueError("blocks is empty; give the choices to try")
    plan = Plan(chips=chosen(chips), modes=("lower", "aot"), timeout=timeout)
    attempts = (_attempt(make_fn, block, args, chip, plan) for block in choices for chip in plan.chips)
    with without_jax_warnings():
        return Sweep(_timed(*each, plan.timeout) if estimates else each[0] for each in attempts)


def _timed(attempt: Attempt[Block], calls: Sequence[Call], timeout: float) -> Attempt[Block]:
    """Return an attempt with the estimated time of its calls, if the compiler accepts them all."""
    if not attempt.accepted:
        return attempt
    return replace(attempt, estimates=tuple(estimated(call, CHIPS[attempt.chip], timeout) for call in calls))


def _attempt(
    make_fn: Callable[[Block], Callable[..., Any]], block: Block, args: tuple[Any, ...], chip: Chip, plan: Plan
) -> tuple[Attempt[Block], Sequence[Call]]:
    """Trace, lower and compile one choice for one chip; return the attempt and its Pallas calls."""
    jax = jax_module()
    try:
        fn = make_fn(block)
        with compiling_for(chip):
            traced = jax.make_jaxpr(lambda *arrays: fn(*arrays))(*args)
    except ValueError as refusal:
        said = f"ValueError: {refusal}"
        return Attempt(block=block, chip=chip.name, vmem=None, vmem_limit=None, compiled=None, refused=said), ()
    calls = pallas_calls(traced)
    if not calls:
        raise ValueError(f"the function for block {block} makes no Pallas call, so there is nothing to sweep")
    ready = [prepared(call, chip) for call in calls]
    compiled = compile_calls(ready, chip, plan)
    largest = max(compiled.kernels, key=lambda kernel: kernel.vmem_bytes)
    attempt = Attempt(
        block=block,
        chip=chip.name,
        vmem=largest.vmem_bytes,
        vmem_limit=largest.vmem_limit,
        compiled=compiled,
        findings=tuple(finding for each in ready for finding in each.findings(plan.modes)),
    )
    return attempt, calls


def _noted(attempt: Attempt[Block], notes: list[str]) -> str:
    """Return the cell of an attempt, with the number of its note if it has a reason; equal reasons share a note."""
    if not attempt.reason:
        return attempt.verdict()
    seen = [note.partition("] ")[2] for note in notes]
    if attempt.reason not in seen:
        seen.append(attempt.reason)
        notes.append(f"[{len(seen)}] {attempt.reason}")
    return f"{attempt.verdict()} [{seen.index(attempt.reason) + 1}]"


def _sizes(row: Sequence[Attempt[Block]]) -> str:
    """Return the vector memory of one choice; from the least to the most if chips differ."""
    sizes = sorted({each.vmem for each in row if each.vmem is not None})
    return " to ".join(_mib(size) for size in dict.fromkeys((*sizes[:1], *sizes[-1:]))) or "-"


def _mib(size: int) -> str:
    return f"{size / MIB:.2f} MiB"


_ALIKE = 1.05  # what differs by less is not named


def what_differs(slower: Sequence[KernelEstimate], fastest: Sequence[KernelEstimate], name: str) -> str:
    """Return a sentence: how much longer the Pallas calls of one choice take than those of ``name``, and why."""
    times = [sum(each.latency_us or 0.0 for each in those) for those in (slower, fastest)]
    ratio = times[0] / times[1] if times[1] else 1.0
    found = "; ".join(_differences(slower, fastest))
    return f"{_times(ratio)} the time of {name}" + (f": {found}" if found else "")


def _differences(slower: Sequence[KernelEstimate], fastest: Sequence[KernelEstimate]) -> Iterator[str]:
    computes, moves = (
        [sum(getattr(each, field) or 0.0 for each in those) for those in (slower, fastest)]
        for field in ("compute_us", "memory_us")
    )
    bounds = [" and ".join(sorted({each.bound for each in those})) for those in (slower, fastest)]
    if bounds[0] != bounds[1]:
        yield f"bound by {bounds[0]}, not {bounds[1]}"
    points = [sum(each.steps for each in those) for those in (slower, fastest)]
    if _differ(*computes):
        per_point = _times((computes[0] / points[0]) / (computes[1] / points[1]))
        yield (
            f"compute {computes[0]:.4g} us against {computes[1]:.4g} ({points[0]} grid points against {points[1]}, "
            f"{per_point} the cycles of one)"
        )
    if _differ(*moves):
        moved = [sum(each.hbm_bytes for each in those) / MIB for those in (slower, fastest)]
        yield f"HBM traffic {moved[0]:.4g} MiB against {moved[1]:.4g}"
    if len(slower) == len(fastest) == 1:
        yield from _of_one(slower[0], fastest[0])


def _of_one(slower: KernelEstimate, fastest: KernelEstimate) -> Iterator[str]:
    """Yield the differences within the instruction bundles of a function with one Pallas call."""
    shares = [each.units.get("MXU", 0.0) for each in (slower, fastest)]
    if _differ(*shares):
        yield f"MXU in {shares[0]:.0%} of its slots against {shares[1]:.0%}"
    spills = [each.spills or 0 for each in (slower, fastest)]
    if _differ(*spills):
        yield f"{spills[0]} bundles that spill against {spills[1]}"


def _differ(one: float, other: float) -> bool:
    low, high = sorted((one, other))
    return high > low * _ALIKE


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times"
