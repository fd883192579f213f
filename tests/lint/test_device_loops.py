"""NK601, NK605, NK609: loops on the device, their counters and their bodies."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.facts import options
from tests.lint.linted import marked

pytestmark = pytest.mark.usefixtures("parsed")

CASES = {
    "a counter that is bound anew": """\
        for i in nl.dynamic_range(4):  # NK618 10
            i = 2  # NK601 5
        """,
    "one that is counted on": """\
        for i in nl.dynamic_range(4):  # NK618 10
            i += 1  # NK601 5
        """,
    "one that a register is moved into": """\
        for i in nl.dynamic_range(4):  # NK618 10
            nisa.register_move(i, nisa.register_alloc(2))  # NK601 5
        """,
    "after the loop it is a name like others": """\
        for i in nl.dynamic_range(4):  # NK618 10
            pass
        i = 2
        """,
    "a counter of another range": """\
        for i in range(4):
            i = i + 1
        """,
    "a counter that is computed with": """\
        for i in nl.dynamic_range(4):  # NK618 10
            print(2 * i)  # NK616 11
        """,
    "a counter that is compared": """\
        for i in nl.dynamic_range(4):  # NK618 10
            if i == 0:  # NK601 8
                pass
        """,
    "a register as a number": """\
        n = nisa.register_alloc(4)
        for i in range(n):  # NK601 16
            pass
        """,
    "a loop in nl.no_reorder": """\
        with nl.no_reorder():
            for i in nl.dynamic_range(4):  # NK601 14, NK618 14
                pass
        """,
    "the order in the loop": """\
        for i in nl.dynamic_range(4):  # NK618 10
            with nl.no_reorder():
                pass
        """,
    "the order in front of it": """\
        with nl.no_reorder():
            pass
        for i in nl.dynamic_range(4):  # NK618 10
            pass
        """,
    "a while loop": """\
        r = nisa.register_alloc(4)
        while r:  # NK618 7
            nisa.register_load(r, x)
        """,
    "a body that returns something": """\
        def body(i):
            return i  # NK601 5

        nl.fori_loop(0, 4, body)
        """,
    "a body that returns nothing": """\
        def body(i):
            return None

        nl.fori_loop(0, 4, body_fun=body)
        """,
    "a body that counts": """\
        def body(i):
            i += 1  # NK601 5

        nl.fori_loop(0, 4, body)
        """,
    "a body that writes its counter": """\
        def body(i):
            nisa.register_move(i, nisa.register_alloc(0))  # NK601 5

        nl.fori_loop(0, 4, body)
        """,
    "a while body that returns its condition": """\
        def body(r):
            nisa.register_load(r, x)
            return r

        nl.while_loop(nisa.register_alloc(1), body)
        """,
    "a while body that returns a tensor": """\
        def body(r):
            return nl.load(x)  # NK609 5

        nl.while_loop(nisa.register_alloc(1), body)
        """,
    "a tensor that is kept": """\
        tiles = []

        def body(i):
            tile = nl.load(x)
            tiles.append(tile)  # NK605 5

        nl.fori_loop(0, 4, body)
        """,
    "a tensor that is kept under a name": """\
        tiles = dict()

        def body(i):
            tiles["last"] = nl.load(x)  # NK605 5

        nl.fori_loop(0, 4, body)
        """,
    "a tensor of the kernel that is kept": """\
        tiles = []
        tile = nl.load(x)

        def body(i):
            tiles.append(tile)

        nl.fori_loop(0, 4, body)
        """,
    "a tensor that leaves by nonlocal": """\
        tile = None

        def body(i):
            nonlocal tile  # NK616 5
            tile = nl.load(x)  # NK605 5

        nl.fori_loop(0, 4, body)
        """,
    "any other function keeps what it likes": """\
        tiles = []

        def keep(i):
            tiles.append(nl.load(x))
            return i

        keep(1)  # NK601 1
        """,
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_loops_on_the_device(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, body)


SCALARS = {
    "operators that scalars lack": """\
        def body(i):
            a = i + 1 - 2 * i
            b = i // 2  # NK607 9
            c = 8 % i  # NK607 9
            d = ~i  # NK607 9
            i <<= 1  # NK607 5

        nl.fori_loop(0, 4, body)
        """,
    "a scalar that is a condition": """\
        more = nisa.scalar_load(nl.load(x))
        nl.while_loop(more, lambda r: r)  # NK621 1
        """,
}


@pytest.mark.parametrize("body", SCALARS.values(), ids=SCALARS)
def test_scalars_of_loops_on_the_device(tmp_path: Path, body: str) -> None:
    """Under 0.7 what is marked is found, and nothing else."""
    with options.override(nki_version="0.7"):
        marked(tmp_path, body)
