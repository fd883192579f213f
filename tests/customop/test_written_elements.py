"""Which elements are written, and by which cores, whatever the bursts: against NumPy's own account of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkitools.customop import Operator
from tests.cases import cases

from .conftest import Builder

ELEMENTS = 600
UNWRITTEN = 0xFFFFFFFF

# Each row of the plan is a core, what it does (0: a burst to the output; 1: a burst back from it), a first element and
# a count. What is written says which row wrote it.
SOURCE = f"""\
torch::Tensor shape(const torch::Tensor& t_plan) {{ return torch::zeros({{{ELEMENTS}}}, torch::kFloat); }}
torch::Tensor kernel(const torch::Tensor& t_plan) {{
  torch::Tensor out = get_dst_tensor();
  const size_t rows = t_plan.sizes()[0];
  int32_t* row = (int32_t*)torch::neuron::tcm_malloc(16);
  float* block = (float*)torch::neuron::tcm_malloc({ELEMENTS} * sizeof(float));
  if (!row || !block) return out;
  for (size_t i = 0; i < rows; i++) {{
    t_plan.tcm_accessor().tensor_to_tcm<int32_t>(row, i * 4, 4);
    if (row[0] != (int)get_cpu_id()) continue;
    if (row[1]) {{
      out.tcm_accessor().tensor_to_tcm<float>(block, row[2], row[3]);
    }} else {{
      for (int j = 0; j < row[3]; j++) block[j] = i;
      out.tcm_accessor().tcm_to_tensor<float>(block, row[2], row[3]);
    }}
  }}
  torch::neuron::tcm_free(block);
  torch::neuron::tcm_free(row);
  return out;
}}
"""

Row = tuple[int, int, int, int]


@pytest.fixture(scope="module")
def bursts(build_operators: Builder) -> Operator:
    return build_operators({"bursts": SOURCE}, multicore=True)["bursts"]


def _plan() -> st.SearchStrategy[list[Row]]:
    """Chains of bursts that each go on where the one before ended; some meet, some overlap, some read back."""
    begins = st.one_of(st.integers(0, ELEMENTS), st.sampled_from(range(0, ELEMENTS, 50)))
    counts = st.lists(st.one_of(st.just(50), st.integers(0, 3), st.integers(0, ELEMENTS)), min_size=1, max_size=5)
    rare = st.integers(0, 15).map(lambda n: n == 15)
    return st.lists(st.builds(_chain, st.integers(0, 7), rare, begins, counts), min_size=1, max_size=12).map(
        lambda chains: [row for chain in chains for row in chain]
    )


def _chain(core: int, back: bool, begin: int, counts: list[int]) -> list[Row]:
    ends = [min(begin + sum(counts[: i + 1]), ELEMENTS) for i in range(len(counts))]
    return [(core, int(back), first, end - first) for first, end in pairwise([begin, *ends])]


def _account(plan: list[Row], order: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """The row that wrote each element last, -1 where none did, and how many cores wrote it."""
    last, cores = np.full(ELEMENTS, -1), np.zeros((8, ELEMENTS), bool)
    for core in order:
        for number, (of, back, begin, count) in enumerate(plan):
            if of == core and not back:
                last[begin : begin + count] = number
                cores[core, begin : begin + count] = True
    return last, cores.sum(axis=0)


def _reads_of_others(plan: list[Row], order: list[int]) -> bool:
    """Whether a core reads an element that another core has written in an earlier turn."""
    writers = np.full((8, ELEMENTS), False)
    for core in order:
        for of, back, begin, count in plan:
            part = slice(begin, begin + count)
            if of == core and back and np.delete(writers, core, axis=0)[:, part].any():
                return True
            if of == core and not back:
                writers[core, part] = True
    return False


def _ranges(mask: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(int)))
    return [(int(a), int(b) - 1) for a, b in list(pairwise(edges))[::2]]


def _said(mask: np.ndarray) -> str:
    ranges, count = _ranges(mask), int(mask.sum())
    spans = ", ".join(f"output[{a}]" if a == b else f"output[{a}:{b + 1}]" for a, b in ranges[:3])
    more = sum(b + 1 - a for a, b in ranges[3:])
    rest = f" and {more} more element{'s' if more > 1 else ''}" if more else ""
    return f"{spans}{rest} ({count})"


def _judge(bursts: Operator, plan: list[Row], order: list[int], threads: bool = False) -> None:
    run = bursts.run(np.array(plan, np.int32), order=order, threads=threads, isolation="none")
    last, writers = _account(plan, order)
    expected = {}
    if (last < 0).any():
        expected["CO106"] = _said(last < 0)
    if (writers > 1).any():
        expected["CO105"] = _said(writers > 1)
    reads = [finding for finding in run.findings if finding.message.startswith("the core reads")]
    if not threads:  # side by side another core may write before the read or after it
        assert bool(reads) == _reads_of_others(plan, order)
    assert {finding.rule for finding in reads} <= {"CO105"}
    others = [finding for finding in run.findings if finding not in reads]
    assert {finding.rule for finding in others} == expected.keys()
    for finding in others:
        assert expected[finding.rule] in finding.message
    certain = writers == 1 if threads else last >= 0
    assert np.array_equal(run.outputs[certain], last[certain])
    assert (run.outputs.view(np.uint32)[last < 0] == UNWRITTEN).all()


@settings(max_examples=cases(5000))
@given(plan=_plan(), order=st.permutations(range(8)))
def test_every_plan_of_bursts(bursts: Operator, plan: list[Row], order: list[int]) -> None:
    _judge(bursts, plan, order)


@given(plan=_plan())
def test_every_plan_of_bursts_side_by_side(bursts: Operator, plan: list[Row]) -> None:
    _judge(bursts, plan, list(range(8)), threads=True)


@pytest.mark.parametrize("step", [1, 2, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_more_bursts_than_a_list_of_them_holds(bursts: Operator, step: int, reverse: bool) -> None:
    """One element a burst: the cores in turns, each from either end; every ``step``-th element is written."""
    plan = [(i // step % 8, 0, i, 1) for i in range(0, ELEMENTS, step)]
    _judge(bursts, plan[::-1] if reverse else plan, list(range(8)))
