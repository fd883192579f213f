"""Classes of `nkitools.facts.light_classes` are what Python makes of the same text."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import pytest

from nkitools.facts import light_classes

Maker = Callable[..., Any]
MAKERS = pytest.mark.parametrize("dataclass", [dataclasses.dataclass, light_classes.dataclass], ids=["Python", "ours"])


def classes(dataclass: Maker) -> dict[str, Any]:
    """Return a class of each kind that nkitools has."""
    field = dataclasses.field if dataclass is dataclasses.dataclass else light_classes.field

    @dataclass
    class Plain:
        """Has defaults of both kinds, and a field that is left out of comparisons and texts."""

        a: int
        b: list[int] = field(default_factory=list)
        c: str = field(default="c", compare=False, repr=False)

    @dataclass(frozen=True)
    class Frozen:
        """Can be hashed."""

        a: int
        _: KW_ONLY
        b: tuple[int, ...] = ()

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", tuple(self.b))

    @dataclass(frozen=True)
    class Inherits(Frozen):
        """Has a field more than its base."""

        d: int = 4

    @dataclass(eq=False, slots=True)
    class Slots:
        """Has no dictionary."""

        a: int
        later: int = field(init=False, default=3)

    @dataclass(frozen=True, kw_only=True)
    class ByName:
        """Takes no positional argument."""

        a: int
        b: float = 2.0
        c: list[int] = field(default_factory=list, hash=False)

    @dataclass(frozen=True, slots=True)
    class FrozenSlots:
        """Has both."""

        a: int

    return {each.__name__: each for each in (Plain, Frozen, Inherits, Slots, ByName, FrozenSlots)}


@MAKERS
def test_fields_are_filled_in(dataclass: Maker) -> None:
    """By position, by name, by default, by factory, and after that by ``__post_init__``."""
    made = classes(dataclass)
    one, other = made["Plain"](1), made["Plain"](1)
    one.b.append(5)
    assert (one.a, one.b, one.c, other.b) == (1, [5], "c", [])
    assert made["Frozen"](1, b=[2, 3]).b == (2, 3)
    assert dataclasses.astuple(made["Inherits"](1, 6, b=[2])) == (1, (2,), 6)
    assert (made["Slots"](7).a, made["Slots"](7).later) == (7, 3)
    assert dataclasses.asdict(made["ByName"](a=1)) == {"a": 1, "b": 2.0, "c": []}
    assert dataclasses.replace(made["ByName"](a=1), b=3.0).b == 3.0


@MAKERS
def test_instances_compare_by_their_fields(dataclass: Maker) -> None:
    """Of one class alone; fields that are not compared do not count; frozen ones have a hash, others none."""
    made = classes(dataclass)
    assert made["Plain"](1, c="x") == made["Plain"](1, c="y") != made["Plain"](2)
    assert made["Frozen"](1) != made["Inherits"](1)
    assert made["Slots"](1) != made["Slots"](1)
    assert len({made["Frozen"](1), made["Frozen"](1), made["Frozen"](2)}) == 2
    assert hash(made["ByName"](a=1, c=[1])) == hash(made["ByName"](a=1, c=[2]))
    assert made["ByName"](a=1, c=[1]) != made["ByName"](a=1, c=[2])
    with pytest.raises(TypeError, match="unhashable"):
        hash(made["Plain"](1))


@MAKERS
def test_frozen_ones_refuse_changes(dataclass: Maker) -> None:
    """Also deletions; a class that derives from one, and is none itself, may have attributes of its own."""
    made = classes(dataclass)
    for one in (made["Frozen"](1), made["Inherits"](1), made["ByName"](a=1), made["FrozenSlots"](1)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.a = 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.a
        assert one.a == 1

    class Child(made["Frozen"]):  # type: ignore[misc]
        """Is no dataclass."""

    child = Child(1)
    child.own = 3
    assert child.own == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        child.a = 2


@MAKERS
def test_wrong_calls_are_refused(dataclass: Maker) -> None:
    """By Python's own words, which name the class; the signature says what fits."""
    made = classes(dataclass)
    with pytest.raises(TypeError, match=r"Plain\.__init__\(\) missing 1 required positional argument: 'a'"):
        made["Plain"]()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        made["Frozen"](1, z=2)
    with pytest.raises(TypeError, match="positional argument"):
        made["ByName"](1)
    assert list(inspect.signature(made["Frozen"]).parameters) == ["a", "b"]
    assert inspect.signature(made["Plain"]).parameters["c"].default == "c"


