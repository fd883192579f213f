"""Finds the smallest case that fails like a given one, and writes a test for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nkitools.sweeps.answers import signature
from nkitools.sweeps.argument_recipe import ArgumentRecipe
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.sweeps.named_function import named

MOST_RUNS = 60


def smallest(call: CheckedCall, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a case that fails like a stored one, with integers as small as possible.

    Each number is set to 1, halved or lowered by one, as long as outcome and cause stay.
    """
    values, runs = dict(row["values"]), 0
    wanted = row["outcome"], signature(row)
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for name in values:
            for candidate in _smaller(values[name]):
                if runs >= MOST_RUNS:
                    return values
                runs += 1
                found = call(Case({**values, name: candidate}, row["chip"]))
                if (found["outcome"], signature(found)) == wanted:
                    values[name], is_smaller = candidate, True
                    break
    return values


def _smaller(value: Any) -> Iterator[int]:
    if isinstance(value, bool) or not isinstance(value, int):
        return
    yield from dict.fromkeys(each for each in (0, 1, value // 2, value - 1) if 0 <= each < value)


def as_test(call: CheckedCall, values: Mapping[str, Any], chip: str, said: str) -> str:
    """Return a test file for one case, which fails until the kernel is mended."""
    places = {"kernel": named(call.kernel)}
    if not isinstance(call.arguments, ArgumentRecipe):
        places["arguments"] = named(call.arguments)
    if call.reference is not None:
        places["reference"] = named(call.reference)
    lines = ["import sys", "", "import pytest", ""]
    for folder in sorted({_root(each.module, each.file) for each in places.values()}):
        lines.append(f"sys.path.insert(0, {folder!r})")
    lines.append("")
    for module in sorted({each.module for each in places.values()}):
        names = sorted({each.name.partition(".")[0] for each in places.values() if each.module == module})
        lines.append(f"from {module} import {', '.join(names)}  # noqa: E402")
    arguments = [f"{name}={place.name}" for name, place in places.items() if name != "kernel"]
    if isinstance(call.arguments, ArgumentRecipe):
        lines.append("from nkitools.sweeps.argument_recipe import ArgumentRecipe  # noqa: E402")
        arguments.append(f"arguments=ArgumentRecipe({json.loads(json.dumps(call.arguments.table))!r})")
    arguments += [f"chips=[{chip!r}]"]
    arguments += [
        f"{name}={value!r}" for name, value in (("rtol", call.rtol), ("atol", call.atol)) if value is not None
    ]
    space = {name: [value] for name, value in values.items()}
    lines += [
        "", "", "@pytest.mark.nki_sweep(", f"    {places['kernel'].name},", f"    {space!r},",
        *(f"    {each}," for each in arguments), ")", "def test_the_smallest_failing_case(nki_case):",
        f'    """It passes. In the sweep: {said}."""', '    assert nki_case["outcome"] == "pass"', "",
    ]  # fmt: skip
    return "\n".join(lines)


def _root(module: str, file: str) -> str:
    """Return the folder from which a module is imported."""
    path = Path(file).resolve()
    return str(path.parents[module.count(".")])
