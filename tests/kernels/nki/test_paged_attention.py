"""Attention over pages against softmax in float64 over the same pages in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from kernels.nki import paged_attention as kernel_module
from kernels.nki.paged_attention import grouped_query_decode, paged_attention
from tests.cases import cases
from tests.kernels.mutants import mutant

VERSIONS = ("0.7",)
# sequences, head, heads, tokens of a page, pages, slots, and how many slots each sequence uses
CASES = [
    (1, 64, 1, 16, 3, 2, [1]),
    (3, 192, 16, 64, 9, 5, [5, 1, 3]),
    (2, 128, 128, 128, 4, 4, [4, 2]),
    (2, 300, 8, 32, 6, 3, [2, 3]),
]


def case(size: tuple[Any, ...]) -> tuple[Any, ...]:
    """Queries, pages of keys and values, tables of page numbers, and how many of them count."""
    sequences, head, heads, tokens, pages, slots, used = size
    random = np.random.default_rng(head)
    queries = random.standard_normal((sequences, head, heads)) / np.sqrt(head)
    keys, values = random.standard_normal((pages, head, tokens)), random.standard_normal((pages, tokens, head))
    tables = np.array([random.permutation(pages)[:slots] for _ in range(sequences)], np.int32)
    floats = (each.astype(np.float32) for each in (queries, keys, values))
    return (*floats, tables, np.array(used, np.int32)[:, None])


def reference(queries: Any, keys: Any, values: Any, tables: Any, counts: Any) -> npt.NDArray[np.float64]:
    """Return the attention of each sequence over the pages in the order of its table."""
    found = []
    for query, table, count in zip(queries.astype(np.float64), tables, counts[:, 0], strict=True):
        wide = [each.astype(np.float64) for each in (keys[table[:count]], values[table[:count]])]
        scores = query.T @ np.concatenate(wide[0], axis=1)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        found.append(weights / weights.sum(axis=1, keepdims=True) @ np.concatenate(wide[1], axis=0))
    return np.array(found)


@pytest.mark.parametrize("size", CASES, ids=str)
def test_paged_attention(run_kernel: Callable[..., Any], size: tuple[Any, ...]) -> None:
    """Pages anywhere, and as many of them as the counts on the device say."""
    arguments = case(size)
    np.testing.assert_allclose(run_kernel(paged_attention, *arguments), reference(*arguments), rtol=2e-5, atol=2e-5)


def grouped(sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Arguments of sequences, heads of the cache, a head's length, queries of a group and tokens of a page."""
    sequences, heads, head, group, tokens = sizes
    _, _, _, tables, counts = case((sequences, head, group, tokens, 7, 3, [3, 2, 1][:sequences]))
    random = np.random.default_rng(sum(sizes))
    queries = random.standard_normal((sequences, heads, head, group), np.float32) / np.float32(head**0.5)
    keys, values = (random.standard_normal((7, heads, *each), np.float32) for each in ((head, tokens), (tokens, head)))
    return queries, keys, values, tables, counts


@pytest.mark.parametrize("sizes", [(1, 1, 64, 1, 16), (2, 3, 192, 4, 16)], ids=str)
def test_groups_of_queries_share_a_head_of_the_cache(run_kernel: Callable[..., Any], sizes: tuple[int, ...]) -> None:
    """Each head of the cache as a cache of its own."""
    queries, keys, values, tables, counts = grouped(sizes)
    outputs = run_kernel(grouped_query_decode, queries, keys, values, tables, counts)
    for head in range(sizes[1]):
        expected = reference(queries[:, head], keys[:, head], values[:, head], tables, counts)
        np.testing.assert_allclose(outputs[:, head], expected, rtol=2e-5, atol=2e-5)


@settings(max_examples=cases(100))
@given(st.tuples(*(st.integers(1, most) for most in (3, 4, 160, 8, 128))))
def test_groups_of_any_size(sizes: tuple[int, ...]) -> None:
    """No rule is broken, the first head of the cache is right, and the prints are the results."""
    arguments = grouped(sizes)
    run = nkitools.simulate(grouped_query_decode, *arguments)
    assert run.findings == []
    prints = np.array([each.value for each in run.prints])
    np.testing.assert_array_equal(prints.reshape(run.outputs.shape), run.outputs)
    expected = reference(arguments[0][:, 0], arguments[1][:, 0], arguments[2][:, 0], *arguments[3:])
    np.testing.assert_allclose(run.outputs[:, 0], expected, rtol=2e-5, atol=2e-5)


def test_no_rule_is_broken() -> None:
    """Under a said version too."""
    run = nkitools.simulate(paged_attention, *case(CASES[1]), nki_version="0.7")
    assert run.findings == []


MISTAKES = {
    "the old sum is not made smaller": (
        "self._scale(self.values, shrunk, summed)",
        "self._scale(self.values, 1.0, summed)",
    ),
    "keys of a page are taken as the page's number": (
        "_loaded(_page(key_pages, page, of_head))",
        "_loaded(_page(key_pages, slot, of_head))",
    ),
    "every page is read": ("nisa.scalar_load(count)", "table.shape[0]"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    arguments = case(CASES[1])
    broken = mutant(kernel_module, *MISTAKES[mistake]).paged_attention
    with pytest.raises((AssertionError, nkitools.KernelError)):
        np.testing.assert_allclose(
            nkitools.simulate(broken, *arguments).outputs, reference(*arguments), rtol=2e-5, atol=2e-5
        )
