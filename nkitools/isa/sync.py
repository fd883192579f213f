"""The two cores of a logical NeuronCore (LNC 2) wait for each other, and exchange or reduce tiles.

Here a program stands still at each of these until the other one has come; ``core.baton`` lets it run meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nkitools.chip.core import Core, current_core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import dma
from nkitools.engines.enums import dma_engine as dma_engines
from nkitools.engines.enums import engine as engines
from nkitools.engines.operators import OperatorToken
from nkitools.issue import guards, instruction_guards
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.carry_out import carry_out
from nkitools.issue.collective_call import REDUCING, reduced
from nkitools.issue.collective_meeting import place_of
from nkitools.issue.element_maps import Elements, From, made
from nkitools.issue.element_rules import SAME
from nkitools.issue.instruction import Check, Dst, NkiInstruction, Plan, Src, instruction
from nkitools.issue.plan import SRC
from nkitools.issue.resolve import plan_of
from nkitools.issue.undefined import Undefined
from nkitools.record.beside_rows import Transfer
from nkitools.rules.finding import not_modelled, refuse

BOTH = (0, 1)
GPSIMD_DMA_ELEMENTS = 256  # 1024 bytes of 32-bit types, 512 of 16-bit, 256 of 8-bit in each partition (sendrecv)
_WAITING = (engines.gpsimd, engines.vector, engines.scalar, engines.tensor, engines.sync, engines.unknown)

# "only allowed in NeuronCore-v3 or newer when LNC is enabled" (core_barrier, sendrecv)
_ONE_CORE = "takes both cores of a logical NeuronCore; this kernel is launched on one"
_LAUNCH = "Launch it as kernel[2](...), or branch on nl.num_programs(0)."


_Sent: TypeAlias = tuple[Array, Undefined]  # the elements that a core sends, and which of them are undefined


class _Form(NamedTuple):
    """The name and call form of a function, as instructions have them."""

    name: str
    call_form: str


_ONE_CORE_RUNS = "Leave it out: on this chip a kernel runs on one core."
_FORM = _Form("core_barrier", "The call form is nisa.core_barrier(data, cores, engine=nisa.engine.gpsimd, name=None).")


def core_barrier(
    data: NkiTensor, cores: Sequence[int], engine: engines = engines.gpsimd, name: str | None = None
) -> NkiInstruction:
    """Wait until both cores arrive; afterwards each core sees what the other has written to ``data``.

    ``data``: a tensor in shared HBM, the same one on both cores; the barrier orders accesses to it (to the whole of
    the tensor that a view belongs to) and to nothing else, as the other engines of a core do not wait. ``cores``:
    (0, 1); (0,) or 0, undocumented but in public kernels for a launch on one core, waits for no other core. ``data``
    in SBUF, in public kernels too, lets the cores wait for each other and orders no accesses (NK621). ``engine``: who
    waits; it changes no result. A core that waits in vain is NK504. Errors: NK201, NK206, NK504, NK606, NK609, NK613,
    NK621.
    Source: nki.isa.core_barrier (NKI 0.6). No cost is published: that of the shortest instruction, without the wait.
    """
    core = current_core("nisa.core_barrier")
    check = Check("core_barrier", core.generation, core.language)
    members = _checked_cores(check, cores)
    _check_data(check, core, data)
    guards.one_of(check, "engine", engine, engines, _WAITING)
    # Cores of NeuronCore-v2 do not share a memory.
    guards.came_later(check, "core_exchange", check.instruction, _ONE_CORE_RUNS)
    if members == BOTH and len(core.team) == len(BOTH):
        _meet_at(core, data)
    elif members == BOTH:
        check.fail("NK613", f"`cores`={BOTH} {_ONE_CORE}", remedy=_LAUNCH)
    chosen = engines.gpsimd if engine is engines.unknown else engine

    def make() -> Plan:
        cycles = float(core.generation.min_initiation_cycles)
        return Plan(chosen.name, cycles, lambda data: None, made(), names_only=True, name="core_barrier")

    plan = plan_of(core, ("core_barrier", chosen), make, ("data", False))
    carry_out(CarefulCall(core, plan, (SRC,), (data,), plan), _FORM, name)
    return NkiInstruction(core.device_loop)


def _checked_cores(check: Check, cores: Any) -> tuple[int, ...]:
    """NK609: both cores, or core 0 alone."""
    given = tuple(cores) if isinstance(cores, (list, tuple)) else (cores,)
    if not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in given):
        check.refuse("NK609", f"`cores` must be (0, 1), it is {cores!r}")
    if given not in (BOTH, (0,)):
        check.refuse("NK609", f"`cores` must be (0, 1), the only cores that are supported; it is {cores!r}")
    return tuple(int(each) for each in given)


def _check_data(check: Check, core: Core, data: Any) -> None:
    """NK609, NK201, NK621: data that both cores reach. On one core every HBM tensor is its own."""
    if not isinstance(data, NkiTensor):
        check.refuse("NK609", f"`data` must be a tensor, it is {type(data).__name__}")
    private = (MemoryRegion.private_hbm,) if len(core.team) < 2 else ()
    if data.buffer not in (MemoryRegion.shared_hbm, MemoryRegion.sbuf, *private):
        message = f"`data` must be in shared HBM, which both cores reach; it is {describe(data)}"
        check.fail("NK201", message, data, remedy="Allocate it with buffer=nl.shared_hbm.")
    elif data.buffer is MemoryRegion.sbuf:
        message = (
            f"`data`, {describe(data)}, lies in the SBUF of this core; the documents have data in shared HBM only. The "
            "cores wait for each other, and no accesses are ordered"
        )
        check.goes_beyond(message, data, remedy="Name the tensor in shared HBM that both cores access.")


def _meet_at(core: Core, data: NkiTensor) -> None:
    storage = data.storage
    shared = storage.memory is MemoryRegion.shared_hbm

    def settle(offered: dict[int, Any]) -> None:
        core.record.met([(number,) for number in BOTH], storage.id)

    core.baton.meet(
        ("core_barrier", storage.id if shared else storage.memory),
        core.team,
        None,
        lambda: f"waits in nisa.core_barrier of {describe(data)} at {place_of(core)}",
        settle,
    )


@instruction
def sendrecv(
    check: Check,
    src: Src,
    dst: Dst,
    send_to_rank: int,
    recv_from_rank: int,
    pipe_id: int,
    dma_engine: dma_engines = dma_engines.dma,
    name: str | None = None,
) -> Plan:
    """Send ``src`` to the other core's ``dst``, and receive what that core sends into this one's ``dst``.

    Shapes: equal, on both cores. Dtypes: equal, any. Memory: SBUF; the two may be parts of one tensor. The n-th call of
    a core with a ``pipe_id`` meets the n-th of the other core; nothing goes on before both have come. Here a program
    waits at each call: two that use two pipes in opposite orders are NK504, though the reference lets pipes progress
    independently. ``send_to_rank`` and ``recv_from_rank`` are the other core, 0 or 1; what a core would send to itself
    is NK607. ``dma_engine=gpsimd_dma`` moves at most 256 elements of each partition, 1024 bytes.
    Errors: NK101, NK102, NK107, NK109, NK110, NK201, NK301, NK401, NK504, NK606, NK607, NK609, NK613.
    Source: nki.isa.sendrecv (NKI 0.6). No cost is published: that of a DMA transfer of these bytes, without the wait.
    """
    guards.one_of(check, "dma_engine", dma_engine, dma_engines)
    _check_ranks(check, send_to_rank, recv_from_rank)
    instruction_guards.integer(check, "pipe_id", pipe_id)
    for role, tensor in (("src", src), ("dst", dst)):
        guards.memory(check, tensor, role, (MemoryRegion.sbuf,))
    _check_tiles(check, src, dst)
    if dma_engine is dma_engines.gpsimd_dma:
        _check_gpsimd_dma(check, src)
    guards.came_later(check, "core_exchange", check.instruction)  # cores of NeuronCore-v2 do not share a memory

    pipe, ranks, form = int(pipe_id), (int(send_to_rank), int(recv_from_rank)), (dst.dtype.name, dst.shape)

    def compute(source: Array, destination: Array, *, undefined: Undefined) -> Undefined:
        core = current_core("nisa.sendrecv")
        received, missing = _exchange(core, "sendrecv", pipe, ranks, (form, (np.array(source), undefined)))
        np.copyto(destination, received.reshape(destination.shape))
        return missing.reshaped(destination.shape)

    elements = Elements((("dst", ((From("src", core=int(recv_from_rank)), SAME),)),))
    return Plan("dma", 0.0, compute, elements, nanoseconds=dma(check.chip, dst, src), lanes="exchange")


@instruction
def sendrecv_compute(
    check: Check,
    src: Src,
    dst: Dst,
    send_to_rank: int,
    recv_from_rank: int,
    reduce_op: OperatorToken,
    name: str | None = None,
) -> Plan:
    """``dst = src reduce_op (src of the other core)``: send ``src`` as `sendrecv` does, and reduce what is received.

    Shapes and dtypes: equal, on both cores; no packed dtypes. Memory: both in SBUF, or both in private HBM; the two may
    be parts of one tensor. ``reduce_op``: nl.add, nl.maximum or nl.minimum, computed in float32 and cast once. The n-th
    call of a core meets the n-th of the other core. ``send_to_rank`` and ``recv_from_rank`` are the other core, 0 or 1;
    what a core would send to itself is NK607.
    Errors: NK101, NK102, NK107, NK109, NK110, NK201, NK301, NK306, NK401, NK504, NK606, NK607, NK609, NK613.
    Source: nki.isa.sendrecv_compute (NKI 0.7). No cost is published: that of a dma_compute of these bytes, without the
    wait.
    """
    _check_ranks(check, send_to_rank, recv_from_rank)
    for role, tensor in (("src", src), ("dst", dst)):
        guards.memory(check, tensor, role, (MemoryRegion.sbuf, MemoryRegion.private_hbm))
        guards.not_packed(check, **{role: tensor})
    if src.buffer is not dst.buffer:
        message = f"`src` and `dst` must be in one memory; they are {describe(src)} and {describe(dst)}"
        check.refuse("NK201", message, src, dst, remedy="Copy one of them with nisa.dma_copy.")
    _check_tiles(check, src, dst)
    found = guards.operator(check, "reduce_op", reduce_op)
    if found.name not in REDUCING:
        check.refuse("NK306", f"`reduce_op`={found} is not supported; nl.add, nl.maximum and nl.minimum are")
    guards.came_later(check, "core_exchange", check.instruction)

    ranks, dtype, form = (int(send_to_rank), int(recv_from_rank)), dst.dtype, (dst.dtype.name, dst.shape)

    def compute(source: Array, destination: Array, *, undefined: Undefined) -> Undefined:
        core = current_core("nisa.sendrecv_compute")
        received, missing = _exchange(core, "sendrecv_compute", None, ranks, (form, (np.array(source), undefined)))
        total = reduced(found, [source, received.reshape(source.shape)])
        put(destination, total.reshape(destination.shape), dtype)
        return undefined.joined(missing.reshaped(destination.shape))

    elements = Elements((("dst", ((From("src"), SAME), (From("src", core=int(recv_from_rank)), SAME))),))
    nanoseconds = check.chip.dma_compute_passes * dma(check.chip, dst, src)
    return Plan("dma", 0.0, compute, elements, nanoseconds=nanoseconds, lanes="exchange")


def _check_ranks(check: Check, send_to_rank: int, recv_from_rank: int) -> None:
    """NK609: cores 0 and 1."""
    for role, rank in (("send_to_rank", send_to_rank), ("recv_from_rank", recv_from_rank)):
        instruction_guards.integer(check, role, rank, 0, 1)


def _check_tiles(check: Check, src: NkiTensor, dst: NkiTensor) -> None:
    """NK101, NK102, NK107, NK109, NK110, NK301: two tiles of one size and dtype."""
    guards.sizes(check, ("src", src), ("dst", dst))
    guards.same_elements(check, ("dst", dst), ("src", src))
    if dst.shape != src.shape:
        remedy = "Reshape one of them: src and dst must have the same shape and layout."
        check.fail("NK109", f"`dst` is {describe(dst)} and `src` is {describe(src)}", dst, src, remedy=remedy)
    instruction_guards.same_dtype(check, ("dst", dst), ("src", src))


def _check_gpsimd_dma(check: Check, src: NkiTensor) -> None:
    """NK107: what the GpSimd Engine's DMA moves at once."""
    most = GPSIMD_DMA_ELEMENTS * min(src.dtype.itemsize, 4)
    used = src.layout.free_elements * src.dtype.itemsize
    if used > most:
        message = (
            f"`src`, {describe(src)}, has {used} bytes in each partition; `dma_engine`={dma_engines.gpsimd_dma} moves "
            f"at most {most}"
        )
        check.fail("NK107", message, src, remedy="Send it in parts, or leave dma_engine out.")


