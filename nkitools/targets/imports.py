"""Whose package the author's ``import nki`` finds: the option ``stand_in``, carried out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nkitools.dialects.stand_in import install_stand_in, remove_stand_in, stand_in_installed


@contextmanager
def stand_in(policy: str) -> Iterator[None]:
    """Install the stand-in for the body of a ``with`` by ``policy``: ``auto``, ``always`` or ``never``.

    A stand-in that is installed already belongs to a session around this one and stays as it is.
    """
    if policy == "never" or stand_in_installed():
        yield
        return
    install_stand_in(prefer="builtin" if policy == "always" else "auto")
    try:
        yield
    finally:
        remove_stand_in()
