"""A page for each instruction of ``nki.isa``, from its definition: what it takes, does and costs, and an example.

``python -m docs.generate_instructions NAME`` prints one; the Sphinx build writes all below ``reference/instructions``.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from typing import Any

import numpy as np

from docs.instruction_examples import EXAMPLES
from nkitools.chip.dtypes import DType
from nkitools.dialects.modern import isa
from nkitools.facts import versions
from nkitools.facts.generations import CHIPS
from nkitools.launch.simulate import simulate
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import KernelError
from nkitools.serve.instruction_cards import card
from nkitools.strategies.calls import Tile, calls
from nkitools.targets.imports import stand_in

INTRODUCTION = """\
# Instructions

What each instruction of `nki.isa` requires, does and costs, on which chips and in which NKI versions, with an
example that runs. The same function is what the simulator executes.

:::{toctree}
:maxdepth: 1
:glob:

instructions/*
:::
"""
# Elements of their destination that they do not write are as they were.
_READS_DESTINATION = frozenset({"tensor_copy_predicated"})
_RULE = re.compile(r"\b(?:NK|CO|PL)\d{3}\b")
_ENUM = re.compile(r"<(\w+\.\w+): [^>]*>")


def instruction_pages() -> dict[str, str]:
    """Return the pages by the names of their instructions."""
    return {name: instruction_page(name) for name in names()}


@cache
def names() -> tuple[str, ...]:
    """Return the instructions: the functions of nki.isa that issue something."""
    rows = versions.names_of("nki.isa")
    return tuple(
        sorted(
            name
            for name, row in rows.items()
            if row.is_modelled and callable(found := getattr(isa, name)) and _issues(name, found)
        )
    )


def _issues(name: str, found: Any) -> bool:
    return not inspect.isclass(found) and not name.startswith("get_") and hasattr(found, "__doc__")


def instruction_page(name: str) -> str:
    """Return the page of one instruction in Markdown."""
    known = card(f"nki.isa.{name}")
    assert known is not None, name
    lines = [f"({name})=", f"# nisa.{name}", "", "```text", _call(name, getattr(isa, name)), "```", ""]
    lines += [_linked(known.says), ""]
    if known.source:
        lines += [f"**Source:** {_linked(known.source.replace('``', '`'))}", ""]
    since = [f"- {each}" for each in known.versions] or [f"NKI {', '.join(versions.versions_of())}."]
    lines += ["## NKI versions", "", *since, "", *_costs(name), *_example(name)]
    if known.rules:
        lines += ["## Rules", ""]
        lines += [f"- [{rule}](#{rule}) {RULES[rule].slug}: {RULES[rule].reason}" for rule in known.rules]
        lines += [""]
    return "\n".join(lines)


def _call(name: str, found: Any) -> str:
    """Return the signature, a parameter a line where it is long."""
    signed = inspect.signature(found).parameters.values()
    parameters = [str(each.replace(annotation=inspect.Parameter.empty)) for each in signed]
    parameters = [_ENUM.sub(r"nisa.\1", each) for each in parameters]
    text = f"nisa.{name}({', '.join(parameters)})"
    return text if len(text) < 100 else f"nisa.{name}(\n    " + ",\n    ".join(parameters) + ",\n)"


def _linked(text: str) -> str:
    """Return a text whose rules are links."""
    return _RULE.sub(_link, text)


def _link(found: re.Match[str]) -> str:
    rule = found.group()
    return f"[{rule}](#{rule})" if rule in RULES else rule


@cache
def example_of(name: str) -> str | None:
    """Return a kernel with a legal call of an instruction, and its arguments; None where there is none.

    It is made of the call that the strategies for dtypes take, else written for the page, else the shortest good
    example of a rule.
    """
    if name in calls():
        return _example_of_call(name)
    if name in EXAMPLES:
        return EXAMPLES[name]
    good = [each.good for rule in RULES.values() for each in rule.examples if rule.id.startswith("NK")]
    texts = sorted((each for each in good if f"nisa.{name}(" in each), key=len)
    return next((text for text in texts if _works(name, text)), None)


def _works(name: str, text: str) -> bool:
    for chip in CHIPS[::-1]:
        try:
            return any(each.name == name for each in _run(name, text, chip).instructions)
        except KernelError:
            continue
        except (ImportError, NameError, TypeError):
            return False
    return False


def _example_of_call(name: str) -> str:
    call = calls()[name]
    tiles = {key: value for key, value in call.items() if isinstance(value, Tile)}
    given = [key for key, tile in tiles.items() if tile.is_read]
    written = [key for key, tile in tiles.items() if not tile.is_read]
    lines = ["import nki", "import nki.isa as nisa", "import nki.language as nl", "import numpy as np", "", ""]
    lines += ["@nki.jit", f"def kernel({', '.join(f'{key}_in' for key in given)}):"]
    lines += [f"    {key} = nl.load({key}_in)" for key in given]
    for key in written:
        tile = tiles[key]
        lines.append(f"    {key} = nl.ndarray({tile.shape}, dtype={_dtype(tile)}, buffer=nl.{tile.memory})")
        if name in _READS_DESTINATION:
            lines.append(f"    nisa.memset(dst={key}, value=0.0)")
    arguments = ", ".join(f"{key}={key if key in tiles else _text(value)}" for key, value in call.items())
    lines += [f"    nisa.{name}({arguments})"]
    for key in written:
        lines.append(f"    {key}_out = nl.ndarray({key}.shape, dtype={key}.dtype, buffer=nl.shared_hbm)")
        lines.append(f"    nl.store({key}_out, {'nl.copy(' + key + ')' if tiles[key].memory == 'psum' else key})")
    lines += [f"    return {', '.join(f'{key}_out' for key in written)}", "", "", "random = np.random.default_rng(0)"]
    arrays = "".join(f"{_array(tiles[key])}, " for key in given)
    lines.append(f"inputs = ({arrays.rstrip()})" if arrays else "inputs = ()")
    return "\n".join(lines) + "\n"


def _dtype(tile: Tile) -> str:
    return "nl.float32" if tile.dtype is None else f"nl.{tile.dtype.name}"


def _array(tile: Tile) -> str:
    if tile.dtype is not None and not tile.dtype.is_float:
        return f"random.integers(0, 2, {tile.shape}).astype(np.{tile.dtype.name})"
    return f"random.standard_normal({tile.shape}, np.float32)"


def _text(value: Any) -> str:
    if isinstance(value, DType):
        return f"nl.{value.name}"
    return f"nl.{value.__name__}" if callable(value) and hasattr(value, "__name__") else repr(value)


def _example(name: str) -> list[str]:
    text = example_of(name)
    return [] if text is None else ["## Example", "", "```python", text.rstrip(), "```", ""]


def run_example(name: str, chip: str) -> Any:
    """Return the run of an instruction's example on a chip."""
    text = example_of(name)
    assert text is not None
    return _run(name, text, chip)


def _run(name: str, text: str, chip: str) -> Any:
    # The functions that nki.jit makes are read as source: a file of its own for each.
    import linecache

    file = f"<example of nisa.{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    space: dict[str, Any] = {}
    with stand_in("always"):
        exec(compile(text, file, "exec"), space)
        return simulate(space["kernel"], *space["inputs"], chip=chip)


def _costs(name: str) -> list[str]:
    if example_of(name) is None:
        return []
    lines = ["## Chips and cost", "", "Of the example below, without waiting for others:", ""]
    lines += ["| chip | engine | cost |", "|---|---|---|"]
    for chip in CHIPS:
        try:
            run = run_example(name, chip)
        except KernelError as error:
            lines.append(f"| {chip} | refused: {_linked(error.finding.rule)} | |")
            continue
        issued = next((each for each in run.instructions if each.name == name), None)
        if issued is None:
            lines.append(f"| {chip} | none | no instruction of its own |")
            continue
        cost = f"{issued.nanoseconds:,.0f} ns" if issued.nanoseconds else f"{issued.cycles:,.0f} cycles"
        lines.append(f"| {chip} | {issued.engine} | {cost} |")
    return [*lines, ""]


if __name__ == "__main__":
    np.set_printoptions(linewidth=100)
    print(instruction_page(sys.argv[1]))
