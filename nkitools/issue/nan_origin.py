"""The origin of a NaN or an infinity (NK404): the instruction that made it of numbers which were none.

NumPy's floating-point flags, or the look at a matrix product, suggest that there may be one; here the operands decide.
An infinity counts where all operands of its element are finite. A NaN counts where none of them is NaN; they may be
infinities (inf - inf) that were not reported, since otherwise the NaN only follows from them. Operands that the
instruction has overwritten can no longer be seen: then the flags decide, which are raised for such origins only. Fills
(nisa.memset, the numbers of the selecting instructions) raise no flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.numeric_flags import DIVIDED, INVALID, OVERFLOWED
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import ORIGINS, picture_of
from nkitools.chip.view_checks import describe
from nkitools.issue.element_maps import From
from nkitools.issue.element_rules import Shape
from nkitools.issue.nan_formula import expression
from nkitools.issue.plan import Plan, Value
from nkitools.issue.value_operands import Operand, first_of
from nkitools.rules.finding import report

_ALL_FLAGS = frozenset({DIVIDED, INVALID, OVERFLOWED})

_WORK: Any = 1000  # candidates that NumPy tries before it gives up on two strided arrays


def report_origin(
    core: Core,
    plan: Plan,
    operands: Sequence[Operand],
    settings: dict[str, Any],
    flags: set[str],
    product: Array | None,
) -> None:
    """NK404 for the first output with such an element, once for each line of the author's.

    ``product``: what a matmul has written or added, where that may not be finite.
    """
    record = core.record
    site = record.sites[record.sites.current(2)]
    if (site.file, site.line) in record.origins:
        return
    outputs = [each for each in operands if each.written]
    inputs = [_Input(each, outputs) for each in operands if not each.written]
    if any(each.is_packed for each in inputs):
        product = None  # the codes of a NaN are theirs, so that only what the flags say is sure
    for output in outputs:
        # The second core of a pair records no elements: the first one moves the data of both.
        if not output.value.dtype.is_float or output.name not in plan.elements.results:
            continue
        result = output.array if product is None else product.reshape(output.array.shape)
        seen = frozenset(flags) if product is None else _ALL_FLAGS
        found = _origins(core, plan, output._replace(array=result), inputs, seen) if seen else None
        if found is None:
            continue
        record.origins.add((site.file, site.line))
        # Too large a number rounds to infinity, which may be what is meant; a NaN or a division by 0 hardly is.
        severity = "hint" if product is None and seen == {OVERFLOWED} else ""
        _report(plan, settings, output, inputs, *found, severity=severity)
        core.has_infinities = core.has_infinities or bool(found[1].any())
        return


class _Input:
    """An operand that was read: which elements are NaN or infinite, unless the results have taken their place."""

    def __init__(self, operand: Operand, outputs: Sequence[Operand]) -> None:
        self.name = operand.name
        self.array = _elements(operand.array)
        self.is_number = not isinstance(operand.array, np.ndarray)
        self.overwritten = not self.is_number and any(_shares(operand.array, each.array) for each in outputs)
        self.is_packed = self.array is not None and self.array.dtype.names is not None
        is_float = self.array is not None and self.array.dtype.kind not in "iub" and not self.is_packed
        is_float = is_float and not self.overwritten
        self.nan = np.isnan(self.array) if is_float else None
        self.infinite = np.isinf(self.array) if is_float else None

    @property
    def is_given(self) -> bool:
        """Return whether the elements are there to be looked at."""
        return isinstance(self.array, np.ndarray) and not self.overwritten

    @property
    def has_infinities(self) -> bool:
        """Return whether a visible element is infinite."""
        return self.infinite is not None and bool(self.infinite.any())

    def at(self, sources: Mapping[From, Array]) -> Any:
        """Return the element among the sources of a result's element; None for none, for several or for a lost one."""
        if self.array is None or self.overwritten or self.is_packed:
            return None
        if self.is_number:
            return self.array.item()
        chosen = sources.get(From(self.name))
        return None if chosen is None or np.count_nonzero(chosen) != 1 else self.array[chosen][0]


