"""A program of the oracle as a kernel, on the simulator."""

from __future__ import annotations

from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np

import nkitools
from tests.oracle.programs import Program, input_of
from tests.oracle.steps import BITWISE, FUNCTIONS, OPERATORS, SMOOTH

_OPERATORS = ("op", "op0", "op1", "reduce_op", "cmp_op")
_NAMES = {**{name: getattr(nl, name) for name in (*OPERATORS, *BITWISE, *FUNCTIONS, *SMOOTH)}}


def simulated(program: Program) -> Any:
    """The run of a program: its outputs are each tile as it was left, of each core."""
    cores = range(program["cores"])
    inputs = [np.stack([input_of(tile, core) for core in cores]) for tile in program["tiles"].values()]
    indices = [np.array(step["indices"], np.uint32) for step in program["steps"] if "indices" in step]
    return nkitools.simulate(
        _kernel_of(program),
        *inputs,
        *indices,
        grid=program["cores"],
        chip=program["chip"],
        nki_version=program["version"],
        rules="report",
        replay="off",
    )


def _kernel_of(program: Program) -> Any:
    names = list(program["tiles"])

    def kernel(*arguments: Any) -> Any:
        core = nl.program_id(0)
        tiles, outputs = {}, []
        for name, argument in zip(names, arguments, strict=False):
            tiles[name] = nl.ndarray(argument.shape[1:], dtype=argument.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=tiles[name], src=argument[core])
        given = iter(arguments[len(names) :])
        for step in program["steps"]:
            _issue(step, tiles, given)
        for name, argument in zip(names, arguments, strict=False):
            outputs.append(nl.ndarray(argument.shape, dtype=argument.dtype, buffer=nl.shared_hbm))
            nisa.dma_copy(dst=outputs[-1][core], src=tiles[name])
        return tuple(outputs)

    return kernel


def _issue(step: dict[str, Any], tiles: dict[str, Any], given: Any) -> None:
    """Issue a step; what it needs besides the program's tiles it makes itself."""
    fields = {key: _argument(key, part, tiles) for key, part in step.items() if key != "instruction"}
    name = step["instruction"]
    if name == "nc_transpose":
        data = fields["data"]
        turned = nl.ndarray((data.shape[1], data.shape[0]), dtype=data.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=turned, data=data, engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=fields["dst"], src=turned)
    elif name == "nc_matmul":
        product = nl.ndarray(fields["dst"].shape, dtype=nl.float32, buffer=nl.psum)
        for _ in range(fields["times"]):
            nisa.nc_matmul(dst=product, stationary=fields["stationary"], moving=fields["moving"])
        nisa.tensor_copy(dst=fields["dst"], src=product)
    elif name == "nc_n_gather":
        source = next(given)
        indices = nl.ndarray(source.shape, dtype=nl.uint32, buffer=nl.sbuf)
        nisa.dma_copy(dst=indices, src=source)
        nisa.nc_n_gather(dst=fields["dst"], data=fields["data"], indices=indices)
    else:
        getattr(nisa, name)(**fields)


def _argument(key: str, part: Any, tiles: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        (top, bottom), (left, right, step) = part["rows"], part["columns"]
        return tiles[part["tile"]][top:bottom, left:right:step]
    return _NAMES[part] if key in _OPERATORS else part
