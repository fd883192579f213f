"""The guide fits an agent's context, and holds what the chip and the NKI version have."""

from __future__ import annotations

import pytest

from nkitools.facts import options
from nkitools.serve.guide import guide

CHARACTERS_A_TOKEN = 3  # fewer than tokenizers make of code, so that the count is an upper bound


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("version", ["0.6", "0.7"])
def test_it_takes_less_than_six_thousand_tokens(version: str, legacy: bool) -> None:
    """Of both dialects, under both versions."""
    with options.override(nki_version=version):
        assert 10_000 < len(guide("trn2", legacy=legacy)) < 6_000 * CHARACTERS_A_TOKEN


def test_it_says_what_the_chip_has() -> None:
    """The limits of the chip that is asked for."""
    assert "moving_fmax_float32 512" in guide("trn2")
    assert "moving_fmax_float32 4096" in guide("trn3")


def test_it_says_what_the_version_has() -> None:
    """A function that NKI 0.7 has removed is in the guide of 0.6 alone."""
    with options.override(nki_version="0.6"):
        older = guide("trn2")
    with options.override(nki_version="0.7"):
        newer = guide("trn2")
    assert "- dynamic_range(" in older
    assert "- dynamic_range(" not in newer
    assert "- fori_loop(" in newer
