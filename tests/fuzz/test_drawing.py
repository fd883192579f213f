"""What random programs are made of: every instruction, views of every form, every dtype, integers beyond float32."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import tests.oracle.steps as oracle
from nkitools.facts import versions
from tests.fuzz import kernel
from tests.oracle.forms import View, count_of, is_plain, places
from tests.oracle.programs import input_of, program_of
from tests.oracle.state import INTEGERS, LIMITS

VARIABLE = "its sizes are read at run time, and tests/isa/test_collectives_variable.py draws them"
PREPARED = "half of a collective, whose two halves tests/isa/test_collectives_prepared.py tries"
LEFT_OUT = {
    "nki.isa": dict.fromkeys(("get_nc_version", "get_nc_sub_version"), "no instruction")
    | dict.fromkeys(("VirtualRegister", "NkiScalar", "NkiInstruction"), "a type"),
    "nki.collectives": dict.fromkeys(("all_gather_v", "all_to_all_v"), VARIABLE)
    | dict.fromkeys(
        (f"all_{name}_v_{half}" for name in ("gather", "to_all") for half in ("prepare", "trigger")), PREPARED
    )
    | {"rg_partition_op": "another way to name the groups, which tests/isa/test_collectives_versions.py tries"},
}
# dtypes of tensors that are not drawn as tiles.
NO_TILES = {
    "bool": "no operand of an instruction's page; it is a byte to a DMA",
    "tfloat32": "how an engine rounds to it no document says",
    "float8_e8m0fnu": "scales alone, which the microscaling steps bring as uint8",
    "int64": "moved by DMA alone: tests/isa/test_integers_of_64_bits.py",
    "uint64": "the same",
} | dict.fromkeys(("float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"), "the microscaling steps bring them")


@cache
def steps_of(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return a hundred steps of an instruction, or fewer, each with the tiles of its program."""
    found: list[Any] = []
    for seed in range(400):
        program = program_of(seed, [name])
        found += [(step, program["tiles"]) for step in program["steps"]]
        if len(found) >= 100:
            break
    return found


def operands_of(step: dict[str, Any]) -> list[tuple[str, View]]:
    """Return the operands in tiles, and what a step brings or makes, by parameter."""
    pairs = [(key, part) for key, given in step.items() for part in (given if isinstance(given, list) else [given])]
    return [(key, part) for key, part in pairs if isinstance(part, dict) and not part.get("hbm")]


def free_dims(part: View) -> int:
    """Return how many dimensions an operand has beside the partitions."""
    return len(part["dims"]) if "dims" in part else places(part, 1000).ndim if "tile" in part else 1


@pytest.mark.parametrize("module", LEFT_OUT)
def test_every_instruction_of_the_table_of_versions_is_drawn_or_left_out(module: str) -> None:
    """Under its own name, in the kernel of some program; those that came with the newest version too."""
    issued = set()
    for name in oracle.INSTRUCTIONS:
        program = next(program for seed in range(400) if (program := program_of(seed, [name]))["steps"])
        issued |= set(re.findall(r"(?:nisa|ncc)\.(\w+)\(", kernel.text_of(program)))
    rows = {
        name for name, row in versions.names_of(module).items()
        if row.is_modelled and row.home and ":" not in row.home and not row.home.endswith("enums")
    }  # fmt: skip
    assert rows - issued == set(LEFT_OUT[module])


@pytest.mark.parametrize("name", oracle.INSTRUCTIONS)
def test_every_operand_is_drawn_in_more_dimensions(name: str) -> None:
    """But for those that the table of flat operands names, and those of one element a partition."""
    steps, formed, wide = steps_of(name), set(), set()
    assert steps
    for step, _ in steps:
        for key, part in operands_of(step):
            if count_of(part) > 1:
                wide.add(key)
            if free_dims(part) > 1:
                formed.add(key)
    own = {"tensor_reduce", "dma_transpose"}  # which choose the dimensions when they are drawn
    flat = set() if name in own else set(oracle.FLAT.get(name, {}))
    assert wide - formed == flat & wide


def test_views_of_every_form_are_drawn() -> None:
    """Two to five dimensions, steps, strides of two dimensions that overlap, and elements that come again."""
    dims, stepped, again, patterns = set(), False, False, False
    for step, tiles in steps_of("tensor_tensor"):
        for _, part in operands_of(step):
            columns = places(part, tiles[part["tile"]]["shape"][1])
            dims.add(1 + columns.ndim)
            stepped |= bool(np.diff(columns.reshape(-1)).max(initial=0) > 1)
            again |= len(np.unique(columns)) < columns.size
            patterns |= "pattern" in part
            assert is_plain(part) == (columns.ndim == 1 and "form" not in part and "pattern" not in part)
    assert (dims, stepped, again, patterns) == ({2, 3, 4, 5}, True, True, True)


def test_what_is_written_names_each_element_once() -> None:
    """An access pattern that names one twice would leave the last of its values, whichever that is."""
    for name in ("tensor_copy", "dma_compute", "iota"):
        for step, tiles in steps_of(name):
            columns = places(step["dst"], tiles[step["dst"]["tile"]]["shape"][1])
            assert len(np.unique(columns)) == columns.size


def test_tensors_in_hbm_have_one_to_five_dimensions() -> None:
    """Where a DMA reads and where it writes."""
    for name in ("dma_load", "dma_store"):
        assert {places(step["view"], 10_000).ndim for step, _ in steps_of(name)} == {1, 2, 3, 4, 5}


def test_patterns_go_backwards() -> None:
    """Those of positions, which are the only ones that may."""
    for name in ("iota", "affine_select"):
        strides = [stride for step, _ in steps_of(name) for stride, _ in step["pattern"]]
        assert min(strides) < 0 < max(strides)


def test_every_dtype_is_drawn_or_left_out() -> None:
    """And integers of each in their whole range, of 32 bits beyond what float32 holds."""
    from nkitools.chip.dtypes import DTYPES

    tiles = [tile for seed in range(300) for tile in program_of(seed)["tiles"].values()]
    assert {tile["dtype"] for tile in tiles} == set(LIMITS) == set(DTYPES) - set(NO_TILES)
    for dtype in sorted(INTEGERS):
        wide = [input_of(tile) for tile in tiles if tile["dtype"] == dtype and tile.get("wide")]
        most = max(int(values.max()) for values in wide)
        assert most >= (2**31 - 4 if dtype.endswith("32") else np.iinfo(dtype).max - 10)
        if dtype.endswith("32"):
            assert any((values.astype(np.float32).astype(np.int64) != values).any() for values in wide)
