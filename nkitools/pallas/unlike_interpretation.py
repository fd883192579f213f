"""PL213: outputs that plain and TPU interpretation compute otherwise, though no rule is broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nkitools.comparison.bounds import bound_of, most_relative
from nkitools.comparison.rule import Rule
from nkitools.pallas.calls import Call, placed_equations
from nkitools.pallas.imports import jax_module
from nkitools.pallas.jax_types import Argument, Array
from nkitools.pallas.unlike_reference import Others, Returned, judged, unlike
from nkitools.rules.finding import Finding

_PLAIN = Others("PL213", "plain interpretation")
_RANDOM = ("prng_", "random_")  # how the names of primitives of random numbers begin
_FEW = 0.01  # the share of whole numbers that rounding before them may change


def differing(
    outputs: Argument,
    plain: Argument,
    again: Callable[[], Argument],
    calls: Sequence[Call],
    returned: Sequence[Returned],
) -> list[Finding]:
    """Return a finding for each output of TPU interpretation that ``plain`` interpretation computes otherwise.

    ``again`` interprets plainly a second time: a function that then returns something else is not compared. Rounding
    is allowed as of the coarsest dtype in the kernels of ``calls``, whose steps the two need not make alike.
    """
    mine, others = _numbers(outputs), _numbers(plain)
    dtypes = _dtypes(calls)
    rules = [_rule(want, dtypes) for want in others]
    wrong = [_is_wrong(got, want, rule) for got, want, rule in zip(mine, others, rules, strict=True)]
    if not any(wrong) or _is_random(calls):
        return []
    if any(one.tobytes() != two.tobytes() for one, two in zip(others, _numbers(again()), strict=True)):
        return []
    compared = zip(mine, others, rules, wrong, strict=True)
    return [
        finding
        for got, want, rule, is_wrong in compared
        if is_wrong
        for finding in judged([got], [want], returned, rule, lambda _: None, _PLAIN)
    ]


def _numbers(tree: Argument) -> list[Array]:
    """Return the arrays of numbers, without random keys."""
    jax = jax_module()
    leaves = [leaf for leaf in jax.tree_util.tree_leaves(tree) if hasattr(leaf, "dtype")]
    return [np.asarray(leaf) for leaf in leaves if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)]


def _is_wrong(got: Array, want: Array, rule: Rule) -> bool:
    where = unlike(got, want, rule)
    few = _FEW * where.size if rule.rtol and want.dtype.kind in "iub" else 0
    return bool(where.sum() > few)


def _rule(want: Array, dtypes: set[str]) -> Rule:
    """Return the rule for the least exact dtype of an output and its kernels; exact if none of them rounds."""
    return bound_of(want, want, max({*dtypes, want.dtype.name}, key=most_relative))


def _dtypes(calls: Sequence[Call]) -> set[str]:
    found: set[str] = set()
    for call in calls:
        for equation, _ in placed_equations(call.jaxpr, call.kernel_place):
            found |= {str(getattr(var.aval, "dtype", "")) for var in (*equation.invars, *equation.outvars)}
    return {name for name in found if name and most_relative(name)}


def _is_random(calls: Sequence[Call]) -> bool:
    names: Any = (
        equation.primitive.name for call in calls for equation, _ in placed_equations(call.jaxpr, call.kernel_place)
    )
    return any(name.startswith(_RANDOM) for name in names)
