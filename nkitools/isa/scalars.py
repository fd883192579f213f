"""Scalars, which the device computes: read from a tensor, and written to one."""

from __future__ import annotations

from collections.abc import Callable

from nkitools.chip.core import current_core
from nkitools.chip.dtypes import int32, int64
from nkitools.chip.numerics import Array
from nkitools.chip.scalars import NkiScalar as NkiScalar
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME
from nkitools.issue.form import takes_64_bits
from nkitools.issue.instruction import Check, Dst, Instruction, Plan, Src
from nkitools.issue.instruction_guards import one_element
from nkitools.issue.plan import Scalar
from nkitools.issue.touched_elements import use_register
from nkitools.rules.finding import refuse


def _issued_as(name: str, parameters: str) -> Callable[[Callable[..., Plan]], Instruction[...]]:
    """Make a function the instruction that a public function of that name issues."""

    def make(function: Callable[..., Plan]) -> Instruction[...]:
        function.__name__ = name
        made = Instruction[...](takes_64_bits(function))
        made.call_form = f"The call form is nisa.{name}({parameters})."
        return made

    return make


def scalar_load(src: NkiTensor) -> NkiScalar:
    """Return the one element of an HBM or SBUF tensor of nl.int32 or nl.int64 as a scalar of that dtype.

    No unsigned dtype; all 64 bits are kept. Errors: NK109, NK201, NK301, NK401, NK609. Source: nki.isa.scalar_load
    (NKI 0.7).
    """
    scalar = NkiScalar(0)
    _load(dst=scalar, src=src)
    return scalar


def scalar_store(dst: NkiTensor, value: NkiScalar) -> None:
    """Store a scalar into the one element of an HBM or SBUF tensor of the scalar's own dtype.

    ``value`` may not be a Python integer: no instruction stores one.
    Errors: NK109, NK201, NK301, NK609. Source: nki.isa.scalar_store (NKI 0.7).
    """
    current_core("nisa.scalar_store")
    if not isinstance(value, NkiScalar):
        refuse(
            "NK609",
            f"nisa.scalar_store: argument `value` must be a scalar, it is {type(value).__name__}",
            remedy="Write a number that is known when the kernel is built with nisa.memset.",
        )
    if isinstance(dst, NkiTensor) and dst.dtype is not value.dtype:
        message = f"scalar_store: `value` is a scalar of {value.dtype}, and `dst` is {describe(dst)}; nothing is cast"
        refuse("NK301", message, about=(dst,), remedy=f"Give `dst` the dtype nl.{value.dtype}.")
    _store(dst=dst, value=value)


@_issued_as("scalar_load", "src")
def _load(check: Check, dst: Scalar, src: Src) -> Plan:
    _check_scalar(check, "src", src)
    dtype = src.dtype

    def compute(target: NkiScalar, values: Array) -> None:
        target.value, target.dtype = int(values.reshape(-1)[0]), dtype
        target.made_by((current_core("nisa.scalar_load").record.next_position,))

    return Plan("sync", 64.0, compute, made(dst={"src": SAME}))


@_issued_as("scalar_store", "dst, value")
def _store(check: Check, dst: Dst, value: Scalar) -> Plan:
    _check_scalar(check, "dst", dst)

    def compute(destination: Array, source: NkiScalar) -> None:
        destination[...] = source.integer("nisa.scalar_store")
        use_register(current_core("nisa.scalar_store"), source)

    return Plan("sync", 64.0, compute, made(dst={"value": SAME}))


def _check_scalar(check: Check, role: str, tensor: NkiTensor) -> None:
    """NK201, NK109, NK301: one element in HBM or SBUF, a signed integer of 32 or 64 bits."""
    one_element(check, role, tensor)
    if tensor.dtype not in (int32, int64):
        check.refuse("NK301", f"`{role}` must be of nl.int32 or nl.int64, it is {describe(tensor)}", tensor)
