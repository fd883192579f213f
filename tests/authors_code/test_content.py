"""The key of a function's content: another one where a run may do something else, else the same one."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.authors_code.content import content_of
from nkitools.authors_code.data_content import MOST_BYTES
from tests.authors_code.rarer_sources import RARER
from tests.authors_code.sources import KNOWN, RUN, SOURCES, Source, made
from tests.cases import each

nkitools.install_stand_in(prefer="builtin")

EVERY = [*SOURCES, *RARER]


@pytest.fixture(autouse=True)
def _no_module_stays() -> Iterator[None]:
    yield
    sys.modules.pop("a_kernel_of_a_test", None)


@each("source", EVERY)
def test_a_change_is_another_content_or_is_not_known(source: Source) -> None:
    """Of what can be known the keys differ; of all else the function says that it has to be run."""
    space = made(source)
    before = content_of(space["k"])
    if source.change:
        exec(source.change, space)
    else:
        space = made(source, changed=True)
    after = content_of(space["k"])
    if source.expected == RUN:
        assert after.unknown
    else:
        assert (before.unknown, after.unknown) == ("", "")
        assert before.key != after.key


@each("source", [each for each in EVERY if each.expected == KNOWN])
def test_what_is_the_same_has_the_same_content(source: Source) -> None:
    """Looked at twice, and made anew from the same text, also at another place of the file."""
    space = made(source)
    first = content_of(space["k"])
    assert content_of(space["k"]) == first
    assert content_of(made(source)["k"]) == first
    assert content_of(made(source._replace(head=f"\n\n{source.head}"))["k"]).key == first.key


def test_a_value_that_is_the_line_of_its_class_counts() -> None:
    """From Python 3.13 on a class notes its line among its constants; a value of the same number is another one."""
    bodies = ["def h():\n    class X: v=2\n    return X.v", "\ndef h():\n    class X: v=3\n    return X.v"]
    keys = {content_of(made(Source("", text, "h()"))["k"]).key for text in bodies}
    assert len(keys) == 2


def test_lines_are_in_the_key_of_the_code_alone() -> None:
    """Code at other lines, or of other numbers, is other code; a global number is none."""
    first = content_of(made(Source("", "S = 2.0", "S"))["k"])
    assert content_of(made(Source("", "\nS = 2.0", "S"))["k"]).code != first.code
    assert content_of(made(Source("", "S = 3.0", "S"))["k"]).code == first.code
    assert content_of(made(Source("", "S = 2.0", "S + 1"))["k"]).code != first.code


def helper(x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("value", "other"),
    [
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones((2, 3)), np.ones((3, 2))),
        (np.array([0.0]), np.array([-0.0])),
        ([1, [2]], [1, 2]),
        ((1,), [1]),
        ({"a": np.ones(2)}, {"a": np.zeros(2)}),
        ("1", b"1"),
        (helper, None),
        (range(3), range(4)),
    ],
)
def test_values_that_differ_have_other_keys(value: Any, other: Any) -> None:
    """Dtypes, shapes, signs of zero and kinds of containers count; equal values have the same key."""
    assert content_of(value).key != content_of(other).key
    copied = value.copy() if hasattr(value, "copy") else value
    assert content_of(value) == content_of(copied)


def test_arrays_beyond_the_limit_are_not_read() -> None:
    """Their sum counts; at the limit they are."""
    half = np.zeros(MOST_BYTES // 2, np.uint8)
    assert content_of([half, half[:8]]).unknown == ""
    assert "has more than 256 MB of values" in content_of([half, half.copy(), np.zeros(1)]).unknown


def test_containers_that_hold_themselves_have_an_end() -> None:
    """A list in itself, and an object whose attribute is itself."""
    ring: list[Any] = []
    ring.append(ring)
    namespace = types.SimpleNamespace()
    namespace.itself = namespace
    assert content_of(ring, namespace).unknown == ""


def test_the_reason_names_the_function_and_what_it_uses() -> None:
    """In the author's words."""
    source = Source("", "def h():\n    return open('s').read()", "h()")
    assert content_of(made(source)["k"]).unknown == "`h` calls open"
    source = Source("", "import os\ndef h():\n    return os.getenv('s')", "h()")
    assert content_of(made(source)["k"]).unknown == "`h` uses os.getenv"


def test_kernels_are_known_before_and_after_a_run() -> None:
    """A run of a kernel leaves the content of its function as it was."""
    from kernels.nki.softmax import softmax

    before = content_of(softmax)
    nkitools.simulate(softmax, np.ones((4, 8), np.float32))
    assert content_of(softmax) == before
    assert before.unknown == ""


def test_a_kernel_is_its_function_its_grid_and_its_options() -> None:
    """The same function under a launch grid is another kernel."""
    from kernels.nki.softmax import softmax

    assert content_of(softmax.with_grid(2)).key != content_of(softmax).key


def test_a_module_that_is_handed_on_counts_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its names; of a module that an attribute is read of that attribute alone."""
    module = types.ModuleType("settings_of_a_test")
    module.S, module.other = 2.0, 1  # type: ignore[attr-defined]
    whole: Callable[[Any], Any] = made(Source("", "", "getattr(M, 'S')"))["k"]
    part: Callable[[Any], Any] = made(Source("", "", "M.S"))["k"]
    before = []
    for function in (whole, part):
        function.__globals__["M"] = module
        before.append(content_of(function).key)
    module.other = 2  # type: ignore[attr-defined]
    assert content_of(whole).key != before[0]
    assert content_of(part).key == before[1]
    module.S = 3.0  # type: ignore[attr-defined]
    assert content_of(part).key != before[1]
