"""A program of the oracle as the text of a kernel, and its runs on the simulator."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Any

import nki.collectives
import nki.isa
import nki.language
import numpy as np

import nkitools
from tests.fuzz.kernel_text import Symbol, nisa, nl, written
from tests.fuzz.recipes import RECIPES, Issue
from tests.oracle.programs import Program, input_of, members
from tests.oracle.state import brought

_OPERATORS = ("op", "op0", "op1", "reduce_op", "cmp_op", "comp_op0", "comp_op1")
_FILE = "<program of the fuzz>"


def simulated(program: Program) -> Any:
    """Return the run of a program: its outputs are each tile as it was left, and what steps leave beside them."""
    arrays = [brought(part) for _, _, part in _arrays(program)]
    tiles = program["tiles"].values()
    settings = {"chip": program["chip"], "nki_version": program["version"], "rules": "report"}
    settings["sum_order"] = program.get("sum_order", "fast")
    together = range(members(program))
    if program.get("ranks", 1) > 1:
        arguments: Any = [(*(input_of(tile, rank)[None] for tile in tiles), *arrays) for rank in together]
        settings["ranks"] = len(together)
    else:
        arguments = [*(np.stack([input_of(tile, core) for core in together]) for tile in tiles), *arrays]
        settings["grid"] = len(together)
    kernel = kernel_of(text_of(program))
    return nkitools.simulate(kernel, *arguments, **settings)


def outputs_of(program: Program, run: Any, member: int) -> dict[str, Any]:
    """Return what a core or rank has left, by name."""
    names = [*program["tiles"], *(part["name"] for part in _results(program))]
    if program.get("ranks", 1) > 1:
        outputs, member = run.outputs[member], 0
    else:
        outputs = run.outputs
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return {name: output[member] for name, output in zip(names, outputs, strict=True)}


def _arrays(program: Program) -> list[tuple[int, str, dict[str, Any]]]:
    """Return the arrays that steps bring, each with the number of its step and its name."""
    return [
        (number, key, part)
        for number, step in enumerate(program["steps"])
        for key, part in step.items()
        if isinstance(part, dict) and "array" in part
    ]


def _results(program: Program) -> list[dict[str, Any]]:
    parts = [part for step in program["steps"] for part in step.values()]
    return [part for part in parts if isinstance(part, dict) and "new" in part]


def kernel_of(text: str) -> Any:
    """Return the function of a text."""
    module = {"nisa": nki.isa, "nl": nki.language, "ncc": nki.collectives, "__name__": "program"}
    linecache.cache[_FILE] = (len(text), None, text.splitlines(keepends=True), _FILE)
    exec(compile(text, _FILE, "exec", dont_inherit=True), module)
    return module["kernel"]


def text_of(program: Program) -> str:
    """Return a program as a kernel, which loads its tiles, issues the steps and stores what they leave."""
    cores = int(program["cores"])
    names = list(program["tiles"])
    arrays = [(number, key, Symbol(f"a{at}", brought(part).shape, Symbol(f"a{at}.dtype")))
              for at, (number, key, part) in enumerate(_arrays(program))]  # fmt: skip
    with written(
        f"kernel({', '.join([*(f'x_{name}' for name in names), *(each.text for _, _, each in arrays)])})"
    ) as to:
        core, made = nl.program_id(0), dict[str, Symbol]()
        tiles = {name: _loaded(name, tile["shape"], core) for name, tile in program["tiles"].items()}
        for number, step in enumerate(program["steps"]):
            issue = Issue(step, tiles, {key: array for at, key, array in arrays if at == number})
            _issue(issue)
            made |= issue.results
        left = [*tiles.values(), *(made[part["name"]] for part in _results(program))]
        outputs = []
        for tile in left:
            outputs.append(nl.ndarray((cores, *tile.shape), dtype=tile.dtype, buffer=nl.shared_hbm))
            nisa.dma_copy(dst=outputs[-1][core], src=tile)
        to.say(f"return ({', '.join(map(repr, outputs))},)")
    return "\n".join(to.lines) + "\n"


def _loaded(name: str, shape: Sequence[int], core: Symbol) -> Symbol:
    given = Symbol(f"x_{name}", (1, *shape), Symbol(f"x_{name}.dtype"))
    tile: Symbol = nl.ndarray(tuple(shape), dtype=given.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=given[core])
    return tile


def _issue(issue: Issue) -> None:
    """Write a step down: the instruction of its name, or a recipe."""
    name = issue.step["instruction"]
    if name in RECIPES:
        RECIPES[name](issue)
        return
    getattr(nisa, name)(
        **{key: _argument(issue, key, part) for key, part in issue.step.items() if key != "instruction"}
    )


def _argument(issue: Issue, key: str, part: Any) -> Any:
    if key in _OPERATORS:
        return getattr(nl, part)
    if key == "reduce_cmd":
        return getattr(nisa.reduce_cmd, part)
    if key == "engine":
        return getattr(nisa.engine, part)
    return issue[key] if isinstance(part, dict) else part
