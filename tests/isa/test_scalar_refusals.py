"""Scalars of the device: what refuses them, and what a version without them says."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.chip.models import refused
from tests.isa.issued import empty, inside, placed, tile
from tests.isa.loaded_scalars import WIDTHS, loaded, one, stored
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

HOST: dict[str, Callable[[Any], Any]] = {
    "if": lambda i: 1 if i else 2,
    "not": lambda i: not i,
    "and": lambda i: i and 1,
    "or": lambda i: i or 1,
    "int": int,
    "float": float,
    "range": range,
    "index of a list": lambda i: [1, 2][i],
    "in": lambda i: i in [1, 2],
    "max": lambda i: max(i, 2),
    "if of a comparison": lambda i: 1 if i < 3 else 2,
    "chained comparison": lambda i: 0 < i < 3,
}


@pytest.mark.parametrize("form", HOST)
def test_the_host_does_not_see_the_value(form: str) -> None:
    """NK602 wherever Python asks for it."""
    with refused("NK602"):
        inside(lambda: HOST[form](loaded(1)))


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


@pytest.mark.parametrize("compare", COMPARISONS)
def test_the_result_of_a_comparison_cannot_be_used(compare: Callable[[Any, Any], Any]) -> None:
    """It may be made, by either side; arithmetic, addresses, loops and stores refuse it (NK609)."""
    uses: list[Callable[[Any], Any]] = [
        lambda flag: flag + 1,
        lambda flag: -flag,
        stored,
        lambda flag: nl.fori_loop(0, flag, lambda i: None),
        lambda flag: nl.while_loop(flag, lambda condition: condition),
    ]
    assert isinstance(inside(lambda: compare(loaded(1), 2)), nisa.NkiScalar)
    assert isinstance(inside(lambda: compare(2, loaded(1))), nisa.NkiScalar)
    for use in uses:
        with refused("NK609", "the result of a comparison of scalars, which cannot be used"):
            inside(lambda u=use: u(compare(loaded(1), loaded(2))))


@pytest.mark.parametrize("compare", COMPARISONS)
def test_scalars_of_64_bits_are_not_compared(compare: Callable[[Any, Any], Any]) -> None:
    """NK301, with numbers and with scalars."""
    for other in (1, loaded):
        with refused("NK301", "no comparison of 64 bits"):
            inside(lambda o=other: compare(loaded(1, nl.int64), o if o == 1 else loaded(1, nl.int64)))


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "/": lambda i: i / 2,
    "//": lambda i: 9 // i,
    "%": lambda i: i % 2,
    "**": lambda i: i**2,
    "<<": lambda i: i << 1,
    ">>": lambda i: i >> 1,
    "&": lambda i: 3 & i,
    "|": lambda i: i | 1,
    "^": lambda i: i ^ 1,
    "~": operator.invert,
    "abs()": abs,
    "divmod()": lambda i: divmod(i, 2),
    "round()": round,
}


@WIDTHS
@pytest.mark.parametrize("sign", UNKNOWN)
def test_other_operators_are_refused_by_name(sign: str, dtype: Any) -> None:
    """NK607 names the operator: no document has it for scalars."""
    with refused("NK607", f"`{sign}` of a scalar"):
        inside(lambda: UNKNOWN[sign](loaded(4, dtype)))


WRONG: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "two widths": ("NK301", "no scalar changes its width", lambda: loaded(1) + loaded(1, nl.int64)),
    "a float": ("NK609", "and a float", lambda: loaded(1) * 0.5),
    "too large": ("NK609", "does not fit into int32", lambda: loaded(1) + 2**31),
    "a register and 64 bits": ("NK301", "32 bits", lambda: loaded(1, nl.int64) + nisa.register_alloc(1)),
    "64 bits into a register": (
        "NK301", "32 bits", lambda: nisa.register_move(nisa.register_alloc(), loaded(1, nl.int64)),
    ),
    "64 bits as a bound": ("NK301", "32 bits", lambda: nl.fori_loop(0, loaded(1, nl.int64), lambda i: None)),
    "64 bits as a condition": ("NK301", "32 bits", lambda: nl.while_loop(loaded(1, nl.int64), lambda i: i)),
    "a scalar as a step": ("NK609", "step must be", lambda: nl.fori_loop(0, 4, lambda i: None, loaded(1))),
    "storing a number": ("NK609", "must be a scalar, it is int", lambda: nisa.scalar_store(placed(one(1)), 3)),  # type: ignore[arg-type]
    "storing a register": (
        "NK609", "must be a scalar", lambda: nisa.scalar_store(placed(one(1)), nisa.register_alloc(1)),  # type: ignore[arg-type]
    ),
    "storing 32 bits as 64": (
        "NK301", "nothing is cast", lambda: nisa.scalar_store(placed(one(1, nl.int64)), loaded(1)),
    ),
    "storing 64 bits as 32": (
        "NK301", "nothing is cast", lambda: nisa.scalar_store(placed(one(1)), loaded(1, nl.int64)),
    ),
    "unsigned": ("NK301", "must be of nl.int32 or nl.int64", lambda: loaded(1, nl.uint32)),
    "unsigned 64 bits": (
        "NK301", "nl.int32 or nl.int64", lambda: nisa.scalar_load(placed(one(1, nl.uint64, "private_hbm"))),
    ),
    "a float tensor": ("NK301", "must be of nl.int32 or nl.int64", lambda: loaded(1, nl.float32)),
    "two elements": (
        "NK109", "exactly one element", lambda: nisa.scalar_load(placed(tile(np.zeros((1, 2), np.int32)))),
    ),
    "PSUM": ("NK201", "must be in HBM or SBUF", lambda: nisa.scalar_load(placed(one(1, memory="psum")))),
    "never written": ("NK401", "", lambda: nisa.scalar_load(placed(empty((1, 1), nl.int32)))),
    "an operand of an engine": (
        "NK609", "must be a number or a tensor",
        lambda: nisa.tensor_scalar(placed(one(1)), placed(one(1)), nl.add, loaded(1)),  # type: ignore[arg-type]
    ),
    "storing it into a register's place": (
        "NK609", "a register of nisa.register_alloc", lambda: nisa.register_store(placed(one(1)), loaded(1)),  # type: ignore[arg-type]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    """Each with its rule and a sentence about its cause."""
    rule, sentence, body = WRONG[case]
    with refused(rule, sentence):
        inside(body)


def test_before_0_7_there_are_no_scalars_and_no_64_bits() -> None:
    """Names are refused with the version (NK608), arrays and dtypes as ever (NK301)."""

    def by_name(x: Any) -> Any:
        return nisa.scalar_load(x)

    def by_text(x: Any) -> Any:
        return nl.ndarray((1, 1), "int64", nl.shared_hbm)

    with refused("NK608", "scalar_load is public since NKI 0.7"):
        nkitools.simulate(by_name, np.ones((1, 1), np.int32), nki_version="0.6")
    with refused("NK301", "int64"):
        nkitools.simulate(by_text, np.ones((1, 1), np.int32), nki_version="0.6")
    with refused("NK301", "an array of int64, which NKI does not have"):
        nkitools.simulate(by_text, np.ones((1, 1), np.int64), nki_version="0.6")
