"""Places that a number of a kernel may come from, each with a change of it."""

from __future__ import annotations

import sys
import types
from typing import Any, NamedTuple

import nkitools

nkitools.install_stand_in(prefer="builtin")

KNOWN, RUN = "known", "run"  # the content is known, or the function has to be run each time


class Source(NamedTuple):
    """A place that a kernel's factor comes from, and the change of the number there from 2 to 3."""

    name: str
    head: str
    factor: str
    expected: str = KNOWN
    change: str = ""  # a statement in the module; '': the file is written again with 3 in the place of 2


SOURCES = [
    Source("number in the code", "", "2.0"),
    Source("global number", "S = 2.0", "S"),
    Source("global number bound anew", "S = 2.0", "S", change="S = 3.0"),
    Source("default", "def h(a=2.0): return a", "h()"),
    Source("default of another name", "D = 2.0\ndef h(a=D): return a", "h()"),
    Source("default changed in place", "def h(a=[2.0]): return a[0]", "h()", change="h.__defaults__[0][0] = 3.0"),
    Source("default by keyword", "def h(*, a=2.0): return a", "h()"),
    Source("default of the function itself", "", "2.0", change="k.__defaults__ = (3.0,)"),
    Source("negative zero", "S = 0.0", "S", change="S = -0.0"),
    Source("true for one", "S = 1", "S", change="S = True"),
    Source("integer for a float", "S = 2", "S", change="S = 2.0"),
    Source("list", "C = [2.0]", "C[0]"),
    Source("list changed in place", "C = [2.0]", "C[0]", change="C[0] = 3.0"),
    Source("tuple", "C = (2.0,)", "C[0]"),
    Source("dictionary", "C = {'s': 2.0}", "C['s']"),
    Source("dictionary changed in place", "C = {'s': 2.0}", "C['s']", change="C['s'] = 3.0"),
    Source("order of a dictionary", "C = {1: 0, 2: 0}", "next(iter(C))", change="C[1] = C.pop(1)"),
    Source("set", "C = {2.0}", "max(C)"),
    Source("frozenset", "C = frozenset({2.0})", "max(C)"),
    Source("deque", "from collections import deque\nC = deque([2.0])", "C[0]"),
    Source("default dictionary", "from collections import defaultdict\nC = defaultdict(lambda: 2.0)", "C[0]"),
    Source("counter", "from collections import Counter\nC = Counter(a=2)", "C['a']"),
    Source("ordered dictionary", "from collections import OrderedDict\nC = OrderedDict(a=2)", "C['a']"),
    Source("UserDict", "from collections import UserDict\nC = UserDict(s=2.0)", "C['s']"),
    Source("ChainMap", "from collections import ChainMap\nC = ChainMap({'s': 2.0})", "C['s']"),
    Source("mappingproxy", "from types import MappingProxyType\nD = {'s': 2.0}\nC = MappingProxyType(D)", "C['s']"),
    Source(
        "dictionary behind a mappingproxy",
        "from types import MappingProxyType\nD = {'s': 2.0}\nC = MappingProxyType(D)",
        "C['s']", change="D['s'] = 3.0",
    ),
    Source("SimpleNamespace", "from types import SimpleNamespace\nC = SimpleNamespace(s=2.0)", "C.s"),
    Source(
        "SimpleNamespace changed",
        "from types import SimpleNamespace\nC = SimpleNamespace(s=2.0)",
        "C.s", change="C.s = 3.0",
    ),
    Source("partial", "import functools\ndef m(a): return a\nF = functools.partial(m, 2.0)", "F()"),
    Source("keyword of a partial", "import functools\ndef m(a=0): return a\nF = functools.partial(m, a=2.0)", "F()"),
    Source("closure", "def mk(s):\n    def h(): return s\n    return h\nh = mk(2.0)", "h()"),
    Source(
        "list around a function",
        "def mk():\n    s = [2.0]\n    def h(): return s[0]\n    return h, s\nh, S = mk()",
        "h()", change="S[0] = 3.0",
    ),
    Source(
        "nonlocal",
        "def mk():\n"
        "    s = 2.0\n"
        "    def h(): return s\n"
        "    def up():\n"
        "        nonlocal s\n"
        "        s += 1\n"
        "    return h, up\n"
        "h, up = mk()",
        "h()", change="up()",
    ),
    Source(
        "decorator with a number",
        "def by(s):\n"
        "    def wrap(f):\n"
        "        def g(): return f() * s\n"
        "        return g\n"
        "    return wrap\n"
        "@by(2.0)\n"
        "def h(): return 1.0",
        "h()",
    ),
    Source(
        "decorator that wraps",
        "import functools\n"
        "def by(s):\n"
        "    def wrap(f):\n"
        "        @functools.wraps(f)\n"
        "        def g(): return f() * s\n"
        "        return g\n"
        "    return wrap\n"
        "@by(2.0)\n"
        "def h(): return 1.0",
        "h()",
    ),
    Source(
        "function behind a decorator",
        "import functools\n"
        "def by(f):\n"
        "    @functools.wraps(f)\n"
        "    def g(): return f()\n"
        "    return g\n"
        "@by\n"
        "def h(): return 2.0",
        "h()",
    ),
    Source(
        "context manager",
        "import contextlib\n"
        "@contextlib.contextmanager\n"
        "def c(): yield 2.0\n"
        "def h():\n"
        "    with c() as s: return s",
        "h()",
    ),
    Source("attribute of a function", "def h(): return h.s\nh.s = 2.0", "h()", change="h.s = 3.0"),
    Source("lambda", "T = lambda: 2.0", "T()"),
    Source("lambda in a dictionary", "T = {'f': lambda: 2.0}", "T['f']()"),
    Source("helper of a helper", "def g(): return 2.0\ndef h(): return g()", "h()"),
    Source("monkeypatched function", "def h(): return 2.0\ndef other(): return 3.0", "h()", change="h = other"),
    Source(
        "code of a function replaced",
        "def h(): return 2.0\ndef other(): return 3.0",
        "h()", change="h.__code__ = other.__code__",
    ),
    Source("function out of a text", "ns = {}\nexec('def h(): return 2.0', ns)\nh = ns['h']", "h()"),
    Source("class out of a text", "ns = {}\nexec('class H:\\n    s = 2.0', ns)\nH = ns['H']", "H.s"),
    Source("class attribute", "class H:\n    s = 2.0", "H.s"),
    Source("private class attribute", "class H:\n    _s = 2.0\n    def f(self): return self._s", "H().f()"),
    Source(
        "class attribute changed",
        "class H:\n    _s = 2.0\n    def f(self): return self._s",
        "H().f()", change="H._s = 3.0",
    ),
    Source("attribute of a base class", "class B:\n    s = 2.0\nclass H(B): pass", "H.s"),
    Source("attribute of a metaclass", "class M(type):\n    s = 2.0\nclass H(metaclass=M): pass", "H.s"),
    Source("method replaced", "class H:\n    def f(self): return 2.0", "H().f()", change="H.f = lambda self: 3.0"),
    Source("property", "class H:\n    @property\n    def s(self): return 2.0", "H().s"),
    Source(
        "cached property",
        "import functools\nclass H:\n    @functools.cached_property\n    def s(self): return 2.0\nC = H()",
        "C.s",
    ),
    Source("static method", "class H:\n    @staticmethod\n    def s(): return 2.0", "H.s()"),
    Source("class method", "class H:\n    v = 2.0\n    @classmethod\n    def s(cls): return cls.v", "H.s()"),
    Source("attribute of an object", "class C:\n    def __init__(self, s): self.s = s\nc = C(2.0)", "c.s"),
    Source(
        "attribute of an object changed",
        "class C:\n    def __init__(self, s): self.s = s\nc = C(2.0)",
        "c.s", change="c.s = 3.0",
    ),
    Source("object with slots", "class C:\n    __slots__ = ('s',)\nc = C()\nc.s = 2.0", "c.s", change="c.s = 3.0"),
    Source(
        "object that hides its state",
        "class C:\n    def __getstate__(self): return {}\nc = C()\nc.s = 2.0",
        "c.s", change="c.s = 3.0",
    ),
    Source("list of one's own", "class L(list): pass\nC = L([2.0])", "C[0]", change="C[0] = 3.0"),
    Source(
        "bound method",
        "class C:\n    def __init__(self, s): self.s = s\n    def f(self): return self.s\nf = C(2.0).f",
        "f()",
    ),
    Source(
        "callable object",
        "class C:\n"
        "    def __init__(self, s): self.s = s\n"
        "    def __call__(self): return self.s\n"
        "f = C(2.0)",
        "f()",
    ),
    Source(
        "default of a dataclass",
        "from dataclasses import dataclass\n@dataclass\nclass C:\n    s: float = 2.0",
        "C().s",
    ),
    Source(
        "field factory of a dataclass",
        "from dataclasses import dataclass, field\n"
        "@dataclass\n"
        "class C:\n"
        "    s: list = field(default_factory=lambda: [2.0])",
        "C().s[0]",
    ),
    Source(
        "made dataclass",
        "from dataclasses import make_dataclass\nC = make_dataclass('C', [('s', float, 2.0)])",
        "C().s",
    ),
    Source("NamedTuple", "from typing import NamedTuple\nclass C(NamedTuple):\n    s: float = 2.0", "C().s"),
    Source("member of an enum", "import enum\nclass E(enum.Enum):\n    A = 2.0", "E.A.value"),
    Source(
        "list in a member of an enum",
        "import enum\nclass E(enum.Enum):\n    A = [2.0]",
        "E.A.value[0]", change="E.A.value[0] = 3.0",
    ),
    Source(
        "attribute of a member",
        "import enum\nclass E(enum.Enum):\n    A = 1\nE.A.s = 2.0",
        "E.A.s", change="E.A.s = 3.0",
    ),
    Source("IntEnum", "import enum\nclass E(enum.IntEnum):\n    A = 2", "E.A"),
    Source("Fraction", "from fractions import Fraction\nC = Fraction(2)", "float(C)"),
    Source("Decimal", "from decimal import Decimal\nC = Decimal(2)", "float(C)"),
    Source("slice", "C = slice(2, 9)", "C.start"),
    Source("range", "C = range(2, 9)", "C.start"),
    Source("bytearray", "C = bytearray([2])", "C[0]", change="C[0] = 3"),
    Source("memoryview", "B = bytearray([2])\nC = memoryview(B)", "C[0]", change="B[0] = 3"),
    Source("array.array", "import array\nC = array.array('d', [2.0])", "C[0]", change="C[0] = 3.0"),
    Source("pattern", "import re\nP = re.compile('2')", "len(P.findall('2'))"),
    Source("itemgetter", "import operator\nG = operator.itemgetter(2)\nC = (0, 1, 2.0, 3.0)", "G(C)"),
    Source("iterator", "C = iter([2.0, 3.0])", "next(C)", change="next(C)"),
    Source("NumPy array", "import numpy as np\nC = np.full(4, 2.0)", "C[0]"),
    Source("NumPy array changed", "import numpy as np\nC = np.full(4, 2.0)", "C[0]", change="C[0] = 3.0"),
    Source(
        "base of a NumPy view",
        "import numpy as np\nB = np.full(4, 2.0)\nC = B[1:2]",
        "C[0]", change="B[1] = 3.0",
    ),
    Source(
        "array of objects",
        "import numpy as np\nC = np.array([[2.0], None], object)",
        "C[0][0]", change="C[0][0] = 3.0",
    ),
    Source("NumPy number", "import numpy as np\nC = np.single(2)", "C"),
    Source("dtype", "import numpy as np\nC = np.dtype('f2')", "C.itemsize", change="C = np.dtype('f4')"),
    Source("polynomial", "import numpy as np\nP = np.poly1d([2.0])", "float(P(0))"),
    Source("NumPy generator", "import numpy as np\nG = np.random.default_rng(2)", "G.random()"),
    Source(
        "NumPy generator that has drawn",
        "import numpy as np\nG = np.random.default_rng(2)",
        "G.random()", change="G.random()",
    ),
    Source("RandomState", "import numpy as np\nG = np.random.RandomState(2)", "G.rand()", change="G.rand()"),
    Source("function of an enum's list", "F = [abs, lambda a: 2.0]", "F[1](0)"),
    Source("lru_cache", "import functools\nC = {'s': 2.0}\n@functools.cache\ndef h(): return C['s']", "h()"),
    Source(
        "lru_cache that keeps an old value",
        "import functools\nC = {'s': 2.0}\n@functools.cache\ndef h(): return C['s']\nh()",
        "h()", RUN, change="C['s'] = 3.0",
    ),
    Source("singledispatch", "import functools\n@functools.singledispatch\ndef h(a): return 2.0", "h(0)"),
    Source(
        "singledispatch registered later",
        "import functools\n@functools.singledispatch\ndef h(a): return 2.0",
        "h(0)", change="h.register(int, lambda a: 3.0)",
    ),
    Source("setting out of the environment", "import os\nS = [float(os.environ.get('NO_SUCH', '2'))]", "S[0]"),
    Source("environment", "import os\ndef h(): return float(os.environ.get('S', 2.0))", "h()", RUN),
    Source("file in a helper", "def h():\n    with open('s') as f: return float(f.read()) + 2.0", "h()", RUN),
    Source("open by another name", "F = open\ndef h(): return float(F('s').read()) + 2.0", "h()", RUN),
    Source("path of a file", "from pathlib import Path\nP = Path('2')", "float(P.read_text())", RUN),
    Source("NumPy file", "import numpy as np\ndef h(): return np.load('2.npy')", "h()", RUN),
    Source("NumPy file by another name", "from numpy import load\ndef h(): return load('2.npy')", "h()", RUN),
    Source("random numbers", "import random\ndef h(): return random.random() + 2", "h()", RUN),
    Source("NumPy's random numbers", "import numpy as np\ndef h(): return np.random.random() + 2", "h()", RUN),
    Source(
        "seed of nothing",
        "from numpy.random import default_rng\ndef h(): return default_rng().random() + 2",
        "h()", RUN,
    ),
    Source("clock", "import time\ndef h(): return time.time() + 2", "h()", RUN),
    Source("clock by name", "from time import time\ndef h(): return time() + 2", "h()", RUN),
    Source("late import", "def h():\n    import helper_of_a_test\n    return helper_of_a_test.S + 2", "h()", RUN),
    Source("importlib", "import importlib\ndef h(): return importlib.import_module('helper').S + 2", "h()", RUN),
    Source("names of the module", "S = 2.0", "globals()['S']", RUN),
    Source("names of a function's module", "S = 2.0\ndef h(): pass", "h.__globals__['S']", RUN),
    Source("text that is evaluated", "S = '2.0'", "eval(S)", RUN),
    Source("generator", "C = (each for each in [2.0])", "next(C)", RUN),
    Source(
        "context variable",
        "from contextvars import ContextVar\nC = ContextVar('C', default=2.0)",
        "C.get()", RUN,
    ),
    Source("value of a thread", "import threading\nC = threading.local()\nC.s = 2.0", "C.s", RUN),
    Source("weak reference", "import weakref\nclass H: s = 2.0\nC = weakref.ref(H)", "C().s", RUN),
    Source("modules of the process", "import sys\nS = 2.0", "sys.modules[__name__].S", RUN),
]  # fmt: skip


def made(source: Source, *, name: str = "a_kernel_of_a_test", changed: bool = False) -> dict[str, Any]:
    """Return the module of a source; ``changed``: with 3 in the place of 2."""
    text = f"{source.head}\ndef k(x, y=1.0):\n    return x * ({source.factor})\n"
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(text.replace("2", "3") if changed else text, f"{name}.py", "exec"), vars(module))
    return vars(module)