@MAKERS
def test_texts_name_the_fields(dataclass: Maker) -> None:
    """All but those that are left out of texts, with the class as it is written."""
    made = classes(dataclass)
    assert repr(made["Plain"](1)).endswith("Plain(a=1, b=[])")
    assert repr(made["Frozen"](1)).endswith("Frozen(a=1, b=())")
    assert [each.name for each in dataclasses.fields(made["Inherits"])] == ["a", "b", "d"]


@light_classes.dataclass(frozen=True)
class Kept:
    """Lies in a module, so that it can be pickled."""

    a: int
    b: tuple[int, ...] = (1,)


def test_instances_are_copied_and_pickled() -> None:
    """To equal ones, as others do; a pattern takes their fields by position."""
    one = Kept(3)
    match one:
        case Kept(a, b):
            assert (a, b) == (3, (1,))
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one


@light_classes.dataclass(frozen=True, slots=True)
class KeptSlots:
    """Lies in a module, so that it can be pickled."""

    a: int
    b: int = 1


def test_frozen_instances_with_slots_are_pickled_and_copied() -> None:
    """To equal ones, of which nothing can be changed either."""
    found = pickle.loads(pickle.dumps(KeptSlots(3)))
    assert found == copy.copy(found) == KeptSlots(3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.a = 4


@MAKERS
def test_many_instances_are_as_the_first(dataclass: Maker) -> None:
    """The compiled ``__init__`` takes the place of the other one; each instance has a list of its own."""
    plain = classes(dataclass)["Plain"]
    made = [plain(number, c="d") for number in range(40)]
    assert [(each.a, each.b, each.c) for each in made] == [(number, [], "d") for number in range(40)]
    assert len({id(each.b) for each in made}) == 40


@MAKERS
def test_copies_have_other_values_of_some_fields(dataclass: Maker) -> None:
    """The rest is that of the original; an unknown name is refused."""
    replace = dataclasses.replace if dataclass is dataclasses.dataclass else light_classes.replace
    made = classes(dataclass)
    assert replace(made["Inherits"](1, b=[2]), d=5) == made["Inherits"](1, 5, b=(2,))
    assert replace(made["Slots"](7), a=8).later == 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replace(made["Frozen"](1), z=2)


def test_fields_of_python_are_refused() -> None:
    """Their options would be lost: the message says where `field` is."""

    @light_classes.dataclass
    class Mixed:
        """Has a field of Python's own."""

        a: list[int] = dataclasses.field(default_factory=list)

    with pytest.raises(TypeError, match=r"Mixed\.a: take `field` from nkitools\.facts\.light_classes"):
        Mixed()


def test_a_dataclass_of_python_derives_from_one() -> None:
    """Its fields come after those of the base."""

    @dataclasses.dataclass(frozen=True)
    class Derived(KeptSlots):
        """Has one field more."""

        c: int = 5

    assert dataclasses.astuple(Derived(1)) == (1, 1, 5)


@pytest.mark.parametrize("base", [typing.NamedTuple, light_classes.NamedTuple], ids=["Python", "ours"])
def test_named_tuples_are_tuples_with_names(base: Any) -> None:
    """With defaults, methods, properties and a text; the fields are those that are annotated."""

    class Point(base):  # type: ignore[misc]
        """Is a place."""

        x: int
        y: int = 2

        @property
        def sum(self) -> int:
            return self.x + self.y

        def moved(self, by: int) -> Any:
            return self._replace(x=self.x + by)

    one = Point(1)
    assert one == (1, 2)
    assert (one.sum, one.moved(3), Point._fields, Point._field_defaults) == (3, (4, 2), ("x", "y"), {"y": 2})
    assert (Point.__doc__, Point.__name__, Point.__module__) == ("Is a place.", "Point", __name__)
    assert Point.__qualname__.endswith("<locals>.Point")
    assert repr(one) == "Point(x=1, y=2)"
    assert list(Point.__annotations__) == ["x", "y"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()
    x, y = one
    assert (x, y) == (1, 2)


class Pair(light_classes.NamedTuple):
    """Lies in a module, so that it can be pickled."""

    first: int
    second: str = ""


def test_named_tuples_are_pickled() -> None:
    """By their fields, to the same class."""
    found = pickle.loads(pickle.dumps(Pair(1, "a")))
    assert type(found) is Pair
    assert found == (1, "a")
