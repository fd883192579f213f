"""The search for functions of NKI by what they do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nkitools.facts.tsv import rows_of
from nkitools.serve.instruction_cards import MODULES, names
from nkitools.serve.instruction_search import _stems, _words_of_people, search

QUESTIONS = rows_of(Path(__file__).with_name("instruction_questions.tsv"))
FURTHER = rows_of(Path(__file__).with_name("further_questions.tsv"))


def found(question: str, *, legacy: bool = False, most: int = 3) -> list[str]:
    return [each.name for each in search(question, legacy=legacy, limit=most)]


def test_questions_of_authors_lead_to_the_right_function() -> None:
    """Of 60 questions that share no word with the names that answer them, 85 of 100 have an answer in the first three.

    The questions were written before the search, by somebody who did not know it; it answered 52 of them at first.
    """
    assert len(QUESTIONS) == 60
    right = [row for row in QUESTIONS if set(found(row["question"])) & set(row["answers"].split())]
    assert len(right) >= 51, [row["question"] for row in QUESTIONS if row not in right]


def test_further_questions_lead_to_the_right_function() -> None:
    """Of 45 others, written when the search was there and its words were not looked at, it answered 43 at first."""
    assert len(FURTHER) == 45
    right = [row for row in FURTHER if set(found(row["question"])) & set(row["answers"].split())]
    assert len(right) >= 43, [row["question"] for row in FURTHER if row not in right]


def test_no_question_shares_a_word_with_its_answers() -> None:
    """Else the name alone would lead to them."""
    for row in (*QUESTIONS, *FURTHER):
        words = {word for name in row["answers"].split() for word in re.split(r"[._]", name)} - {
            "nki",
            "isa",
            "language",
        }
        assert not words & set(re.findall(r"[a-z0-9]+", row["question"].lower())), row


@pytest.mark.parametrize("legacy", [False, True])
def test_a_name_leads_to_itself(legacy: bool) -> None:
    """In either dialect, with and without its module."""
    module = "neuronxcc.nki.isa" if legacy else "nki.isa"
    for name in names(module):
        assert found(name, legacy=legacy)[0] == name
        assert found(name.rpartition(".")[2], legacy=legacy)[0].rpartition(".")[2] == name.rpartition(".")[2]


def test_the_first_example() -> None:
    """A column is subtracted from rows by tensor_scalar, whatever the words around it are."""
    assert found("subtract a column from every row of a tile")[0] == "nki.isa.tensor_scalar"
    assert found("How do I subtract columns from the rows?")[0] == "nki.isa.tensor_scalar"


def test_words_without_a_meaning_find_nothing() -> None:
    """An empty question, and one of words that say nothing."""
    assert found("") == found("how do I use this in nki") == found("qwertyuiop") == []


def test_every_row_of_words_is_about_a_name() -> None:
    """Of a module that is searched; no name stands twice."""
    known = {name.rpartition(".")[2] for module in MODULES for name in names(module)}
    lines = Path(search.__code__.co_filename).with_name("instruction_words.tsv").read_text().splitlines()[1:]
    assert set(_words_of_people()) <= known
    assert len(lines) == len(_words_of_people())


def test_endings_do_not_part_words() -> None:
    """Forms of one word are one word."""
    assert set(_stems("transposes transposed transposing transpose")) == {"transpos"}
    assert set(_stems("reduce reduction reduced")) <= {"reduc", "reduct"}
