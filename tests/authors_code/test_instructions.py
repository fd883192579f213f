"""Names and loops out of an author's bytecode."""
# ruff: noqa: B007 - loops whose counters nothing reads are what these tests are about

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from nkitools.authors_code.instructions import bound_name, is_returned, loops_around, returned_element, variable_before

found: list[Any] = []


def name() -> Any:
    """Notes the name that the caller gives to the result of this call."""
    frame = sys._getframe(1)
    found.append(bound_name(frame.f_code, frame.f_lasti))
    return found


def loops() -> Any:
    """Notes the names of the loops around the caller's line."""
    frame = sys._getframe(1)
    found.append([loop.names for loop in loops_around(frame.f_code, frame.f_lasti)])
    return found


class Naming:
    """An iterable that notes the counter of its loop."""

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        found.append(bound_name(frame.f_code, frame.f_lasti))
        return iter([0])

    def turns(self) -> Any:
        frame = sys._getframe(1)
        found.append(bound_name(frame.f_code, frame.f_lasti))
        yield 0


@pytest.fixture(autouse=True)
def _fresh() -> None:
    found.clear()


def test_the_result_of_a_call_is_named_by_its_variable() -> None:
    """Local, global, of a closure, one of several; not where it goes on into something else."""

    def kernel() -> Any:
        first = name()
        second: Any = name()
        [name()]
        third, fourth = name(), name()
        if fifth := name():
            pass
        return (lambda: (first, second, third, fourth, fifth)), name()

    kernel()
    assert found == ["first", "second", "", "third", "fourth", "", ""]
    found.clear()
    exec("top = name()", {"name": name})
    assert found == ["top"]


def test_each_of_several_results_is_named_by_its_own_variable() -> None:
    """Whatever is between, and in whatever order the stores are."""

    def kernel() -> Any:
        first, second, third = name(), [name()], name()
        fourth, fifth, sixth, seventh = name(), 1, name(), (1, 2)[0] + 1
        eighth, ninth = name() if first else 1, name()
        return first, second, third, fourth, fifth, sixth, seventh, eighth, ninth

    kernel()
    assert found == ["first", "", "third", "fourth", "sixth", "", "ninth"]


def test_what_is_returned_as_it_is() -> None:
    """The caller names it; not where it goes on into something else first, or is named here."""

    def asked() -> bool:
        frame = sys._getframe(1)
        return is_returned(frame.f_code, frame.f_lasti)

    def straight() -> Any:
        return asked()

    def in_a_tuple() -> Any:
        return (asked(),)

    def named() -> Any:
        answer = asked()
        return answer  # noqa: RET504 - the name is what this is about

    assert straight()
    assert not in_a_tuple()[0]
    assert not named()


def test_which_element_of_what_is_returned() -> None:
    """Of a tuple or list, whatever its other elements and its own arguments are; not what is made into something."""
    elements = []

    def asked(*args: Any, **kwargs: Any) -> int:
        frame = sys._getframe(1)
        elements.append(returned_element(frame.f_code, frame.f_lasti))
        return 1

    def returning(x: int) -> Any:
        return asked(), asked(x, 1, k=2), [asked()], asked(x).real, x + asked(), asked(x + 1, asked(x.real))

    def listing(x: int) -> Any:
        return [x, asked(x), -x]

    def keeping() -> Any:
        both = asked(), asked()
        return both  # noqa: RET504 - the name is what this is about

    returning(1)
    assert elements == [0, 1, None, None, None, None, 5]
    elements.clear()
    listing(1)
    assert elements == [1]
    elements.clear()
    keeping()
    assert elements == [None, None]


def test_a_generator_in_a_for_loop_is_named_by_the_counter() -> None:
    """The last name of several: enumerate's value."""

    def kernel() -> None:
        for m in Naming().turns():
            found.append(m)
        for _index, n in enumerate(Naming().turns()):
            found.append(n)

    kernel()
    assert found == ["m", 0, "n", 0]


def test_loops_are_named_outermost_first() -> None:
    """Tuples have several names; attributes and elements have none."""

    def kernel(box: dict[str, Any]) -> None:
        for i in range(1):
            for j, (a, b) in [(1, (2, 3))]:
                for box["k"] in range(1):
                    loops()
            found.append((i, j, a, b))

    kernel({})
    assert found == [[("i",), ("j", "a", "b"), ()], (0, 1, 2, 3)]


def test_many_names_need_no_special_care() -> None:
    """Wide instructions (EXTENDED_ARG) are instructions."""
    names = [f"v{number}" for number in range(300)]
    body = "".join(f"    {each} = 0\n" for each in names)
    source = f"def kernel():\n{body}    for last in range(1):\n        tile = name()\n        loops()\n"
    namespace: dict[str, Any] = {"name": name, "loops": loops}
    exec(source, namespace)
    namespace["kernel"]()
    assert found == ["tile", [("last",)]]


def test_the_variable_whose_attribute_is_asked_for() -> None:
    """Of `x.shape` it is `x`; of an attribute of an entry or of a call's result there is none."""
    x = (1, 2)

    def by_name(x: Any) -> Any:
        return x.shape

    def by_entry(x: Any) -> Any:
        return x[0].shape

    def by_call(x: Any) -> Any:
        return tuple(x).shape  # type: ignore[attr-defined]

    names = []
    for each in (by_name, by_entry, by_call):
        with pytest.raises(AttributeError) as error:
            each(x)
        entry = error.traceback[-1]._rawentry
        names.append(variable_before(entry.tb_frame.f_code, entry.tb_lasti))
    assert names == ["x", "", ""]


def test_which_names_a_statement_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`from module import name` is told from `module.name` and from `getattr`, in a function and in a module."""
    (tmp_path / "asking_module.py").write_text(
        "import sys\n"
        "from nkitools.authors_code.instructions import begins_import_from\n"
        "asked = []\n"
        "def __getattr__(name):\n"
        "    if not name.startswith('__'):\n"
        "        asked.append((name, begins_import_from(sys._getframe(1))))\n"
        "        return name\n"
        "    raise AttributeError(name)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    source = "from asking_module import one, two\nimport asking_module as m\nm.three\ngetattr(m, 'four')\n"
    exec(source + "def f():\n    from asking_module import five\nf()\n", names)
    assert names["m"].asked == [("one", True), ("two", True), ("three", False), ("four", False), ("five", True)]
