"""AWS's codes about the kernel as a whole: its scopes and loops, its outputs, and where it creates tensors."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
import pytest

from tests.dialects.legacy.errors import Case, check, run
from tests.dialects.legacy.running import random

HALF = random(128, 64)
PAIR = (random(128, 64), random(128, 64, seed=1))


def branch_scope(x: Any, y: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(4):
        if i < 2:  # noqa: SIM108 - the form of the documentation
            tile = nl.load(x)
        else:
            tile = nl.load(y)
        nl.store(out, tile)  # here
    return out


def before_the_branch(x: Any, y: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(4):
        tile = nl.ndarray(shape=x.shape, dtype=x.dtype)
        if i < 2:
            tile[...] = nl.load(x)
        else:
            tile[...] = nl.load(y)
        nl.store(out, tile)
    return out


def rebound(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.load(x)
    for i in nl.sequential_range(4):
        number = nisa.iota(i, dtype=nl.float32).broadcast_to(data.shape)
        data = data + number
    nl.store(out, value=data)  # here
    return out


def updated(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data = nl.load(x)
    for i in nl.sequential_range(4):
        number = nisa.iota(i, dtype=nl.float32).broadcast_to(data.shape)
        data[...] = data + number
    nl.store(out, value=data)
    return out


def chosen_before_compilation(x: Any, flag: bool = True) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if flag:  # noqa: SIM108 - as above
        tile = nl.ndarray(x.shape, dtype=x.dtype)
    else:
        tile = nl.ndarray(x.shape, dtype=nl.bfloat16)
    tile[...] = nl.load(x)
    nl.store(out, tile)
    return out


def asks_first(x: Any) -> Any:
    out = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.zeros((1, 1), dtype=x.dtype)
    number = nt.scalar(tile)
    while number < 10:  # here
        tile[...] = tile + 4
        number = nt.scalar(tile)
    nl.store(out, tile)
    return out


def runs_first(x: Any) -> Any:
    out = nl.ndarray((1, 1), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.zeros((1, 1), dtype=x.dtype)
    condition = nt.scalar(True)
    while condition:
        tile[...] = tile + 4
        condition = nt.scalar(tile) < 10
    nl.store(out, tile)
    return out


def shared_in_a_loop(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(2):
        other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # here
        nl.store(other, i)
    nl.store(out, nl.load(x))
    return out


def shared_under_a_condition(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) >= 1:
        other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # here
        nl.store(other, 1)
    nl.store(out, nl.load(x))
    return out


def shared_at_the_top(x: Any, training: bool = True) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if training:
        other = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(other, 1)
    nl.store(out, nl.load(x))
    return out


def initialised_in_hbm(x: Any) -> Any:
    out = nl.full(x.shape, 1.0, dtype=x.dtype, buffer=nl.shared_hbm)  # here
    nl.store(out, nl.load(x))
    return out


def stored_in_hbm(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, 1.0)
    tile = nl.load(x)
    nl.store(out[0:64, :], tile[0:64, :])
    return out


def changes_its_input(x: Any) -> Any:
    nl.store(x, value=nl.load(x) + 1)  # here
    return x


def changes_a_mutable_input(x: nt.mutable_tensor) -> Any:
    nl.store(x, value=nl.load(x) + 1)
    return x


def keeps_a_mutable_input(x: nt.mutable_tensor) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    nl.store(x, 0)
    return out  # here


def dead_loop(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # here
    for _ in nl.affine_range(x.shape[0] // 129):
        nl.store(out, nl.load(x))
    return out


def half_written(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # here
    for i in nl.affine_range(x.shape[0] // 64 - 1):
        nl.store(out[nl.ds(64 * i, 64), :], nl.load(x[nl.ds(64 * i, 64), :]))
    return out


def living_loop(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in nl.affine_range(-(-x.shape[0] // 129)):
        nl.store(out, nl.load(x))
    return out


@nki.trace
def writes_nothing(x: Any, out: Any) -> None:  # here
    for _ in nl.affine_range(x.shape[0] // 129):
        nl.store(out, nl.load(x))


def one_place(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 4, 16), dtype=x.dtype)
    nl.store(out, nl.load(x))
    for _ in nl.affine_range(4):
        tile[:, 0, :] = 0  # here
    return out


def a_place_each(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 4, 16), dtype=x.dtype)
    for i in nl.affine_range(4):
        tile[:, i, :] = nl.load(x[:, nl.ds(16 * i, 16)])
    for _ in nl.sequential_range(4):
        tile[:, 0, :] = 0
    nl.store(out, tile.reshape((128, 64)))
    return out


CASES = [
    Case("err_local_variable_used_out_of_scope", "NK605", branch_scope, before_the_branch, PAIR),
    Case("err_local_variable_used_out_of_scope", "NK605", rebound, updated),
    Case("err_local_variable_used_out_of_scope", "NK605", rebound, chosen_before_compilation),
    Case("err_while_loop_requires_unconditional_entry", "NK601", asks_first, runs_first),
    Case("err_shared_hbm_must_in_kernel_level", "NK208", shared_in_a_loop, shared_at_the_top),
    Case("err_shared_hbm_must_in_kernel_level", "NK208", shared_under_a_condition, shared_at_the_top),
    Case("err_hbm_tensor_with_init_value_not_supported", "NK205", initialised_in_hbm, stored_in_hbm),
    Case("err_cannot_update_immutable_parameter", "NK406", changes_its_input, changes_a_mutable_input),
    Case("err_mutable_parameter_not_returned", "NK407", keeps_a_mutable_input, changes_a_mutable_input),
    Case("err_tensor_output_not_written_to", "NK403", dead_loop, living_loop),
    Case("err_tensor_output_not_written_to", "NK403", half_written, living_loop),
    Case("err_unexpected_output_dependencies", "NK501", one_place, a_place_each),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.bad.__name__}-{case.good.__name__}")
def test_a_code_is_reported_at_its_line(case: Case) -> None:
    """Under both names; the corrected kernel runs without errors."""
    check(case)


def test_a_kernel_that_writes_nothing_has_no_output() -> None:
    """Nothing is returned, and no argument was written: the line of its def is named."""
    out = np.zeros_like(HALF)
    (told,) = run(writes_nothing, (HALF, out)).findings
    assert (told.rule, told.line) == ("NK403", writes_nothing.function.__code__.co_firstlineno + 1)
    assert "err_tensor_output_not_written_to" in told.message


def test_a_shared_tensor_of_a_function_that_the_kernel_calls() -> None:
    """NK208 names the function; AWS's experimental flag silences it."""

    def helper(x: Any) -> Any:
        return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)  # here

    def kernel(x: Any) -> Any:
        out = helper(x)
        nl.store(out, nl.load(x))
        return out

    (told,) = run(kernel, (HALF,)).findings
    assert (told.rule, told.line) == ("NK208", helper.__code__.co_firstlineno + 1)
    assert "in helper, which the kernel calls" in told.message
    flagged = nki.jit(kernel, experimental_flags="skip-non-top-level-shared-hbm-check, other")
    assert run(flagged, (HALF,)).findings == []


def test_the_flag_for_mutable_parameters() -> None:
    """AWS's experimental flag lets a kernel keep a mutable parameter."""
    flagged = nki.jit(keeps_a_mutable_input, experimental_flags="skip-mutable-return-check")
    assert run(flagged, (HALF,)).findings == []


def test_the_stack_allocator_needs_its_companion() -> None:
    """NK614: enable_stack_allocator without skip_middle_end_transformations, in whichever order they stand."""
    plain = ncc.enable_stack_allocator(nki.jit(stored_in_hbm))
    (told,) = run(plain, (HALF,)).findings
    assert (told.rule, told.line) == ("NK614", stored_in_hbm.__code__.co_firstlineno)
    both = nki.jit(ncc.skip_middle_end_transformations(ncc.enable_stack_allocator(log_level=20)(stored_in_hbm)))
    assert run(both, (HALF,)).findings == []
    assert run(nki.jit(stored_in_hbm), (HALF,)).findings == []  # the function itself is as it was
