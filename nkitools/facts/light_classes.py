"""``dataclass`` and ``NamedTuple`` for what each kernel loads: as Python's own, but for what is compiled at import.

`dataclasses.dataclass` writes up to six methods of each class as text and compiles them, a third of a millisecond a
class, and takes two milliseconds to import. Here the classes share those that compare and print; the fields are found
when they are asked for; and ``__init__`` is compiled for a class that has had some instances.
`typing.NamedTuple` compiles the annotation of each field, which nothing reads.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cached_property, partial
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

_Thing = TypeVar("_Thing")
_Value = TypeVar("_Value")
_NONE: Any = object()
_NOT_COMPILED = 16  # the instances of a class whose fields are filled in one by one, which takes less than to compile

if TYPE_CHECKING:
    from dataclasses import KW_ONLY as KW_ONLY
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
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

    class KW_ONLY:  # noqa: N801 - as dataclasses has it
        """The annotation before fields that are given by name alone."""

    class field(dict):  # noqa: N801 - it is used as the function of dataclasses
        """The options of a field, those of `dataclasses.field`."""

    def dataclass(cls: type | None = None, /, *, frozen=False, eq=True, repr=True, slots=False, kw_only=False) -> Any:
        """Make a class one as `dataclasses.dataclass` does."""
        if cls is None:
            return partial(dataclass, frozen=frozen, eq=eq, repr=repr, slots=slots, kw_only=kw_only)
        fields = _Fields(cls, frozen, kw_only)
        methods = {"__init__": _AtFirstUse(fields.init)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods |= _comparing(fields)
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if frozen and slots:  # what pickles sets the attributes
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
        methods = {name: method for name, method in methods.items() if vars(cls).get(name) is None}
        if slots:
            cls = fields.cls = _with_slots(cls, fields.own)
        for name, method in methods.items():
            setattr(cls, name, method)
        cls.__own_fields__ = fields
        cls.__dataclass_fields__ = _AtFirstUse(lambda _: fields.python.__dataclass_fields__)
        cls.__dataclass_params__ = _AtFirstUse(lambda _: fields.python.__dataclass_params__)
        cls.__match_args__ = _AtFirstUse(lambda _: fields.positional)
        return cls

    def replace(thing: _Thing, /, **changes: _Value) -> _Thing:
        """Return a copy with other values of some fields, as `dataclasses.replace` does."""
        for name, options in _fields_of(thing).all.items():
            if name not in changes and options.get("init", True):
                changes[name] = getattr(thing, name)
        return type(thing)(**changes)


class _AtFirstUse:
    """Stands for an attribute of a class that is made when it is asked for."""

    def __init__(self, made: Callable[[Any], Any]) -> None:
        self.made = made

    def __get__(self, instance: _Thing, owner: type | None = None) -> Any:
        return self.made(instance)


class _Fields:
    """The fields of a class, and the ``__init__`` that fills them in."""

    def __init__(self, cls: type, is_frozen: bool, by_name: bool) -> None:
        self.cls: Any = cls
        self.is_frozen, self.by_name = is_frozen, by_name
        self.instances = 0

    def init(self, thing: _Thing | None) -> Any:
        """Return the ``__init__`` of the class or, if it is given, of an instance."""
        self.instances += 1
        if thing is not None and self.instances <= _NOT_COMPILED:
            return partial(self.fill, thing)
        return self.compiled().__get__(thing, self.cls)

    @cached_property
    def own(self) -> dict[str, dict[str, Any]]:
        """The fields that the class itself annotates, each with the options of `dataclasses.field`."""
        found: dict[str, dict[str, Any]] = {}
        by_name = self.by_name
        for name, annotation in self.cls.__annotations__.items():
            kind = annotation.partition("[")[0].rpartition(".")[2]
            by_name = by_name or kind == "KW_ONLY"
            if kind in ("ClassVar", "KW_ONLY"):
                continue
            default = getattr(self.cls, name, _NONE)
            if type(default).__module__ == "dataclasses":
                raise TypeError(f"{self.cls.__name__}.{name}: take `field` from nkitools.facts.light_classes")
            if not isinstance(default, field):  # type: ignore[arg-type] # it is a function to a type checker
                default = {} if default is _NONE or isinstance(default, MemberDescriptorType) else {"default": default}
            found[name] = {"kw_only": by_name, **default}
        return found

    @cached_property
    def all(self) -> dict[str, dict[str, Any]]:
        """The fields with those of the bases."""
        found: dict[str, dict[str, Any]] = {}
        for base in self.cls.__mro__[:0:-1]:
            found |= vars(base)["__own_fields__"].own if "__own_fields__" in vars(base) else {}
        return found | self.own

    def named(self, does: str) -> list[str]:
        """Return the names of the fields that have an option, as all have if it is not given."""
        return [name for name, options in self.all.items() if options.get(does, True)]

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The fields that ``__init__`` takes by position."""
        return tuple([name for name in self.named("init") if not self.all[name]["kw_only"]])

    @cached_property
    def python(self) -> Any:
        """A class of Python's own with the same fields."""
        from dataclasses import field, make_dataclass

        kinds = {name: kind for base in self.cls.__mro__[::-1] for name, kind in _annotations_of(base)}
        fields = [(name, kinds[name], field(**options)) for name, options in self.all.items()]
        return make_dataclass(self.cls.__name__, fields, init=False, repr=False, eq=False, frozen=self.is_frozen)

    def fill(self, thing: _Thing, /, *given: _Value, **named: _Value) -> None:
        """Do what the compiled ``__init__`` does."""
        values = dict(zip(self.positional, given, strict=False))
        is_wrong = len(given) > len(values) or not values.keys().isdisjoint(named)
        values |= named
        for name, options in self.all.items():
            value = values.pop(name, _NONE) if options.get("init", True) else _NONE
            if value is _NONE and "default_factory" in options:
                value = options["default_factory"]()
            if value is _NONE:
                value = options.get("default", _NONE)
            if value is not _NONE:
                object.__setattr__(thing, name, value)
            elif options.get("init", True):
                is_wrong = True
        if is_wrong or values:
            self.compiled()(thing, *given, **named)  # it raises, in Python's own words
        elif hasattr(thing, "__post_init__"):
            thing.__post_init__()

    def compiled(self) -> Any:
        """Return the compiled ``__init__``, which takes the place of this one."""
        known: dict[str, Any] = {"NONE": _NONE, "store": object.__setattr__}
        positional, by_name, lines = ["self"], ["*"], ["pass"]
        for name, options in self.all.items():
            value, make = name, options.get("default_factory")
            has_default = make is not None or "default" in options
            known |= {f"of_{name}": options.get("default", _NONE), f"make_{name}": make}
            made = f"make_{name}()" if make else f"of_{name}"
            if options.get("init", True):
                (by_name if options["kw_only"] else positional).append(f"{name}=of_{name}" if has_default else name)
                value = f"{made} if {name} is NONE else {name}" if make else name
            elif has_default:
                value = made
            else:
                continue
            lines.append(f"store(self, {name!r}, {value})" if self.is_frozen else f"self.{name} = {value}")
        if hasattr(self.cls, "__post_init__"):
            lines.append("self.__post_init__()")
        parameters = ", ".join(positional + (by_name if len(by_name) > 1 else []))
        exec(f"def __init__({parameters}):\n " + "\n ".join(lines), known)
        init = known["__init__"]
        init.__qualname__ = f"{self.cls.__qualname__}.__init__"
        self.cls.__init__ = init
        return init


