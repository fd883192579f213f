"""Registers of the engines' sequencers: scalars that steer loops and addresses."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array, cast
from nkitools.chip.registers import VirtualRegister as VirtualRegister
from nkitools.chip.registers import check_value
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.instruction_guards import one_element
from nkitools.issue.plan import Register, RegisterOrNumber
from nkitools.issue.touched_elements import set_register, use_register
from nkitools.rules.finding import refuse


def register_alloc(x: int | NkiTensor | None = None) -> VirtualRegister:
    """Return a new register that holds ``x``; without ``x`` it holds nothing, and reading it is NK401.

    ``x``: a Python integer of 32 bits (-2**31 to 2**32 - 1), or a tensor of one element, which is loaded as by
    nisa.register_load: undocumented, but public kernels do so.
    Errors: NK109, NK201, NK301, NK401, NK609. Source: nki.isa.register_alloc (NKI 0.6).
    """
    if isinstance(x, NkiTensor):
        loaded = VirtualRegister()
        register_load(dst=loaded, src=x)
        return loaded
    if x is not None and not isinstance(x, int):
        refuse("NK609", f"nisa.register_alloc takes an integer or nothing, it is given {type(x).__name__}")
    return VirtualRegister(x)


@instruction
def register_move(check: Check, dst: Register, src: RegisterOrNumber) -> Plan:
    """Write a number into the register ``dst``: the integer ``src``, or the value of a register or an int32 scalar.

    The counter of a dynamic loop cannot be written (NK601), a scalar of 64 bits not be read (NK301).

    Errors: NK301, NK401, NK601, NK609. Source: nki.isa.register_move (NKI 0.6).
    """

    def compute(target: VirtualRegister, value: Any) -> None:
        what = "nisa.register_move"
        if not isinstance(value, DeviceNumber):
            check_value(what, value)
        target.write(what, value.operand() if isinstance(value, DeviceNumber) else value)
        core = current_core(what)
        if isinstance(value, DeviceNumber):
            use_register(core, value)
        set_register(core, target)

    return Plan("sync", 1.0, compute, made(dst={"src": SAME}))


@instruction
def register_load(check: Check, dst: Register, src: Src) -> Plan:
    """Load the one element of an HBM or SBUF tensor, of up to 32 bits, into the register ``dst``.

    A float stays a float, which no address and no loop bound takes (NK301). The counter of a dynamic loop cannot be
    written (NK601).
    Errors: NK109, NK201, NK301, NK401, NK601, NK609. Source: nki.isa.register_load (NKI 0.6).
    """
    _check_number(check, "src", src)

    def compute(target: VirtualRegister, values: Array) -> None:
        element = values.reshape(-1)[0]
        target.write("nisa.register_load", float(element) if src_is_float else int(element))
        set_register(current_core("nisa.register_load"), target)

    src_is_float = src.dtype.is_float
    return Plan("sync", 64.0, compute, made(dst={"src": SAME}))


@instruction
def register_store(check: Check, dst: Dst, src: Register) -> Plan:
    """Store a register's value into the one element of an HBM or SBUF tensor, cast to its dtype.

    Integers saturate (NK304). The tensor has at most 32 bits an element.
    Errors: NK109, NK201, NK301, NK401, NK609. Source: nki.isa.register_store (NKI 0.6).
    """
    _check_number(check, "dst", dst)
    dtype: DType = dst.dtype

    def compute(destination: Array, source: VirtualRegister) -> None:
        value = source.read("nisa.register_store")
        wide = np.asarray([value], np.float32 if isinstance(value, float) else np.int64)
        destination[...] = cast(wide, dtype)[0]
        use_register(current_core("nisa.register_store"), source)

    return Plan("sync", 64.0, compute, made(dst={"src": SAME}))


def _check_number(check: Check, role: str, tensor: NkiTensor) -> None:
    """NK201, NK109, NK301: one element in HBM or SBUF, of no packed dtype."""
    one_element(check, role, tensor)
    if tensor.dtype.kind == "packed":
        check.refuse("NK301", f"a register holds a number, `{role}` is {describe(tensor)}", tensor)
