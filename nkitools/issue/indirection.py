"""Tensor indirection (NeuronCore-v4): which instructions allow it, in which operands, on which engines.

Source: the paragraphs "Tensor indirection" of nki.isa (NKI 0.6).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.dtypes import int32, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.operators import Operator
from nkitools.facts.light_classes import dataclass
from nkitools.issue.plan import Check, Plan

_GROUP = {"tensor": 32}  # partitions that hold one turn of the offsets
_OTHERS_GROUP = 16
_QUADRANT = 32
_WORDS = (int32, uint32)
_MATMULS = ("nc_matmul", "nc_matmul_mx")
_MATMUL = frozenset({"float16", "bfloat16", "float8_e4m3", "float8_e5m2", "float8_e4m3fn"})


@dataclass(frozen=True)
class Ability:
    """An instruction's abilities: the operand that a scattered ``dst`` is lined up with, other inputs, its engines."""

    main: str
    engines: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands that may be indirect."""
        return ("dst", self.main, *self.others)


ABILITIES = {
    "activate2": Ability("data", ("scalar",)),
    "activation": Ability("data", ("scalar",)),
    "activation_reduce": Ability("data", ("scalar",)),
    "exponential": Ability("src", ("vector",)),
    "nc_matmul": Ability("stationary", ("tensor",), ("moving",)),
    "nc_matmul_mx": Ability("stationary", ("tensor",), ("moving", "stationary_scale", "moving_scale")),
    "tensor_copy": Ability("src", ("vector", "scalar")),
    "tensor_copy_predicated": Ability("predicate", ("vector",)),
    "tensor_reduce": Ability("data", ("vector",)),
    "tensor_scalar": Ability("data", ("vector", "scalar", "gpsimd")),
    "tensor_scalar_cumulative": Ability("src", ("vector",)),
    "tensor_scalar_reduce": Ability("data", ("vector",)),
    "tensor_tensor": Ability("data1", ("vector", "gpsimd")),
}


def used_in(operands: Iterable[Any]) -> bool:
    """Return whether some operand is a view with tensor indirection."""
    return any(isinstance(each, ColumnTensor) for each in operands)


def check_operands(check: Check, arguments: Mapping[str, Any]) -> None:
    """NK606, NK609, NK301: the chip, the operands and the forms of the call that take tensor indirection."""
    ability = ABILITIES.get(check.instruction)
    for role, value in arguments.items():
        if ability is not None and role in ability.operands:
            continue
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, ColumnTensor):
                check.refuse("NK609", f"`{role}` takes no tensor indirection, it is {describe(tensor)}", tensor)
    if not check.chip.tensor_indirection:
        message = f"tensor indirection came with NeuronCore-v4; {check.chip.name} does not have it"
        check.fail("NK606", message, remedy="Gather with nisa.nc_n_gather, or by a DMA with .ap(vector_offset=...).")
    if check.instruction in _MATMULS:
        _check_position(check, arguments)
    if check.instruction == "nc_matmul":
        _check_matmul(check, arguments)
    if check.instruction == "nc_matmul_mx":
        for role in ("stationary", "moving"):
            _check_pair(check, role, arguments[role], arguments[f"{role}_scale"])
    if check.instruction == "tensor_scalar":
        _check_addresses(check, arguments)


def _check_matmul(check: Check, arguments: Mapping[str, Any]) -> None:
    """NK609, NK301: no transpose of gathered columns, float operands of 16 or 8 bits."""
    if arguments["is_transpose"] and isinstance(arguments["moving"], ColumnTensor):
        check.refuse("NK609", "`moving` takes no tensor indirection with is_transpose=True", arguments["moving"])
    for role in ("stationary", "moving"):
        tensor = arguments[role]
        if isinstance(tensor, ColumnTensor) and tensor.dtype.name not in _MATMUL:
            message = f"`{role}`, {describe(tensor)}, has tensor indirection, which takes {', '.join(sorted(_MATMUL))}"
            check.fail("NK301", message, tensor)


def _check_position(check: Check, arguments: Mapping[str, Any]) -> None:
    """NK609: no tiling of the array."""
    if arguments["tile_position"] not in (None, (), (0, 0)):
        position = arguments["tile_position"]
        check.refuse("NK609", f"tensor indirection goes with `tile_position`=(0, 0) only, it is {position}")


def _check_pair(check: Check, role: str, values: NkiTensor, scales: NkiTensor) -> None:
    """Check that packed elements and their scales are one logical tensor with one index (NK609)."""
    first, second = (each.index if isinstance(each, ColumnTensor) else None for each in (values, scales))
    if first is None and second is None:
        return
    if first is None or second is None or not first.same_place(second):
        message = (
            f"`{role}` and `{role}_scale` must both have tensor indirection with the same index, or neither; they are "
            f"{describe(values)} and {describe(scales)}"
        )
        check.refuse("NK609", message, values, scales)


def _check_addresses(check: Check, arguments: Mapping[str, Any]) -> None:
    """NK301: address arithmetic, on 32-bit integers throughout, takes no tensor indirection."""
    vectors = [
        operand
        for operand, token in ((arguments["operand0"], arguments["op0"]), (arguments["operand1"], arguments["op1"]))
        if isinstance(operand, NkiTensor) and not (isinstance(token, Operator) and token.kind == "bitvec")
    ]
    if vectors and all(each.dtype in _WORDS for each in (arguments["dst"], arguments["data"], *vectors)):
        check.refuse(
            "NK301", "tensor_scalar of int32 or uint32 tiles and vectors takes no tensor indirection", *vectors
        )


def use(check: Check, arguments: Mapping[str, Any], plan: Plan) -> None:
    """Check the engine of a plan and the operands' start partitions, and align the views for the engine."""
    ability = ABILITIES[check.instruction]
    views = {role: arguments[role] for role in ability.operands if isinstance(arguments[role], ColumnTensor)}
    if plan.engine not in ability.engines:
        names = " or ".join(ability.engines)
        message = f"tensor indirection runs on engine {names}, this runs on {plan.engine}"
        check.fail("NK206", message, *views.values(), argument="engine")
    if plan.engine == "scalar" and "dst" in views:
        dst = views["dst"]
        if dst.buffer is MemoryRegion.psum:
            check.fail(
                "NK201", f"the Scalar Engine does not scatter into PSUM, where `dst`, {describe(dst)}, lies", dst
            )
    _check_starts(check, ability, arguments, views)
    for view in views.values():
        view.line_up(group_of(plan.engine))