def _fields_of(thing: _Thing) -> _Fields:
    return type(thing).__own_fields__  # type: ignore[attr-defined,no-any-return]


def _annotations_of(cls: type) -> Any:
    return cls.__annotations__.items() if "__own_fields__" in vars(cls) else ()


def _with_slots(cls: type, fields: dict[str, Any]) -> type:
    """Return the class again, with slots for its own fields."""
    space = {name: value for name, value in vars(cls).items() if name not in (*fields, "__dict__", "__weakref__")}
    inherited = {name for base in cls.__mro__ for name in vars(base).get("__slots__", ())}
    space["__slots__"] = tuple([name for name in fields if name not in inherited])
    made = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


def _comparing(fields: _Fields) -> dict[str, Any]:
    """Return the methods that compare and hash the fields of a class; each puts the right one in its place."""

    def equal(self: _Thing, other: _Value) -> Any:
        _compare_by_fields(fields, equal, hashed)
        return fields.cls.__eq__(self, other)

    def hashed(self: _Thing) -> Any:
        _compare_by_fields(fields, equal, hashed)
        return fields.cls.__hash__(self)

    return {"__eq__": equal, "__hash__": hashed if fields.is_frozen else None}


def _compare_by_fields(fields: _Fields, *stand_ins: Callable[..., Any]) -> None:
    """Let the instances of a class compare and hash their fields, where it has these stand-ins for that."""
    compared = fields.named("compare")
    values, hashed = _values_of(compared), _values_of([name for name in compared if fields.all[name].get("hash", True)])

    def equal(self: _Thing, other: _Value) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        # In a tuple, where what is the same object is equal, as Python's own compares them before Python 3.13.
        return (values(self),) == (values(other),)

    methods = {"__eq__": equal, "__hash__": lambda self: hash(hashed(self))}
    for name, method in methods.items():
        if vars(fields.cls).get(name) in stand_ins:
            setattr(fields.cls, name, method)


def _values_of(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda _: ()


def _repr(self: _Thing) -> str:
    shown = [f"{name}={getattr(self, name)!r}" for name in _fields_of(self).named("repr")]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _state(self: _Thing) -> list[Any]:
    return [getattr(self, name) for name in _fields_of(self).all]


def _set_state(self: _Thing, values: list[Any]) -> None:
    for name, value in zip(_fields_of(self).all, values, strict=True):
        object.__setattr__(self, name, value)


def _refuse_to_set(self: _Thing, name: str, value: _Value) -> None:
    if _is_frozen(self, name):
        raise frozen_error(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: _Thing, name: str) -> None:
    if _is_frozen(self, name):
        raise frozen_error(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def frozen_error(message: str) -> AttributeError:
    """Return the error of Python for a change of a frozen attribute."""
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(message)


def _is_frozen(thing: _Thing, name: str) -> bool:
    """Return whether an attribute is frozen; a plain class that derives from a frozen one may have some of its own."""
    return "__own_fields__" in vars(type(thing)) or name in _fields_of(thing).all
