"""The TPU compiler that the models speak of: the one that is installed, or else JAX's own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

import pytest

from nkitools.pallas import libtpu


@pytest.fixture(autouse=True)
def _looked_at_anew() -> Iterator[None]:
    libtpu.version.cache_clear()
    yield
    libtpu.version.cache_clear()


def absent(distribution: str) -> str:
    raise metadata.PackageNotFoundError(distribution)


def test_the_one_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fourth number is a repair."""
    monkeypatch.setattr(metadata, "version", {"libtpu": "0.0.42.1"}.__getitem__)
    assert libtpu.version() == (0, 0, 42)
    assert libtpu.version() < libtpu.INTEGER_PRINTS < libtpu.PARTIAL_TILES


@pytest.mark.parametrize(
    ("requirements", "version"),
    [
        (["jaxlib<=0.12", 'libtpu==0.0.50.*; extra == "tpu"', 'libtpu==0.0.1.*; extra == "other"'], (0, 0, 50)),
        (["jaxlib<=0.12"], libtpu.PARTIAL_TILES),
        (None, libtpu.PARTIAL_TILES),
    ],
)
def test_the_one_that_jax_names(
    monkeypatch: pytest.MonkeyPatch, requirements: list[str] | None, version: tuple[int, ...]
) -> None:
    """Without libtpu; the newest where JAX names none."""
    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(metadata, "requires", lambda distribution: requirements)
    assert libtpu.version() == version


def test_without_jax_it_is_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is refused on account of a compiler that nobody has."""
    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(metadata, "requires", absent)
    assert libtpu.version() == libtpu.PARTIAL_TILES
