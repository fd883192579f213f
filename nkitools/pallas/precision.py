"""``nkitools.pallas.precision_split``: how much of a Pallas kernel's error is low precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nkitools.pallas.chips import CHIPS, DEFAULT
from nkitools.pallas.device_kinds import simulated_kinds
from nkitools.pallas.imports import jax_module, without_jax_warnings
from nkitools.pallas.jax_types import Argument
from nkitools.pallas.launch import TARGET, as_given, run
from nkitools.pallas.widened import Widening
from nkitools.precision.difference import exact
from nkitools.precision.runs import Half, Values, arrays_in
from nkitools.precision.split import PrecisionSplit, split_of
from nkitools.record.run import Run


@dataclass(eq=False)
class _WideRun(Run):
    """The run in full precision, with the operations that still rounded."""

    bits_of: dict[str, int] = field(default_factory=dict)

    @property
    def rounded(self) -> dict[str, int]:
        return self.bits_of


def precision_split(
    fn: Callable[..., Any], /, *args: Argument, reference: Argument = None, **kwargs: Argument
) -> PrecisionSplit:
    """Run ``fn(*args, **kwargs)`` in its dtypes and in float32, and return how much of the error low precision causes.

    Both runs are plain interpretation on the CPU. In the second one every float of less than 32 bits is float32, also
    in the function's arrays and scratch memory. ``reference`` and the result are those of `nkitools.precision_split`;
    the tensors are the outputs. Exceptions of ``fn`` pass through. TypeError if ``fn`` is no JAX function or
    ``reference`` holds no array, ValueError for a reference of another number or shape of arrays, ``NotModelled``
    (NK607) for an operation without a float32 form (``shard_map``) and without JAX.
    """
    __tracebackhide__ = True
    precise = run(fn, *args, **kwargs)
    jax, widening = jax_module(), Widening()
    with without_jax_warnings(), simulated_kinds(CHIPS[DEFAULT]):
        traced, shapes = jax.make_jaxpr(lambda: fn(*args, **kwargs), return_shape=True)()
        outputs = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), widening.outputs(traced))
    full = _WideRun(
        precise.kernel, TARGET, precision="full", outputs=as_given(outputs, ()), bits_of=dict(widening.rounded)
    )
    right: Any = reference  # of NKI's kernels the types of arguments are others
    return split_of(_half(precise), _half(full), right, args, kwargs)


def _half(run: Run) -> Half:
    outputs = {name: Values(exact(array), str(array.dtype)) for name, (_, array) in arrays_in("output", run.outputs)}
    return Half(run, outputs, {}, frozenset(), frozenset())
