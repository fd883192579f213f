"""The form of two arrays, which is compared before any number: shape, kind of dtype, NaN."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from nkitools.comparison.compared_arrays import compared, numbers_of
from nkitools.comparison.rule import Rule

RETURNS_NONE = "the reference returns None: let it return what the kernel should compute (has it a `return`?)"


class NothingCompared(ValueError):
    """A comparison that would compare nothing."""


def must_be_another(kernel: Any, reference: Any) -> None:
    """Raise NothingCompared for a reference that is the kernel itself, with which the kernel always agrees."""
    if callable(reference) and callable(kernel) and inspect.unwrap(reference) is inspect.unwrap(kernel):
        raise NothingCompared(
            "the reference is the kernel itself: nothing is compared. Write what is right without the kernel, in NumPy "
            "for example."
        )


def unlike_form(actual: Any, expected: Any) -> str:
    """Return a sentence about a shape or a kind of dtype that differs from the expected one; '' if both fit."""
    first, second = np.asarray(actual), np.asarray(expected)
    if first.shape != second.shape:
        return f"it has the shape {list(first.shape)}, the reference {list(second.shape)}"
    return unlike_kind(first.dtype.name, second)


def unlike_kind(dtype: str, expected: Any) -> str:
    """Return a sentence about a dtype (its name) of another kind than that of the expected array; '' if the kinds fit.

    Kinds are float, integer, bool and others. A wider dtype of the same kind fits.
    """
    second = np.asarray(expected).dtype
    kind = _kind(dtype)
    if kind == ("integer" if second.names else _kind(second.name)):
        return ""
    return f"it is {dtype}, the reference {second.name}: let the reference return {_a(kind)} array"


def must_hold_numbers(name: str, actual: Any, expected: Any) -> None:
    """Raise NothingCompared where all elements are NaN on both sides, which agree whatever the kernel computes."""
    try:
        both = np.isnan(numbers_of(actual)) & np.isnan(numbers_of(expected))
    except (TypeError, ValueError):
        return
    if both.size and both.all():
        raise NothingCompared(
            f"{name}: all {both.size} elements are NaN, in the reference too: nothing is compared. Let the arguments "
            "or the reference hold numbers."
        )


def passing_zeros(expected: Any, rule: Rule) -> str:
    """Return a sentence about a stated rule that zeros pass in the place of all expected values; '' if they do not.

    Expected values that are zeros themselves are no reason for one.
    """
    values = np.abs(numbers_of(expected))
    if not rule.is_stated or not values.any() or not compared(np.zeros_like(values), values, rule).agree:
        return ""
    rtol, atol = rule.numbers(())
    return (
        f"the tolerance compares nothing: zeros would pass, too, as rtol={rtol:g}, atol={atol:g} allows errors as "
        f"large as every expected value (at most {values.max():.2g}). State a smaller one."
    )


def unlike_nan(actual: Any, expected: Any) -> str:
    """Return in words the elements that are NaN on one side only; '' if NaN is in the same elements."""
    first, second = np.isnan(numbers_of(actual)), np.isnan(numbers_of(expected))
    for mask, what in ((first & ~second, "where numbers are expected"), (second & ~first, "too few")):
        if mask.any():
            at = [int(axis[0]) for axis in np.nonzero(mask)]
            return f"NaN in {int(mask.sum())} elements {what}, the first at {at}"
    return ""


def _kind(dtype: str) -> str:
    """Return ``float``, ``integer``, ``bool``, or the name of another dtype. Packed types are integers, their codes."""
    if dtype.endswith("_x4") or dtype.startswith(("int", "uint", "void")):
        return "integer"
    if dtype.startswith(("float", "bfloat", "tfloat")):
        return "float"
    return "bool" if dtype == "bool" else dtype


def _a(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
