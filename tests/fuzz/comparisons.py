"""The comparisons: two ways to the same values, which random programs go.

Each module ``against_NAME`` has ``program_of(seed)``, plain data; ``disagreement(program)``, in words, '' where there
is none; ``smaller(program)``, programs that have less; and ``names_of(program)``, what a program is made of.
"""

from __future__ import annotations

import importlib
from typing import Any

from tests.oracle.programs import Program
from tests.oracle.state import Unfit

NAMES = ("oracle", "careful", "legacy", "jnp")


def comparison(name: str) -> Any:
    """Return the module of a comparison."""
    return importlib.import_module(f"tests.fuzz.against_{name}")


def disagreement(against: Any, program: Program) -> str:
    """Return what the two ways disagree on; an exception of either is one too, but for `Unfit`."""
    try:
        found: str = against.disagreement(program)
    except Unfit:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return found


def judge(against: Any, seed: int) -> tuple[Program, str]:
    """Return the program of a seed, and what it disagrees on."""
    program = against.program_of(seed)
    return program, disagreement(against, program)


def shrunk(against: Any, program: Program) -> Program:
    """Return the program with as little as still disagrees."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in against.smaller(program):
            try:
                if disagreement(against, candidate):
                    program, is_smaller = candidate, True
                    break
            except Unfit:
                continue
    return program
