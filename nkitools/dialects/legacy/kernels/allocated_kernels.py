"""Kernels with direct allocation (NK614): all tensors on chip are allocated by hand, and nothing else needs one.

Checked at the end of the kernel, since the first tensor may be automatic and the last allocated directly. Values that
were assigned at once were written in place (`copy_elision`); the record has the others, which needed a tensor of their
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from nkitools.chip.core import current_core
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.kernel_state import Form
from nkitools.rules.finding import report

# What an instruction needs a tensor for that no allocation has placed: the sentence, and what to do about it.
_TRANSPOSE = (
    "nc_transpose on the Tensor Engine reads an identity matrix without an allocation "
    "(err_transpose_on_tensor_engine_not_allowed_in_allocated_kernel)",
    "Load an identity matrix of your own and call nisa.nc_matmul(tile, identity); up to 32 x 32 pass "
    "engine=nisa.vector_engine; call nl.matmul with transpose_x=True.",
)
_BIAS = (
    "{name} without `bias` reads a bias of zeros without an allocation "
    "(err_bias_tensor_must_be_specified_in_allocation)",
    "Call nisa.activation with bias=, an allocated (partitions, 1) tile that you have filled with 0.",
)
_IMPLICIT = (
    "{name} writes to a tensor {tensor} that the call made without an allocation",
    "Assign the call's result at once to an allocated tensor, tile[...] = nl.load(x); write calls that "
    "need tensors in between (nl.softmax and the like) as nisa calls.",
)


def check_allocated(form: Form, returned: Sequence[NkiTensor]) -> None:
    """NK614: a kernel with direct allocation also has automatic tensors. Kernels without direct allocation are not
    checked.
    """
    direct = [tensor for tensor in form.declared if tensor.storage.physical is not None]
    if not direct or form.automatic:
        return
    _check_hbm(form, returned)
    _check_automatic(form, direct[0])
    _check_instructions(form, form.created)


def _at(site: int) -> AbstractContextManager[None]:
    return placed(current_core("nki.jit").record.sites[site])


def _check_hbm(form: Form, returned: Sequence[NkiTensor]) -> None:
    outputs = {tensor.storage.id for tensor in returned}
    others = [each for each in form.declared if not each.on_chip and each.storage.id not in outputs]
    if others:
        record = current_core("nki.jit").record
        names = ", ".join(record.name_of(each.storage.id) or describe(each) for each in others)
        with _at(others[0].storage.site):
            message = f"Non IO HBM tensor is not supported in allocated NKI kernel: {names}"
            remedy = "With direct allocation only tensors that the kernel returns may be created in HBM."
            report("NK614", message, about=others, remedy=remedy)


def _check_automatic(form: Form, direct: NkiTensor) -> None:
    for tensor in form.declared:
        if tensor.on_chip and tensor.storage.physical is None:
            with _at(tensor.storage.site):
                message = (
                    f"{describe(tensor)} is allocated automatically and {describe(direct)} directly; in one kernel all "
                    "tensors are allocated one way"
                )
                remedy = "Give it a place too, buffer=nki.compiler.sbuf.mod_alloc(base_addr=...), or give none any."
                report("NK614", message, about=(tensor, direct), remedy=remedy)


def _check_instructions(form: Form, declared: set[int]) -> None:
    reported: set[int] = set()
    for row in current_core("nki.jit").record.rows_between(form.began):
        plan, site = row.plan, row.site
        if plan.name == "nc_transpose" and plan.engine == "tensor":
            reported.update(row.storages())
            _report(site, _TRANSPOSE)
            continue
        unbiased = plan.written.count(False) == 1 or row.position in form.unbiased
        if plan.name.startswith("activation") and unbiased:
            _report(site, _BIAS, name=plan.name)
        for storage, layout, _, written in row.accesses():
            is_expected = storage in declared or storage in reported or storage in form.assigned
            if written and layout.on_chip and not is_expected:
                reported.add(storage)
                tensor = f"({layout.memory.name.upper()}, {layout.dtype} {list(layout.shape)})"
                _report(site, _IMPLICIT, name=plan.name, tensor=tensor)


def _report(site: int, told: tuple[str, str], **named: str) -> None:
    sentence, remedy = told
    with _at(site):
        report("NK614", sentence.format(**named), remedy=remedy)
