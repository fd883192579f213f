"""sendrecv_compute: against NumPy, and what it refuses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.element_maps import From
from tests.isa.issued import empty, issue, placed, tile
from tests.isa.issued import refusal as refused_alone
from tests.isa.talking import finding_of, hbm, sbuf
from tests.isa.test_docstrings import named_rules
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

OPERATORS: dict[str, Any] = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}
DTYPES: dict[str, Any] = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32}


def reduce(src: Any, dst: Any, op: Any = nl.add, **keywords: Any) -> None:
    other = 1 - nl.program_id(0)
    nisa.sendrecv_compute(src, dst, **{"send_to_rank": other, "recv_from_rank": other, "reduce_op": op, **keywords})


def kernel_of(op: str, memory: str, *, in_place: bool = False) -> Any:
    """A kernel that reduces the halves of its argument on both cores."""

    def kernel(x: Any) -> Any:
        out, core = hbm(x.shape, x.dtype), nl.program_id(0)
        mine = nl.ndarray(x.shape[1:], x.dtype, buffer=getattr(nl, memory))
        total = mine if in_place else nl.ndarray(x.shape[1:], x.dtype, buffer=getattr(nl, memory))
        nisa.dma_copy(dst=mine, src=x[core])
        reduce(mine, total, getattr(nl, op))
        nisa.dma_copy(dst=out[core], src=total)
        return out

    return kernel


@given(
    st.sampled_from(sorted(OPERATORS)),
    st.sampled_from(sorted(DTYPES)),
    st.sampled_from(["sbuf", "private_hbm"]),
    st.booleans(),
    st.integers(0, 99),
)
def test_against_numpy(op: str, dtype: str, memory: str, in_place: bool, seed: int) -> None:
    """Both cores get the same: computed in float32, cast once."""
    x = np.random.default_rng(seed).integers(-300, 300, (2, 4, 6)).astype(DTYPES[dtype])
    first, second = x.astype(np.float32)
    expected = OPERATORS[op](first, second).astype(DTYPES[dtype])
    out = nkitools.simulate(kernel_of(op, memory, in_place=in_place), x, grid=2).outputs
    np.testing.assert_array_equal(out.astype(np.float32), np.stack([expected, expected]).astype(np.float32))


def test_the_calls_meet_in_order() -> None:
    """The n-th of one core is the n-th of the other."""

    def kernel() -> Any:
        out, core = hbm((2, 3)), nl.program_id(0)
        mine, total = sbuf((1, 3)), sbuf((1, 3))
        for turn in range(3):
            nisa.memset(mine[:, nl.ds(turn, 1)], 10 * core + turn)
            reduce(mine[:, nl.ds(turn, 1)], total[:, nl.ds(turn, 1)])
        nisa.dma_copy(dst=out[nl.ds(core, 1), :], src=total)
        return out

    np.testing.assert_array_equal(nkitools.simulate(kernel, grid=2).outputs, [[10, 12, 14]] * 2)


def test_it_depends_on_the_other_core() -> None:
    """The record has its price and operands; its result is made of both cores' sources."""
    run = nkitools.simulate(kernel_of("add", "sbuf"), np.ones((2, 4, 6), np.float32), grid=2)
    where = {each.program[0]: at for at, each in enumerate(run.instructions) if each.name == "sendrecv_compute"}
    for core, at in where.items():
        issued = run.instructions[at]
        assert (issued.engine, [operand.written for operand in issued.operands]) == ("dma", [False, True])
        assert where[1 - core] in run.dependences.flow[at].tolist()
        sources = run.record.plan_at(at).elements.of("dst")
        assert [source for source, _ in sources] == [From("src"), From("src", core=1 - core)]


def test_a_core_that_does_not_come() -> None:
    """NK504 with the instruction that it waits in; a sendrecv is another meeting."""

    def kernel() -> None:
        core = nl.program_id(0)
        mine, other = nl.ones((4, 4), nl.float32), sbuf((4, 4))
        if core:
            reduce(mine, other)
        else:
            nisa.sendrecv(src=mine, dst=other, send_to_rank=1, recv_from_rank=1, pipe_id=0)

    found = finding_of(kernel)
    assert found.rule == "NK504"
    assert "program 1 waits in nisa.sendrecv_compute at test_sendrecv_compute.py" in found.message


FLOATS = np.ones((4, 8), np.float32)
TO = {"send_to_rank": 1, "recv_from_rank": 1, "reduce_op": nl.add}
REFUSED: dict[str, tuple[str, Any, Any, dict[str, Any]]] = {
    "src in shared HBM": ("NK201", tile(FLOATS, "shared_hbm"), empty((4, 8), memory="private_hbm"), TO),
    "dst in PSUM": ("NK201", tile(FLOATS), empty((4, 8), memory="psum"), TO),
    "two memories": ("NK201", tile(FLOATS), empty((4, 8), memory="private_hbm"), TO),
    "another dtype": ("NK301", tile(FLOATS), empty((4, 8), nl.bfloat16), TO),
    "other partitions": ("NK102", tile(FLOATS), empty((2, 8)), TO),
    "other elements": ("NK109", tile(FLOATS), empty((4, 4)), TO),
    "rank 2": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "send_to_rank": 2}),
    "a product": ("NK306", tile(FLOATS), empty((4, 8)), {**TO, "reduce_op": nl.multiply}),
    "no operator": ("NK609", tile(FLOATS), empty((4, 8)), {**TO, "reduce_op": "add"}),
}


@pytest.mark.parametrize(("rule", "src", "dst", "keywords"), REFUSED.values(), ids=REFUSED)
def test_what_it_refuses(rule: str, src: Any, dst: Any, keywords: dict[str, Any]) -> None:
    """By rule, once for each core, as the docstring promises."""

    def kernel() -> None:
        ranks = {role: 1 - nl.program_id(0) for role in ("send_to_rank", "recv_from_rank") if keywords[role] == 1}
        nisa.sendrecv_compute(placed(src), placed(dst), **{**keywords, **ranks})

    assert finding_of(kernel).rule == rule
    assert rule in named_rules(nisa.sendrecv_compute.__doc__ or "")


def test_the_cores_reduce_tiles_of_one_form() -> None:
    """What one expects the other sends."""

    def kernel() -> None:
        columns = 4 + nl.program_id(0)
        mine = sbuf((4, columns))
        nisa.memset(mine, 1)
        reduce(mine, sbuf((4, columns)))

    found = finding_of(kernel)
    assert found.rule == "NK109"
    assert "sendrecv_compute: program 0 exchanges float32 [4, 4] at" in found.message


def test_it_takes_two_cores() -> None:
    """NK613 on one; NK606 before NeuronCore-v3; NK607 for a core that sends to itself."""
    found = refused_alone(nisa.sendrecv_compute, tile(FLOATS), empty((4, 8)), **TO)
    assert (found.rule, "sendrecv_compute: an exchange" in found.message) == ("NK613", True)
    with pytest.raises(nkitools.KernelError, match="sendrecv_compute came with NeuronCore-v3") as raised:
        issue(nisa.sendrecv_compute, tile(FLOATS), empty((4, 8)), **TO, chip="trn1")
    assert raised.value.finding.rule == "NK606"

    def kernel() -> None:
        mine = nl.ones((4, 8), nl.float32)
        nisa.sendrecv_compute(mine, sbuf((4, 8)), nl.program_id(0), nl.program_id(0), nl.add)

    with pytest.raises(nkitools.NotModelled, match="`send_to_rank`=0 is this core itself"):
        nkitools.simulate(kernel, grid=2)
