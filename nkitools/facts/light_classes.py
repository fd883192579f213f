"""``dataclass`` and ``NamedTuple`` for what each kernel loads: as Python's own, but for what is compiled at import.

`dataclasses.dataclass` writes up to six methods of each class as text and compiles them, a third of a millisecond a
class. Here the classes share those that compare and print, and ``__init__`` is compiled when it is first asked for, as
the fields are found then.
`typing.NamedTuple` compiles the annotation of each field, which nothing reads.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

_Thing = TypeVar("_Thing")
_Value = TypeVar("_Value")

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from typing import NamedTuple as NamedTuple
else:

    class _NamedTuples(type):
        def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, space)
            fields = space.pop("__annotations__", {})
            defaults = [space.pop(each) for each in fields if each in space]
            made = namedtuple(name, fields, defaults=defaults, module=space["__module__"])
            made.__annotations__ = made.__new__.__annotations__ = fields
            for key, value in space.items():
                if key not in ("__module__", "__qualname__"):
                    setattr(made, key, value)
            made.__qualname__ = space["__qualname__"]
            return made

    class NamedTuple(metaclass=_NamedTuples):
        """Make a class one as `typing.NamedTuple` does."""

    def dataclass(cls: type | None = None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False) -> Any:
        """Make a class one as `dataclasses.dataclass` does."""
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        if frozen and slots:  # Python's own also pickles them
            return dataclasses.dataclass(frozen=True, eq=eq, repr=repr, slots=True, kw_only=kw_only)(cls)
        found = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
        if slots or "__init__" in vars(cls):
            made = found(cls)
        else:
            made = cls
            made.__dataclass_fields__ = _FieldsAtFirstUse(made, found, kw_only)
        methods = {"__init__": _InitAtFirstUse(made, frozen)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= _comparing(made, frozen)
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        for name, method in methods.items():
            if vars(cls).get(name) is None:
                setattr(made, name, method)
        return made


class _FieldsAtFirstUse:
    """Stands for the fields of a class, and lets Python's own ``dataclass`` find them when they are asked for."""

    def __init__(self, cls: type, found: Callable[[type], type], kw_only: bool) -> None:
        self.cls, self.found, self.kw_only = cls, found, kw_only

    def __get__(self, instance: _Thing, owner: type | None = None) -> Any:
        if vars(self.cls).get("__dataclass_fields__") is self:
            del self.cls.__dataclass_fields__
            self.found(self.cls)
        return vars(self.cls)["__dataclass_fields__"]


class _InitAtFirstUse:
    """Stands for the ``__init__`` of a class, and puts the compiled one in its place when it is asked for."""

    def __init__(self, cls: type, is_frozen: bool) -> None:
        self.cls, self.is_frozen = cls, is_frozen

    def __get__(self, instance: _Thing, owner: type | None = None) -> Any:
        init = _compiled_init(self.cls, self.is_frozen)
        setattr(self.cls, "__init__", init)  # noqa: B010 - a type checker does not let it be assigned
        return init.__get__(instance, owner)


def _compiled_init(cls: type, is_frozen: bool) -> Any:
    """Return the ``__init__`` of a dataclass."""
    known: dict[str, Any] = {"MISSING": dataclasses.MISSING, "store": object.__setattr__}
    positional, by_name, lines = ["self"], ["*"], ["pass"]
    for each in _fields_of(cls):
        name, value = each.name, each.name
        has_factory = each.default_factory is not dataclasses.MISSING
        has_default = has_factory or each.default is not dataclasses.MISSING
        known |= {f"of_{name}": each.default, f"make_{name}": each.default_factory}
        made = f"make_{name}()" if has_factory else f"of_{name}"
        if each.init:
            (by_name if each.kw_only else positional).append(f"{name}=of_{name}" if has_default else name)
            value = f"{made} if {name} is MISSING else {name}" if has_factory else name
        elif has_default:
            value = made
        else:
            continue
        lines.append(f"store(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(positional + (by_name if len(by_name) > 1 else []))
    exec(f"def __init__({parameters}):\n " + "\n ".join(lines), known)
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _fields_of(cls: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields of a dataclass, without the search of `dataclasses`, which takes ten times as long."""
    known = vars(cls)["__dataclass_fields__"]
    if not isinstance(known, _FieldsAtFirstUse):
        return list(dataclasses.fields(cls))
    found: dict[str, dataclasses.Field[Any]] = {}
    for base in cls.__mro__[:0:-1]:
        if "__dataclass_fields__" in vars(base):
            found |= {each.name: each for each in _fields_of(base)}
    by_name = known.kw_only
    for name, annotation in cls.__annotations__.items():
        kind = str(annotation).partition("[")[0].rpartition(".")[2]
        by_name = by_name or kind == "KW_ONLY"
        if kind in ("ClassVar", "KW_ONLY"):
            continue
        default: Any = getattr(cls, name, dataclasses.MISSING)
        if isinstance(default, MemberDescriptorType):
            default = dataclasses.MISSING
        each: Any = default if isinstance(default, dataclasses.Field) else dataclasses.field(default=default)
        each.name, each.kw_only = name, by_name if each.kw_only is dataclasses.MISSING else each.kw_only
        found[name] = each
    return list(found.values())


def _comparing(cls: Any, is_frozen: bool) -> dict[str, Any]:
    """Return the methods that compare and hash the fields of a class; each puts the right one in its place."""

    def equal(self: _Thing, other: _Value) -> Any:
        _compare_by_fields(cls, equal, hashed)
        return cls.__eq__(self, other)

    def hashed(self: _Thing) -> Any:
        _compare_by_fields(cls, equal, hashed)
        return cls.__hash__(self)

    return {"__eq__": equal, "__hash__": hashed if is_frozen else None}


def _compare_by_fields(cls: type, *stand_ins: Callable[..., Any]) -> None:
    """Let the instances of a class compare and hash their fields, where it has these stand-ins for that."""
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(cls)
    values = _values_of([each.name for each in fields if each.compare])
    hashed = _values_of([each.name for each in fields if (each.compare if each.hash is None else each.hash)])

    def equal(self: _Thing, other: _Value) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        # In a tuple, where what is the same object is equal, as Python's own compares them before Python 3.13.
        return (values(self),) == (values(other),)

    methods = {"__eq__": equal, "__hash__": lambda self: hash(hashed(self))}
    for name, method in methods.items():
        if vars(cls).get(name) in stand_ins:
            setattr(cls, name, method)


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _repr(self: _Thing) -> str:
    shown = [f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr]  # type: ignore[arg-type]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: _Thing, name: str, value: _Value) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: _Thing, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_frozen(thing: _Thing, name: str) -> bool:
    """Return whether an attribute is frozen; a plain class that derives from a frozen one may have some of its own."""
    return "__dataclass_fields__" in vars(type(thing)) or name in type(thing).__dataclass_fields__  # type: ignore[attr-defined]
