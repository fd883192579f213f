"""Issues one instruction on given arrays in given memories, and says what came of it.

Operands are put into their storage and read back directly, without any instruction of the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.rules.finding import Finding

View = Callable[[Any], Any]


def whole(tensor: Any) -> Any:
    """The view of everything."""
    return tensor


@dataclass(eq=False)
class Tile:
    """An operand: what its storage holds (None: nothing was ever written), where, and the view that is passed.

    One object passed twice is one tensor; ``of`` makes another view of the same tensor.
    """

    shape: tuple[int, ...]
    values: np.ndarray | None
    dtype: Any
    memory: str = "sbuf"
    view: View = whole
    of: Tile | None = None

    def seen(self, view: View) -> Tile:
        """Another view of this tensor."""
        return Tile(self.shape, self.values, self.dtype, self.memory, view, self.of or self)

    @property
    def root(self) -> Tile:
        """The operand that owns the storage."""
        return self.of or self


def tile(values: Any, memory: str = "sbuf", dtype: Any = None, view: View = whole) -> Tile:
    """An operand that holds ``values``."""
    array = np.asarray(values)
    return Tile(array.shape, array, array.dtype if dtype is None else dtype, memory, view)


def empty(shape: tuple[int, ...], dtype: Any = nl.float32, memory: str = "sbuf", view: View = whole) -> Tile:
    """An operand that nothing was ever written to."""
    return Tile(shape, None, dtype, memory, view)


def bank(shape: tuple[int, ...], dtype: Any = nl.float32) -> Tile:
    """A destination in PSUM that nothing was ever written to."""
    return empty(shape, dtype, "psum")


@dataclass
class Issued:
    """What an instruction left: each operand's view and storage afterwards, the findings and the record."""

    views: dict[str, np.ndarray] = field(default_factory=dict)
    storages: dict[str, np.ndarray] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    instruction: Any = None

    @property
    def dst(self) -> np.ndarray:
        """The destination's view."""
        return self.views["dst"]

    @property
    def rules(self) -> list[str]:
        """The rules that spoke."""
        return [finding.rule for finding in self.findings]


def placed(each: Tile) -> Any:
    """The tensor of an operand, inside a running kernel."""
    tensor = nl.ndarray(each.shape, each.dtype, getattr(nl, each.memory))
    if each.values is not None:
        tensor.storage.array[...] = each.values
        tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
    return tensor


def issue(
    instruction: Any, *args: Any, chip: str = "trn2", rules: str = "error", version: str | None = None, **kwargs: Any
) -> Issued:
    """Issue ``instruction`` with these arguments, of which every Tile becomes a tensor of a kernel.

    ``version``: the NKI version of the run.
    """
    issued = Issued()

    def kernel() -> None:
        tensors: dict[int, Any] = {}

        def tensor_of(value: Any) -> Any:
            if not isinstance(value, Tile):
                return value
            root = value.root
            if id(root) not in tensors:
                tensors[id(root)] = placed(root)
            return value.view(tensors[id(root)])

        bound = instruction.__signature__.bind(*args, **kwargs)
        operands = {name: tensor_of(value) for name, value in bound.arguments.items()}
        positional = [tensor_of(value) for value in args]
        try:
            instruction(*positional, **{name: operands[name] for name in kwargs})
        finally:
            for name, tensor in operands.items():
                if hasattr(tensor, "storage"):
                    issued.views[name] = np.array(tensor.array)
                    issued.storages[name] = np.array(tensor.storage.array)

    with nkitools.allow_findings("NK615", reason="a quotient is computed where it is not refused"):
        run = nkitools.simulate(kernel, chip=chip, rules=rules, nki_version=version)
    issued.findings = [*run.findings, *run.allowed]
    issued.instruction = run.instructions[-1] if len(run.instructions) else None
    return issued


def refusal(instruction: Any, *args: Any, chip: str = "trn2", **kwargs: Any) -> Finding:
    """The one finding of a call that is refused, which is the same at both levels of the rules."""
    with pytest.raises(nkitools.KernelError) as caught:
        issue(instruction, *args, chip=chip, rules="error", **kwargs)
    finding: Finding = caught.value.finding
    assert issue(instruction, *args, chip=chip, rules="report", **kwargs).rules == [finding.rule]
    return finding


def handed_out(tile: Any) -> Any:
    """Return a copy of a tile in shared HBM, which is a result where a kernel returns it."""
    out = nl.ndarray(tile.shape, tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out


def inside(body: Callable[[], Any], chip: str = "trn2", rules: str = "error") -> Any:
    """What ``body`` returns when it runs as a kernel; `placed` puts operands there, ``tensor.array`` reads them."""
    results: list[Any] = []

    def kernel() -> None:
        results.append(body())

    with nkitools.allow_findings("NK615", reason="a quotient is computed where it is not refused"):
        nkitools.simulate(kernel, chip=chip, rules=rules)
    return results[0]