def _elements(value: Value | None) -> Any:
    """Return an array, or a number as one; None for an operand that is not there."""
    if isinstance(value, np.ndarray):
        return value
    return np.asarray(value) if isinstance(value, (int, float, np.generic)) else None


def _shares(first: Array, second: Array) -> bool:
    try:
        return np.shares_memory(first, second, max_work=_WORK)
    except np.exceptions.TooHardError:
        return True


def _origins(
    core: Core, plan: Plan, output: Operand, inputs: Sequence[_Input], flags: frozenset[str]
) -> tuple[Array, Array] | None:
    """Return masks of the output elements that are NaN and infinite although the operands were not."""
    nan, infinite = np.isnan(output.array), np.isinf(output.array)
    if output.where is not None:
        nan, infinite = nan & output.where, infinite & output.where
    if INVALID not in flags:
        nan = np.zeros_like(nan)
    if flags <= {INVALID}:
        infinite = np.zeros_like(infinite)
    for each in inputs:
        if each.nan is None or each.infinite is None or not (nan.any() or infinite.any()):
            continue
        broken = each.nan | each.infinite
        infinite &= ~_reached(plan, output.name, inputs, each, broken, infinite.shape)
        nan &= ~_reached(plan, output.name, inputs, each, broken if core.has_infinities else each.nan, nan.shape)
    return (nan, infinite) if nan.any() or infinite.any() else None


def _reached(plan: Plan, output: str, inputs: Sequence[_Input], operand: _Input, marked: Array, shape: Shape) -> Array:
    """Return a mask of the output elements that depend on the marked elements of an operand."""
    found: Array = np.zeros(shape, np.bool_)
    for source, rule in plan.elements.of(output):
        if source.operand == operand.name:
            found |= rule.results(marked, shape, _values(inputs))
    return found


def _values(inputs: Sequence[_Input]) -> dict[str, Array]:
    """Return the operands that are there to be looked at."""
    return {each.name: each.array for each in inputs if each.is_given and each.array is not None}


def _report(
    plan: Plan,
    settings: dict[str, Any],
    output: Operand,
    inputs: Sequence[_Input],
    nan: Array,
    infinite: Array,
    *,
    severity: str,
) -> None:
    origins = nan | infinite
    first = first_of(origins)
    kinds = " and ".join(what for each, what in ((nan, "NaN"), (infinite, "infinite")) if each.any())
    report(
        "NK404",
        f"{plan.name}: {np.count_nonzero(origins)} of {origins.size} elements of {describe(output.value)} become "
        f"{kinds}; the first at {list(first)} is {output.array[first]}"
        f"{_cause(plan, settings, output, inputs, first)}",
        about=(output.value,),
        picture=lambda: picture_of(nan + 2 * infinite, ORIGINS),
        severity=severity,
    )


def _cause(
    plan: Plan, settings: dict[str, Any], output: Operand, inputs: Sequence[_Input], first: tuple[int, ...]
) -> str:
    """Return the computation of an element, or a summary where the element depends on many."""
    wanted = np.zeros(output.array.shape, np.bool_)
    wanted[first] = True
    shapes = {each.name: each.array.shape for each in inputs if each.array is not None}
    sources = plan.elements.sources(output.name, wanted, shapes, _values(inputs))
    values = {each.name: each.at(sources) for each in inputs}
    if any(values[each.name] is None and each.is_given for each in inputs):
        given = [each for each in inputs if each.is_given and not each.is_packed]
        kind = "elements that are not NaN" if any(each.has_infinities for each in given) else "finite elements"
        sizes = [f"`{each.name}` up to {_largest(each.array)}" for each in given]
        return f", of {kind} (magnitudes: {', '.join(sizes)})" if sizes else ""
    gone = [f"`{each.name}`" for each in inputs if each.overwritten]
    lost = f" ({' and '.join(gone)}: overwritten by the result)" if gone else ""
    return f": {expression(plan.name, settings, values)}{lost}"


def _largest(array: Array) -> str:
    finite = np.abs(array.astype(np.float32))
    return str(np.max(finite, initial=0, where=np.isfinite(finite)))
