"""The names of NKI that a question in plain words is about: by name, by common words for it, by description.

The score is that of BM25 with fields: a rare word counts more than a frequent one, and a word of the name more than one
of the description (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from nkitools.facts.tsv import rows_of
from nkitools.serve.instruction_cards import MODULES, Card, card, names

_WORDS = Path(__file__).with_name("instruction_words.tsv")
_WORD = re.compile(r"[a-z]+|[0-9]+")
_LEFT_OUT = frozenset(
    "a an and are as at be by can do does each for from get have how i if in into is it its me my of on one or so some "  # noqa: SIM905
    "that the them then there this to up use using want what when which with within without you nki nisa nl isa "
    "language neuronxcc function instruction kernel tile tensor".split()
)
_ENDINGS = (
    "ization",
    "isation",
    "ations",
    "ation",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "ions",
    "ion",
    "es",
    "ed",
    "er",
    "s",
    "e",
)
_OF_NAME, _OF_PEOPLE, _OF_SENTENCE, _OF_TEXT = 3.0, 3.0, 1.5, 0.5
_SATURATION = 1.2
_LENGTH, _USUAL_LENGTH = 0.3, 12  # how much a long field takes from each of its words


def search(query: str, *, legacy: bool, limit: int = 8) -> list[Card]:
    """Return the cards that a question is about, the best first; an exact name comes before all others."""
    asked = Counter(_stems(query))
    exact = query.strip()
    index = _index(legacy)
    rare = _rarity(legacy)
    scores = {
        name: sum(rare[stem] * weights[stem] / (weights[stem] + _SATURATION) for stem in asked if stem in weights)
        + 100 * (name.rpartition(".")[2] == exact.rpartition(".")[2])
        + 100 * (name == exact)
        for name, weights in index.items()
    }
    best = sorted((name for name, score in scores.items() if score), key=lambda name: (-scores[name], name))
    return [found for name in best[:limit] if (found := card(name)) is not None]


@cache
def _index(legacy: bool) -> dict[str, dict[str, float]]:
    """Return for each name of a dialect the stems of its words, each with its weight."""
    every = (name for module in MODULES if module.startswith("neuronxcc") == legacy for name in names(module))
    return {name: _weights(name) for name in every}


@cache
def _rarity(legacy: bool) -> dict[str, float]:
    index = _index(legacy)
    counts = Counter(stem for weights in index.values() for stem in weights)
    return {stem: math.log(1 + (len(index) - count + 0.5) / (count + 0.5)) for stem, count in counts.items()}


@cache
def _words_of_people() -> dict[str, str]:
    return {row["name"]: row["words"] for row in rows_of(_WORDS)}


def _weights(name: str) -> dict[str, float]:
    found, word = card(name), name.rpartition(".")[2]
    assert found is not None
    fields = (
        (_OF_NAME, word), (_OF_PEOPLE, _words_of_people().get(word, "")), (_OF_SENTENCE, found.sentence),
        (_OF_TEXT, f"{found.says} {found.call}"),
    )  # fmt: skip
    weights: dict[str, float] = defaultdict(float)
    for weight, text in fields:
        stems = set(_stems(text))
        for stem in stems:
            weights[stem] += weight / (1 - _LENGTH + _LENGTH * len(stems) / _USUAL_LENGTH)
    return weights


def _stems(text: str) -> Iterator[str]:
    """Yield the words of a text without their endings, except words that say nothing."""
    for word in _WORD.findall(text.lower()):
        if word not in _LEFT_OUT:
            ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) - len(each) >= 3), "")
            stem = word[: len(word) - len(ending)]
            yield stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] else stem
