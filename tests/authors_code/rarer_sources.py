"""Rarer places that a kernel's factor may come from: each with a change, and whether its content can be known."""

from __future__ import annotations

from tests.authors_code.sources import RUN, Source

RARER = [
    Source(
        "descriptor",
        "class D:\n    def __init__(s,v): s.v=v\n    def __get__(s,o,t=None): return s.v\nclass H:\n    a=D(2.0)",
        "H().a",
        change="vars(H)['a'].v=3.0",
    ),
    Source("getattr hook", "V=2.0\nclass H:\n    def __getattr__(s,n): return V", "H().q", change="V=3.0"),
    Source(
        "slots base",
        "class B:\n    __slots__=('a',)\nclass H(B):\n    __slots__=('b',)\nh=H();h.a=2.0;h.b=1",
        "h.a",
        change="h.a=3.0",
    ),
    Source(
        "TypedDict",
        "from typing import TypedDict\nclass C(TypedDict):\n    s: float\nc: C={'s':2.0}",
        "c['s']",
        change="c['s']=3.0",
    ),
    Source(
        "attrs-like frozen dataclass",
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass C:\n    s: float\nc=C(2.0)",
        "c.s",
        change="c=C(3.0)",
    ),
    Source(
        "nested dataclass",
        "from dataclasses import dataclass,field\n"
        "@dataclass\n"
        "class I:\n"
        "    s: float=2.0\n"
        "@dataclass\n"
        "class C:\n"
        "    i: I=field(default_factory=I)\n"
        "c=C()",
        "c.i.s",
        change="c.i.s=3.0",
    ),
    Source(
        "generic class",
        "from typing import Generic,TypeVar\n"
        "T=TypeVar('T')\n"
        "class C(Generic[T]):\n"
        "    def __init__(s,v): s.v=v\n"
        "c=C(2.0)",
        "c.v",
        change="c.v=3.0",
    ),
    Source(
        "ABC",
        "import abc\n"
        "class C(abc.ABC):\n"
        "    v=2.0\n"
        "    @abc.abstractmethod\n"
        "    def f(s): ...\n"
        "class D(C):\n"
        "    def f(s): return s.v\n"
        "",
        "D().f()",
        change="C.v=3.0",
    ),
    Source("Flag", "import enum\nclass F(enum.Flag):\n    A=2\n    B=4", "F.A.value", change="F.A._value_=3"),
    Source("reduce", "import functools\nL=[1.0,1.0]", "functools.reduce(lambda a,b:a+b,L)", change="L.append(1.0)"),
    Source("starmap obj", "import itertools\nC=itertools.cycle([2.0,3.0])", "next(C)", RUN, change="next(C)"),
    Source("zip obj", "Z=zip([2.0],[1])", "next(Z)[0]", change="Z=zip([3.0],[1])"),
    Source("map obj", "M=map(float,['2'])", "next(M)", change="M=map(float,['3'])"),
    Source("chain", "import itertools\nC=itertools.chain([2.0],[3.0])", "next(C)", RUN, change="next(C)"),
    Source(
        "masked array",
        "import numpy as np\nC=np.ma.array([2.0,3.0],mask=[0,1])",
        "C.mask.sum()",
        change="C.mask[0]=True",
    ),
    Source(
        "record array",
        "import numpy as np\nC=np.rec.array([(2.0,)],dtype=[('s',float)])",
        "C.s[0]",
        change="C.s[0]=3.0",
    ),
    Source(
        "structured void",
        "import numpy as np\nC=np.array([(2.0,)],dtype=[('s',float)])[0]",
        "C['s']",
        change="C['s']=3.0",
    ),
    Source(
        "np.vectorize",
        "import numpy as np\nV=np.vectorize(lambda a: a*2.0)",
        "float(V(1))",
        change="V.pyfunc=lambda a:a*3.0",
    ),
    Source(
        "np polynomial class",
        "import numpy as np\nP=np.polynomial.Polynomial([2.0])",
        "float(P(0))",
        change="P=np.polynomial.Polynomial([3.0])",
    ),
    Source("nditer", "import numpy as np\nI=np.nditer([2.0])", "float(next(I))", RUN),
    Source(
        "ml_dtypes scalar", "import ml_dtypes\nC=ml_dtypes.bfloat16(2)", "float(C)", change="C=ml_dtypes.bfloat16(3)"
    ),
    Source(
        "partialmethod",
        "import functools\nclass C:\n    def f(s,a): return a\n    g=functools.partialmethod(f,2.0)",
        "C().g()",
        change="C.g=functools.partialmethod(C.f,3.0)",
    ),
    Source(
        "singledispatchmethod",
        "import functools\nclass C:\n    @functools.singledispatchmethod\n    def f(s,a): return 2.0",
        "C().f(1)",
        change="C.f.register(int)(lambda s,a:3.0) if False else setattr(C,'f',lambda s,a:3.0)",
    ),
    Source(
        "total_ordering",
        "import functools\n"
        "@functools.total_ordering\n"
        "class C:\n"
        "    v=2.0\n"
        "    def __eq__(s,o): return s.v==o.v\n"
        "    def __lt__(s,o): return s.v<o.v",
        "C.v",
        change="C.v=3.0",
    ),
    Source(
        "methodcaller",
        "import operator\nM=operator.methodcaller('count','2')",
        "M('2')",
        change="M=operator.methodcaller('count','3')",
    ),
    Source(
        "attrgetter",
        "import operator\nclass N: a=2.0;b=3.0\nM=operator.attrgetter('a')",
        "M(N)",
        change="M=operator.attrgetter('b')",
    ),
    Source("bound builtin", "D={'s':2.0}\nG=D.get", "G('s')", change="D['s']=3.0"),
    Source("str format", "F='{:.1f}'", "float(F.format(2.04))", change="F='{:.2f}'"),
    Source("environ alias", "from os import environ\ndef h(): return float(environ.get('S',2))", "h()", RUN),
    Source("os.getenv alias", "from os import getenv\ndef h(): return float(getenv('S') or 2)", "h()", RUN),
    Source("datetime", "import datetime\ndef h(): return datetime.datetime.now().year", "h()", RUN),
    Source("uuid", "import uuid\ndef h(): return uuid.uuid4().int", "h()", RUN),
    Source("subprocess", "import subprocess\ndef h(): return subprocess.run(['true']).returncode+2", "h()", RUN),
    Source("socket obj", "import threading\nL=threading.Lock()\ndef h():\n    with L: return 2.0", "h()", RUN),
    Source("json.load(open)", "import json\ndef h(): return json.load(open('s'))", "h()", RUN),
    Source("np.fromfile", "import numpy as np\ndef h(): return np.fromfile('s')[0]", "h()", RUN),
    Source("np.genfromtxt alias", "import numpy as np\nR=np.genfromtxt\ndef h(): return R('s')", "h()", RUN),
    Source(
        "np.random seeded inside", "import numpy as np\ndef h(): return np.random.default_rng(2).random()", "h()", RUN
    ),
    Source("linecache", "import linecache\ndef h(): return len(linecache.getline('s',1))+2", "h()", RUN),
    Source("inspect source", "import inspect\ndef h(): return len(inspect.getsource(h))", "h()", RUN),
    Source("pickle load", "import pickle\ndef h():\n    with open('s','rb') as f: return pickle.load(f)", "h()", RUN),
    Source("ctypes", "import ctypes\nC=ctypes.c_double(2.0)", "C.value", RUN, change="C.value=3.0"),
    Source("mmap", "import mmap\nM=mmap.mmap(-1,8)\nM[0]=2", "M[0]", RUN, change="M[0]=3"),
    Source("Event", "import threading\nE=threading.Event()", "2.0 if E.is_set() else 3.0", RUN, change="E.set()"),
    Source("queue", "import queue\nQ=queue.Queue()\nQ.put(2.0)", "Q.get()", RUN),
    Source("sys.argv", "import sys\ndef h(): return len(sys.argv)+2", "h()", RUN),
    Source("dir()", "S=2.0", "len(dir())", RUN),
    Source("vars()", "class N: s=2.0", "vars(N)['s']", RUN),
    Source("__builtins__ patched", "def h(): return len([1,2])", "h()", change="k.__globals__['len']=lambda a:3"),
    Source(
        "global function rebinding by attribute",
        "class M: pass\nM.f=staticmethod(lambda: 2.0)",
        "M.f()",
        change="M.f=staticmethod(lambda:3.0)",
    ),
    Source("kernel attribute", "k2=None\ndef g(): return g.v\ng.v=[2.0]", "g.v[0]", change="g.v[0]=3.0"),
    Source(
        "class closure",
        "def mk(s):\n    class C:\n        def f(self): return s\n    return C\nC=mk([2.0])",
        "C().f()[0]",
        change="C.f.__closure__[0].cell_contents[0]=3.0",
    ),
    Source(
        "super chain",
        "class A:\n    def f(s): return 2.0\nclass B(A):\n    def f(s): return super().f()",
        "B().f()",
        change="A.f=lambda s:3.0",
    ),
    Source(
        "contextlib.ExitStack",
        "import contextlib\n"
        "def cb(): return 2.0\n"
        "def h():\n"
        "    with contextlib.ExitStack() as s: s.callback(cb)\n"
        "    return cb()",
        "h()",
        change="cb=lambda:3.0",
    ),
    Source("WeakValueDictionary", "import weakref\nW=weakref.WeakValueDictionary()", "len(W)+2", RUN),
    Source(
        "heap types namedtuple factory",
        "from collections import namedtuple\nP=namedtuple('P','s')\np=P([2.0])",
        "p.s[0]",
        change="p.s[0]=3.0",
    ),
    Source("complex number", "C=2+0j", "C.real", change="C=3+0j"),
    Source("bytes", "C=b'\\x02'", "C[0]", change="C=b'\\x03'"),
    Source("int subclass", "class I(int): pass\nC=I(2);C.e=1", "C.e", change="C.e=2"),
    Source(
        "str enum",
        "import enum\nclass E(str,enum.Enum):\n    A='2'",
        "float(E.A.value)",
        change="E=enum.Enum('E',{'A':'3'},type=str)",
    ),
    Source("match args", "C=[2.0]\ndef h():\n    match C:\n        case [a]: return a", "h()", change="C[0]=3.0"),
    Source("walrus/comprehension", "C=[2.0]\ndef h(): return sum(y for x in C if (y:=x))", "h()", change="C[0]=3.0"),
    Source(
        "async fn",
        "C=[2.0]\n"
        "async def f(): return C[0]\n"
        "def h():\n"
        "    try: f().send(None)\n"
        "    except StopIteration as e: return e.value",
        "h()",
        change="C[0]=3.0",
    ),
    Source("generator fn", "C=[2.0]\ndef g(): yield C[0]", "next(g())", change="C[0]=3.0"),
    Source("nested fn global", "C=[2.0]\ndef h():\n    def i(): return C[0]\n    return i()", "h()", change="C[0]=3.0"),
    Source("class body in fn", "C=[2.0]\ndef h():\n    class X: v=C[0]\n    return X.v", "h()", change="C[0]=3.0"),
    Source("star import style", "from math import *\nC=pi", "C", change="C=3.0"),
    Source("module __getattr__", "import sys,types\nM=types.ModuleType('dyn_mod');M.S=2.0", "M.S", change="M.S=3.0"),
]
