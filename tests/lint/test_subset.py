"""NK601, NK616: the Python that kernels may hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import LEGACY, MODERN, findings, marked, of_body, places, written

pytestmark = pytest.mark.usefixtures("parsed")

# Each with the place of the finding: a rule and a column.
REFUSED = {
    "set display": "chosen = {1, 2}  # NK601 10",
    "set comprehension": "chosen = {i for i in range(4)}  # NK601 10",
    "set call": "chosen = set()  # NK601 10",
    "frozen set": "chosen = frozenset((1, 2))  # NK601 10",
    "bytes": "name = b'x'  # NK601 8",
    "complex": "z = 2j  # NK601 5",
    "deque": "import collections  # NK601 1\nwaiting = collections.deque()  # NK601 11",
    "integer key": "sizes = {1: 2}  # NK601 10",
    "tuple key": "sizes = {(1, 2): 2}  # NK601 10",
    "dtype key": "sizes = {nl.float32: 4}  # NK601 10",
    "key that is set": "sizes = {}\nsizes[3] = 4  # NK601 7",
    "keys that are counters": "sizes = dict()\nfor i in range(4):\n    sizes[i] = i  # NK601 11",
    "is True": "if x.ndim is True:  # NK601 4\n    pass",
    "is not a number": "other = x.ndim is not 3  # NK601 9",
    "raise": "if x.ndim > 2:\n    raise ValueError('no')  # NK601 5",
    "import": "import math  # NK601 1",
    "import from": "from math import prod  # NK601 1",
    "call of a nested function": "def inner(a):\n    return a\n\nother = inner(x)  # NK601 9",
}
UNDOCUMENTED = {
    "is None": "given = x is not None  # NK616 9",
    "is": "same = x.dtype is nl.float32  # NK616 8",
    "try": "try:  # NK616 1\n    pass\nexcept ValueError:\n    pass",
    "lambda": "double = lambda n: 2 * n  # NK616 10",
    "list comprehension": "sizes = [2 * n for n in (1, 2)]  # NK616 9",
    "dictionary comprehension": "sizes = {str(n): n for n in (1, 2)}  # NK616 9",
    "generator expression": "sizes = tuple(n for n in (1, 2))  # NK616 14",
    "yield": "yield x  # NK616 1",
    "walrus": "if (n := x.ndim) > 1:  # NK616 5\n    pass",
    "enumerate": "for i, n in enumerate((1, 2)):  # NK616 13\n    pass",
    "zip": "for i, n in zip((1, 2), (3, 4)):  # NK616 13\n    pass",
    "star call": "print(*x.shape)  # NK616 1",
    "with": "with open('log'):  # NK616 1, NK616 6\n    pass",
    "else of a loop": "for i in range(2):  # NK616 1\n    pass\nelse:\n    pass",
    "del": "n = 1\ndel n  # NK616 1",
    "64 bits": "n = 1 << 3\nlarge = 4294967296  # NK616 9",
    "match": "match x.ndim:  # NK616 1\n    case 2:\n        pass",
}
DOCUMENTED = """\
print(f"adding tensors of {x.dtype} and {x.shape}")
assert x.shape[0] <= nl.tile_size.pmax
sizes = [1, 2, 3]
sizes.append(4.1)
sizes.extend(("Hello", "List"))
if sizes.index(2):
    sizes.remove(1)
named = dict()
named["a"] = 1
for key in named.keys():
    print(key, named[key])
if named.pop("a"):
    other = named.setdefault("a", 2)
n = 0
while n < 10:
    n += 1
for each in sizes:
    print(len(sizes), min(1, 2), -1, 4294967295, -2147483648)
with nl.no_reorder():
    pass

def double(a):
    return 2 * a

chosen = double if x.shape == (1, 2) and not sizes else print
chosen(2 if n == 1 else 3)
part = slice(0, min(129, n + 128))
missing = sizes == None
for a, b in ((1, 2), (3, 4)):
    continue
"""


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_what_is_documented_as_outside_of_nki_is_an_error(tmp_path: Path, body: str) -> None:
    """At its own line and column, and nothing else is said."""
    marked(tmp_path, body)
    assert {each.severity for each in of_body(tmp_path, body) if each.rule == "NK601"} == {"error"}


@pytest.mark.parametrize("body", UNDOCUMENTED.values(), ids=UNDOCUMENTED)
def test_what_is_not_documented_is_a_hint(tmp_path: Path, body: str) -> None:
    """So is `is None`, which the migration guide refuses and AWS's own kernels ask."""
    marked(tmp_path, body)
    assert {each.severity for each in of_body(tmp_path, body)} == {"hint"}


def test_what_the_guide_shows_is_fine(tmp_path: Path) -> None:
    """Containers, control flow, prints, assertions, functions as values: nothing is found."""
    assert of_body(tmp_path, DOCUMENTED) == []


@pytest.mark.parametrize("body", [*REFUSED.values(), *UNDOCUMENTED.values()], ids=[*REFUSED, *UNDOCUMENTED])
def test_the_legacy_dialect_runs_python_as_it_is(tmp_path: Path, body: str) -> None:
    """There the kernel is traced, not compiled: none of this is wrong."""
    assert of_body(tmp_path, body, LEGACY) == []


def test_a_host_function_is_no_kernel(tmp_path: Path) -> None:
    """What no kernel calls may be any Python."""
    head = MODERN.replace("@nki.jit\ndef kernel(x):", "def host(x):")
    assert of_body(tmp_path, "return {1, 2}, [n for n in x if n is True]", head) == []


def test_the_signature_of_a_kernel(tmp_path: Path) -> None:
    """Keyword-only parameters and list defaults are errors of kernels; of what they call the former is a hint."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki
            import nki.language as nl


            @nki.jit
            def kernel(x, order=[0, 1], *, flag=True):
                return scaled(x, by=2)


            def scaled(x, *more, by, start=[]):
                return nl.multiply(x, by)
            """
        },
    )
    assert places(findings(files["kernels.py"])) == [
        ("NK601", 6, 21),
        ("NK601", 6, 32),
        ("NK616", 10, 16),
        ("NK616", 10, 22),
    ]


def test_what_functions_and_lambdas_inside_of_a_kernel_hold_is_looked_at(tmp_path: Path) -> None:
    """A nested function is kernel code, too."""
    marked(tmp_path, "def inner(a):\n    other = {a}  # NK601 13\n\nnl.fori_loop(0, 1, inner)")
