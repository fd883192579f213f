"""Torch's switch against loading a backend by itself: off with the stand-in, and back as the user had it."""

from __future__ import annotations

import os

import pytest

from nkitools.dialects import torch_autoload
from nkitools.dialects.torch_autoload import SWITCH, outside_environment


@pytest.mark.parametrize("before", [None, "1", "0"])
def test_the_switch_comes_back_as_the_user_had_it(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    """In this process after the stand-in, and at once in a process that is started without it."""
    torch_autoload.switch_back()
    monkeypatch.delenv(SWITCH, raising=False)
    if before is not None:
        monkeypatch.setenv(SWITCH, before)
    known = dict(os.environ)
    torch_autoload.switch_off()
    torch_autoload.switch_off()
    assert os.environ[SWITCH] == "0"
    assert outside_environment() == known
    torch_autoload.switch_back()
    assert dict(os.environ) == known