def _exchange(core: Core, name: str, pipe: int | None, ranks: tuple[int, int], mine: tuple[Any, _Sent]) -> _Sent:
    """Exchange data with the other core, by instruction ``name`` and its ``pipe``, if it has one; return the other's
    data.

    NK613, NK607 if there is no other core, or it is not the named one.
    """
    if len(core.team) != len(BOTH):
        refuse("NK613", f"{name}: an exchange {_ONE_CORE}", remedy=_LAUNCH)
    own = core.team.index(core.baton.running)
    for role, rank in zip(("send_to_rank", "recv_from_rank"), ranks, strict=True):
        if rank == own:
            message = f"{name}: `{role}`={rank} is this core itself; the reference describes an exchange of two cores"
            not_modelled(message, remedy=f"Pass {1 - own}, the other core: 1 - nl.program_id(0).")
    place = place_of(core)

    def settle(offered: dict[int, Any]) -> None:
        _check_partners(offered, core, name, pipe)
        core.record.met([(number,) for number in BOTH])

    offered = core.baton.meet(
        (name, pipe),
        core.team,
        (*mine, place),
        lambda: f"waits in nisa.{name}{'' if pipe is None else f' with pipe_id={pipe}'} at {place}",
        settle,
    )
    senders = (core.team[1 - own],)
    core.record.beside.transfers.append(Transfer(core.record.next_position, core.team, core.team[own], senders))
    received: _Sent = offered[core.team[1 - own]][1]
    return received


def _check_partners(offered: dict[int, Any], core: Core, name: str, pipe: int | None) -> None:
    """NK109, NK102, NK301: the two cores exchange tiles of one form."""
    (first, _, first_place), (second, _, second_place) = (offered[number] for number in core.team)
    if first == second:
        return
    (dtype, shape), (other_dtype, other_shape) = first, second
    rule = "NK301" if dtype != other_dtype else "NK102" if shape[0] != other_shape[0] else "NK109"
    if rule == "NK109" and np.prod(shape) == np.prod(other_shape):
        return
    message = (
        f"{name}: {'' if pipe is None else f'on pipe_id={pipe} '}program 0 exchanges {dtype} {list(shape)} at "
        f"{first_place} and program 1 {other_dtype} {list(other_shape)} at {second_place}"
    )
    own_pipe = "" if pipe is None else ", and give each exchange a pipe_id of its own"
    refuse(rule, message, remedy=f"Exchange tiles of one shape and dtype{own_pipe}.")