def group_of(engine: str) -> int:
    """Return the number of partitions that hold one round of an engine's offsets."""
    return _GROUP.get(engine, _OTHERS_GROUP)


def done(arguments: Mapping[str, Any]) -> None:
    """Forget the operands that an instruction has lined up, which are for that instruction only."""
    for value in arguments.values():
        if isinstance(value, ColumnTensor):
            value.offsets = None


def _check_starts(
    check: Check, ability: Ability, arguments: Mapping[str, Any], views: Mapping[str, ColumnTensor]
) -> None:
    """NK108: start partitions of manually allocated operands. The compiler places the others so that they fit."""
    for role, view in views.items():
        first = _start(view.index)
        if first is not None and first % _QUADRANT:
            message = f"the index of `{role}`, {describe(view.index)}, begins at partition {first}"
            check.fail("NK108", message, view.index, remedy="Let the index begin at partition 0, 32, 64 or 96.")
        if role != "dst" and not role.endswith("_scale"):
            _same_start(check, f"the index of `{role}`", view.index, f"`{role}`", view)
    scattered, main = views.get("dst"), arguments[ability.main]
    if scattered is None:
        return
    if check.instruction in _MATMULS or main.buffer is MemoryRegion.sbuf:
        _same_start(check, "the index of `dst`", scattered.index, f"`{ability.main}`", main)
    elif isinstance(main, ColumnTensor):
        _same_start(check, "the index of `dst`", scattered.index, f"the index of `{ability.main}`", main.index)


def _same_start(check: Check, role: str, tensor: NkiTensor, other_role: str, other: NkiTensor) -> None:
    first, second = _start(tensor), _start(other)
    if first is not None and second is not None and first != second:
        message = (
            f"{role}, {describe(tensor)}, begins at partition {first} and {other_role}, {describe(other)}, at "
            f"{second}; with tensor indirection both begin at the same"
        )
        check.fail("NK108", message, tensor, other)


def _start(tensor: NkiTensor) -> int | None:
    """Return the first partition of a manually allocated tensor."""
    return tensor.layout.start_partition if tensor.storage.physical is not None else None
