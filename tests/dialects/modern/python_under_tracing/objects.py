"""Classes and their objects."""

from __future__ import annotations

from tests.dialects.modern.python_under_tracing.cases import Case

OBJECTS = {
    "a class that inherits": Case(
        "class inheritance, super()",
        """
        class Base:
            def scale(self):
                return 2

        class Mine(Base):  # 0.6: NK601
            def scale(self):
                return 3 * super().scale()  # 0.6: lint NK616

        @nki.jit
        def kernel(x):
            factor = Mine().scale()
        """,
        6,
    ),
    "two bases": Case(
        "class inheritance, super()",
        """
        class Offset:
            def add(self):
                return 10

        class Mine(nl.NKIObject, Offset):  # 0.6: NK601
            width: int = 2

        @nki.jit
        def kernel(x):
            mine = Mine()
            factor = mine.add() + mine.width
        """,
        12,
    ),
    "an abstract base": Case(
        "class inheritance, super()",
        """
        import abc

        class Plan(abc.ABC):
            @abc.abstractmethod
            def parts(self): ...

        class Four(Plan):  # 0.6: NK601
            def parts(self):
                return 4

        @nki.jit
        def kernel(x):
            factor = Four().parts()
        """,
        4,
    ),
    "a plain class": Case(
        "classes without NKIObject",
        """
        class Plan:  # 0.6: NK601
            def __init__(self, width):
                self.width = width

        @nki.jit
        def kernel(x):
            factor = Plan(3).width
        """,
        3,
    ),
    "a class inside of the kernel": Case(
        "classes without NKIObject",
        """
        @nki.jit
        def kernel(x):
            class Plan:  # 0.6: NK601
                width = 9
            factor = Plan.width
        """,
        9,
    ),
    "an NKIObject": Case(
        "classes without NKIObject",
        """
        class Plan(nl.NKIObject):
            width: int
            depth: int = 5

        @nki.jit
        def kernel(x):
            factor = Plan(width=3).width + Plan(width=1).depth
        """,
        8,
    ),
    "two equal objects of an NKIObject class": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(3) else 5
        """,
        5,
        results=(("0.6", 2),),
    ),
    "two unequal objects of an NKIObject class": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) != Plan(3) else 5
        """,
        2,
        results=(("0.6", 5),),
    ),
    "a class with an __eq__ of its own": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

            def __eq__(self, other):
                return self.width % 2 == other.width % 2

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(5) else 5
        """,
        2,
    ),
    "two equal objects of a dataclass": Case(
        "== of user classes",
        """
        from dataclasses import dataclass

        @dataclass
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            factor = 2 if Plan(3) == Plan(3) else 5
        """,
        2,
    ),
    "a list that looks for an object": Case(
        "== of user classes",
        """
        class Plan(nl.NKIObject):
            width: int

        @nki.jit
        def kernel(x):
            plans = [Plan(3)]
            factor = 2 if Plan(3) in plans else 5
        """,
        5,
        results=(("0.6", 2),),
    ),
    "a decorator": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        import functools

        def doubled(function):
            @functools.wraps(function)
            def wrapper(*args):
                return 2 * function(*args)
            return wrapper

        @doubled
        def scale(by):
            return by + 1

        @nki.jit
        def kernel(x):
            factor = scale(4)
        """,
        10,
    ),
    "a frozen dataclass": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        from dataclasses import dataclass, replace

        @dataclass(frozen=True)
        class Plan:  # 0.6: NK601
            width: int
            depth: int = 2

        @nki.jit
        def kernel(x):
            plan = replace(Plan(3), depth=5)
            factor = plan.width * plan.depth
        """,
        15,
    ),
    "a property and a classmethod": Case(
        "decorators, dataclasses, properties, classmethods",
        """
        class Plan(nl.NKIObject):
            width: int

            @classmethod
            def wide(cls):
                return cls(width=4)

            @property
            def area(self):
                return self.width * self.width

        @nki.jit
        def kernel(x):
            factor = Plan.wide().area
        """,
        16,
    ),
    "an enumeration": Case(
        "enumerations",
        """
        import enum

        class Mode(enum.Enum):
            FAST = 1
            EXACT = 2

        @nki.jit
        def kernel(x, mode=Mode.EXACT):
            factor = 3 if mode == Mode.EXACT else 4
        """,
        3,
    ),
    "flags": Case(
        "enumerations",
        """
        import enum

        class Mode(enum.Flag):
            SCALE = enum.auto()
            SHIFT = enum.auto()

        @nki.jit
        def kernel(x):
            mode = Mode.SCALE | Mode.SHIFT
            factor = 5 if Mode.SHIFT in mode else 6
        """,
        5,
    ),
    "match": Case(
        "enumerations",
        """
        @nki.jit
        def kernel(x):
            match x.shape:  # 0.6: lint NK616
                case (128, width):
                    factor = width // 32
        """,
        2,
    ),
}
