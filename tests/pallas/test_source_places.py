"""Whose line a line is."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")

import jaxlib  # noqa: E402

from nkitools.pallas import launch, source_places  # noqa: E402


def test_a_folder_called_jax_may_be_the_authors() -> None:
    """JAX's files are those of its packages, wherever these are installed."""
    assert source_places.is_authors("/home/author/jax/kernels.py")
    assert source_places.is_authors("/home/author/jaxlib/kernels.py")
    assert not source_places.is_authors(jax.jit.__code__.co_filename)
    assert not source_places.is_authors(jaxlib.__file__)
    assert not source_places.is_authors(launch.__file__)
