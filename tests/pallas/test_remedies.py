"""Remedies of Pallas kernels name the wait, the dimension of the grid or the grid indices that are meant."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.repair import followed
from nkitools.pallas import check
from nkitools.pallas.lowering import remedy_of
from nkitools.pallas.semaphore_waits import remedy_of_copies, remedy_of_count, remedy_of_signals
from nkitools.rules.catalogue import RULES
from tests import cases

MISTAKES = {each.name: each for each in followed.mistakes()}


def findings_of(text: str) -> Any:
    """What TPU interpretation finds in the kernel of a text."""
    names: dict[str, Any] = {}
    exec(compile(text, __file__, "exec"), names)
    return check(names["kernel"], *names["inputs"], modes="tpu_interpret").findings


EXAMPLES = {
    "PL202": "Put dimension 0 of the grid last, in the grid and in all index maps: the index map of `o_ref` does not",
    "PL206": 'Make dimension 0 "arbitrary": the sum goes over it.',
    "PL207": "Write it first where a block of the output begins: pl.when(pl.program_id(0) == 0).",
    "PL208": "All copies that were started have been waited for: leave this wait out",
}


@cases.each("rule", EXAMPLES)
def test_an_example_is_told_what_it_lacks(rule: str) -> None:
    """Each by what the kernel has done until then."""
    (found,) = findings_of(RULES[rule].bad)
    assert found.rule == rule
    assert found.remedy.startswith(EXAMPLES[rule])


PLANTED = {
    "pallas_product.map_exchanged": "Exchange grid indices 1 and 2 in the index map of `y_ref`, which then stays",
    "pallas_product.cleared_on_another_axis": "Start the sum anew where a block of the output begins: "
    "pl.when(pl.program_id(2) == 0).",
    "pallas_product.never_stored": "No store to the block has run: look at the condition of pl.when around it.",
    "pallas_pipeline.one_copy_too_many": "Other copies of this line are waited for: start no copy for which no turn",
    "pallas_pipeline.both_into_one_buffer": "Call .wait() on the copy started at line 22 before line 25",
}


@cases.each("name", PLANTED if cases.FULL else [*PLANTED][:2])
def test_a_planted_mistake_is_told_what_to_change(name: str) -> None:
    """The first finding is the cause."""
    assert findings_of(MISTAKES[name].text)[0].remedy.startswith(PLANTED[name])


def test_copies_behind_a_wait_without_end_are_no_findings() -> None:
    """The kernel would have waited for them."""
    found = findings_of(MISTAKES["pallas_pipeline.waits_for_the_other"].text)
    assert {each.rule for each in found} in ({"PL208"}, {"PL203"})  # JAX chooses which copy it carries out first


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        (remedy_of_signals(1, 3), "Signal the semaphore 2 times more before this wait, or wait for 1: "),
        (remedy_of_signals(0, 1), "Signal the semaphore once more before this wait: each device"),
        (
            remedy_of_copies([12, 15], any_started=True),
            "No copy signals this semaphore, and those started at lines 12, 15 are",
        ),
        (remedy_of_copies([], any_started=False), "Start the copy before the wait for it, on every device"),
        (remedy_of_count(2, of_copies=False), "Signal it 2 times less, or wait for 2 more with pl.semaphore_wait."),
        (remedy_of_count(512, of_copies=True), "Call .wait() on the copy, or wait_send() and wait_recv()"),
    ],
)
def test_waits_and_signals_have_words_of_their_own(said: str, begins: str) -> None:
    """A semaphore that the kernel signals is another thing than one that counts bytes of copies."""
    assert said.startswith(begins)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("Scan with 1 extensive output(s)", "Write each step's row into the output in a jax.lax.fori_loop."),
        ("cannot prove it; use tpu.assume_multiple", "Wrap the offset in pl.multiple_of(offset, 128)"),
        ("JAX TPU support not installed", "Install JAX with its TPU compiler"),
        ("unsupported shape cast\nof vector<8x128>", "The message names the operation"),
        ("INTERNAL: E3003: not implemented", ""),
    ],
)
def test_a_message_of_the_compiler_has_a_remedy_of_its_own(text: str, begins: str) -> None:
    """Only where it has a code the rule's remedy sends to the page of codes."""
    found = remedy_of("PL301", text)
    assert found.startswith(begins)
    assert bool(found) == bool(begins)
    assert remedy_of("PL104", text) == ""
