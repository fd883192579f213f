"""The laws of time: what a row says, which one is meant, and how many of the profiled medians they meet."""

from __future__ import annotations

import pytest

from benchmarks.chip.laws import met
from nkitools.facts.generations import GENERATIONS
from nkitools.facts.laws import law_of, laws, operand, profiled


def test_every_law_names_its_generation_source_and_count() -> None:
    """A known generation, a source, and how many instructions were seen."""
    generations = {each.short_name for each in GENERATIONS.values()}
    assert all(each.generation in generations and each.source and each.seen > 0 for each in laws())


@pytest.mark.parametrize(
    ("engine", "name", "function", "src", "dst", "elements", "nanoseconds"),
    [
        ("vector", "tensor_copy", "", "float32 PSUM", "float32 SBUF", 512, 156 + 512 * 1.045),
        ("vector", "tensor_copy", "", "bfloat16 SBUF", "bfloat16 SBUF", 512, 155.7 + 512 * 0.269),
        ("scalar", "activation", "silu", "float32 PSUM", "float32 SBUF", 100, 260 + 132.7),
        ("scalar", "activation", "tanh", "float32 SBUF", "float32 SBUF", 100, 293.5 + 83.33),
        ("vector", "select_reduce", "", "float32 SBUF", "float32 SBUF", 100, 155 + 70),
    ],
)
def test_the_law_that_names_most_is_taken(
    engine: str, name: str, function: str, src: str, dst: str, elements: int, nanoseconds: float
) -> None:
    """By memory, dtype and function; an unprofiled instruction has its engine's fixed part, and its documented rate."""
    law = law_of("gen3", engine, name, function, src, dst)
    assert law is not None
    assert law.nanoseconds(elements, documented=70) == pytest.approx(nanoseconds)


def test_what_has_no_law_has_none() -> None:
    """Another generation, and an engine without rows."""
    assert law_of("gen2", "vector", "tensor_copy", "", "float32 SBUF", "float32 SBUF") is None
    assert profiled("gen3", "Tensor", "NO_SUCH", "") is None
    assert operand(2, "SBUF") == "bfloat16 SBUF"


def test_nine_of_ten_profiled_medians_are_met() -> None:
    """Of rows with twenty instructions or more: within a tenth, or between the tenth and the ninetieth percentile."""
    found = met()
    assert len(found) >= 50
    assert sum(each.is_met for each in found) >= 0.9 * len(found)
