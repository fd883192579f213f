"""NK404 and NK304 in programs of element-wise instructions, of both dialects, which NumPy computes beside them.

The first finding stands at the first instruction that makes a NaN or an infinity of finite numbers (NK404), or whose
result its destination does not hold (NK304); what comes of that later is told of once, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import neuronxcc.nki as legacy
import neuronxcc.nki.isa as legacy_isa
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl

SHAPE = (3, 4)
DTYPES = {
    "float32": np.float32,
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
}
FLOATS = ("float32", "bfloat16", "float16", "float8_e5m2")
NARROW = ("float16", "float8_e5m2")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
UNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "square": np.square,
    "reciprocal": lambda x: np.float32(1) / x,
    "abs": np.abs,
}
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -7.0, 90.0, 1e4, -300.0, 65504.0, 1e20, 1e38, -3e38, 1e-30)


class Step(NamedTuple):
    """One instruction: what it computes of which tiles and numbers, and into which tile."""

    kind: str
    into: int
    first: int
    second: int
    operator: str
    function: str
    number: float


STEPS = st.builds(
    Step,
    st.sampled_from(["tiles", "number", "function", "copy"]),
    *[st.integers(0, 2)] * 3,
    st.sampled_from(BINARY),
    st.sampled_from(sorted(UNARY)),
    st.sampled_from(NUMBERS),
)


class Judged(NamedTuple):
    """What NumPy says of a step: how many elements a cast lost, and how many others are not finite of finite ones."""

    lost: int
    broken: int


def held(values: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """float32 values as a dtype holds them, and which of them it does not."""
    if name in FLOATS:
        with np.errstate(over="ignore"):
            result = values.astype(DTYPES[name])
        lost = np.isfinite(values) & ~np.isfinite(result.astype(np.float32))
        return result, lost if name in NARROW else np.zeros_like(lost)
    limits, rounded = np.iinfo(DTYPES[name]), np.rint(values.astype(np.float64))
    lost = ~((rounded >= limits.min) & (rounded <= limits.max))
    return np.nan_to_num(np.clip(rounded, limits.min, limits.max)).astype(DTYPES[name]), lost


def computed(tiles: list[np.ndarray], names: list[str], program: list[Step]) -> list[Judged]:
    """Each step in NumPy."""
    tiles, judged = list(tiles), []
    for step in program:
        first, second = (tiles[each].astype(np.float32) for each in (step.first, step.second))
        finite = np.isfinite(first)
        if step.kind == "tiles":
            result = getattr(np, step.operator)(first, second)
            finite &= np.isfinite(second)
        elif step.kind == "number":
            result = getattr(np, step.operator)(first, np.float32(step.number))
        elif step.kind == "function":
            result = UNARY[step.function](first * np.float32(step.number))
        else:
            result = first
        tiles[step.into], lost = held(np.asarray(result, np.float32), names[step.into])
        broken = finite & ~lost & ~np.isfinite(tiles[step.into].astype(np.float32))
        judged.append(Judged(int(lost.sum()), int(broken.sum())))
    return judged


def modern(tiles: list[Any], step: Step, dtype: str) -> None:
    """Each result in the place of what was there, which may be an operand."""
    dst, first, second = tiles[step.into], tiles[step.first], tiles[step.second]
    operator, function = getattr(nl, step.operator), getattr(nl, step.function)
    if step.kind == "tiles":
        nisa.tensor_tensor(dst=dst, data1=first, data2=second, op=operator)
    elif step.kind == "number":
        nisa.tensor_scalar(dst=dst, data=first, op0=operator, operand0=step.number)
    elif step.kind == "function":
        nisa.activation(dst=dst, op=function, data=first, scale=step.number)
    else:
        nisa.tensor_copy(dst=dst, src=first)


def of_legacy(tiles: list[Any], step: Step, dtype: str) -> None:
    """Each result in a new tile."""
    first, second = tiles[step.first], tiles[step.second]
    operator, function = getattr(np, step.operator), getattr(legacy_nl, step.function)
    if step.kind == "tiles":
        tiles[step.into] = legacy_isa.tensor_tensor(first, second, op=operator, dtype=getattr(legacy_nl, dtype))
    elif step.kind == "number":
        tiles[step.into] = legacy_isa.tensor_scalar(first, operator, step.number, dtype=getattr(legacy_nl, dtype))
    elif step.kind == "function":
        tiles[step.into] = legacy_isa.activation(function, first, scale=step.number, dtype=getattr(legacy_nl, dtype))
    else:
        tiles[step.into] = legacy_isa.tensor_copy(first, dtype=getattr(legacy_nl, dtype))


def kernel_of(dialect: str, names: list[str], program: list[Step]) -> Any:
    """The program as a kernel, with a loop whose counter says which step it is."""
    language, issue = (nl, modern) if dialect == "modern" else (legacy_nl, of_legacy)

    def kernel(first: Any, second: Any, third: Any) -> Any:
        out = language.ndarray(SHAPE, dtype=getattr(language, names[0]), buffer=language.shared_hbm)
        tiles = [language.load(first), language.load(second), language.load(third)]
        for _number, step in enumerate(program):
            issue(tiles, step, names[step.into])
        language.store(out, tiles[0])
        return out

    return kernel if dialect == "modern" else legacy.jit(kernel)


ELEMENTS = re.compile(r"(\d+) of \d+ elements")
Told = tuple[list[tuple[int, str, int]], int]


def findings(dialect: str, tiles: list[np.ndarray], names: list[str], program: list[Step]) -> Told:
    """Step, rule and the number of elements of each place of the two rules, and how many casts are told of in all.

    A finding of several turns has the places of the first three and of the last.
    """
    with nkitools.allow_findings("NK615", reason="a quotient is computed where it is not refused"):
        run = nkitools.simulate(kernel_of(dialect, names, program), *tiles, rules="report")
    assert {each.rule for each in run.findings} <= {"NK304", "NK305", "NK404", "NK513", "NK615"}
    of_values = [
        each for each in run.findings if each.rule in ("NK304", "NK404") and ELEMENTS.search(each.message) is not None
    ]
    places = {
        (place.loops["_number"], each.rule, int(found[1]))
        for each in of_values
        for place in (*(each.places or (each.place,)), each.last or each.place)
        if (found := ELEMENTS.search(place.message)) is not None
    }
    return sorted(places), sum(each.count for each in of_values if each.rule == "NK304")


@st.composite
def programs(draw: Callable[..., Any]) -> tuple[list[np.ndarray], list[str], list[Step]]:
    """Three tiles of finite numbers, their dtypes, and what is done to them."""
    names = [draw(st.sampled_from(sorted(DTYPES))) for _ in range(3)]
    tiles = []
    for name in names:
        values = draw(st.lists(st.sampled_from(NUMBERS), min_size=12, max_size=12))
        tile, lost = held(np.array(values, np.float32).reshape(SHAPE), name)
        tiles.append(np.where(lost, np.ones((), tile.dtype), tile))
    return tiles, names, draw(st.lists(STEPS, min_size=1, max_size=6))


@pytest.mark.parametrize("dialect", ["modern", "legacy"])
@given(programs())
def test_the_first_finding_is_where_the_numbers_end(
    dialect: str, given_program: tuple[list[np.ndarray], list[str], list[Step]]
) -> None:
    """With as many elements as NumPy counts; a program of which NumPy says nothing has no finding."""
    with np.errstate(all="ignore"):
        judged = computed(*given_program)
    expected = [
        (number, "NK304" if each.lost else "NK404", each.lost or each.broken)
        for number, each in enumerate(judged)
        if each.lost or each.broken
    ]
    found, casts = findings(dialect, *given_program)
    assert found[:1] == expected[:1]
    # Every cast is told of, however many there were before.
    lost = [each for each in expected if each[1] == "NK304"]
    told = [each for each in found if each[1] == "NK304"]
    assert casts == len(lost)
    assert told == [each for each in lost if each in told]
    assert len(told) >= min(casts, 4)
