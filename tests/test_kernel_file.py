"""FILE::KERNEL: who may be run, how a file is imported, and what it says of its kernel."""

from __future__ import annotations

import importlib.machinery
import os
import py_compile
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.kernel_file import BadRequest, KernelFile, asked, load, seen
from nkitools.sweeps.named_function import named

HEAD = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out

"""


@pytest.fixture(autouse=True)
def _clean_imports(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a file imports and puts on the path ends with the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        if not name.startswith(("nkitools.", "numpy", "jax", "scipy", "ml_dtypes")):
            del sys.modules[name]
    sys.modules.update(before)


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def loaded(folder: Path, text: str, name: str = "of_user.py") -> KernelFile:
    return load(written(folder, {name: HEAD + text}) / name)


FOREIGN = {
    "from os import system": "system",
    "from os import system as run": "run",
    "import os; run = os.system": "run",
    "from subprocess import check_output": "check_output",
    "from subprocess import Popen": "Popen",
    "from shutil import rmtree": "rmtree",
    "from functools import partial; import os; run = partial(os.system, 'true')": "run",
    "from pathlib import Path; run = Path('.').unlink": "run",
    "import runpy; run = runpy.run_path": "run",
    "run = eval": "run",
    "from helper_of_user import wipe": "wipe",
    "from numpy import save": "save",
    "import os; run = nki.jit(os.system)": "run",
    "import subprocess; run = nki.jit(subprocess.check_output)": "run",
    "import os; run = staticmethod(os.system)": "run",
    "import os, types; run = types.MethodType(os.system, 'true')": "run",
    "import os; from functools import cache; run = cache(os.popen)": "run",
    "import helper_of_user; run = helper_of_user.wipe": "run",
    "from helper_of_user import Wiper; run = Wiper()": "run",
    "from helper_of_user import bound": "bound",
    "import functools, helper_of_user; run = functools.partial(helper_of_user.wipe)": "run",
    "def system(x):\n    return x\nfrom os import system": "system",
    "from os import system\nif not system:\n    def system(x):\n        return x": "system",
    "import pickle; run = pickle.loads": "run",
}


@pytest.mark.parametrize("text", FOREIGN)
def test_a_function_of_another_file_is_no_kernel(text: str, tmp_path: Path) -> None:
    """A client that chooses a name cannot choose a function that the file merely imports; `compare against` neither."""
    written(
        tmp_path,
        {
            "helper_of_user.py": "def wipe(x):\n    raise SystemExit\n"
            "class Wiper:\n    def __call__(self, x):\n        raise SystemExit\nbound = Wiper().__call__\n"
        },
    )
    file = loaded(tmp_path, text + "\n")
    for ask in (file.kernel, file.function):
        with pytest.raises(BadRequest, match=f"has no (kernel|function) {FOREIGN[text]}.*imports.*it has double"):
            ask(FOREIGN[text])


OWN = {
    "def plain(x):\n    return x\n": "plain",
    "import functools\ndef inner(x, y):\n    return x\nplain = functools.partial(inner, y=2)\n": "plain",
    "class Of:\n    def __call__(self, x):\n        return x\nplain = Of()\n": "plain",
    "class Of:\n    def run(self, x):\n        return x\nplain = Of().run\n": "plain",
    "plain = lambda x: x\n": "plain",
    "from decorator_of_user import wrapped\n@wrapped\ndef plain(x):\n    return x\n": "plain",
    "from kernels_of_user import double as other\n": "other",
    "from decorator_of_user import kept\n@kept\ndef plain(x):\n    return x\n": "plain",
    "from decorator_of_user import kept\nplain = kept(double)\n": "plain",
    "import functools\nfrom kernels_of_user import double as one\nplain = functools.partial(one)\n": "plain",
    "import kernels_of_user\nplain = kernels_of_user.double\n": "plain",
    "from kernels_of_user import *\n": "double",
    "class Of:\n    @staticmethod\n    def run(x):\n        return x\nplain = Of.run\n": "plain",
    "import functools\n@functools.cache\ndef plain(x):\n    return x\n": "plain",
    "def make(n):\n    def inner(x):\n        return n\n    return inner\nplain = make(3)\n": "plain",
    "plain = double[2]\n": "plain",
    "plain = nki.jit(lambda x: x)\n": "plain",
}


@pytest.mark.parametrize("text", OWN)
def test_a_function_of_the_file_and_a_kernel_of_any_file_may_run(text: str, tmp_path: Path) -> None:
    """Methods, partials, lambdas and decorated functions of the file are its own; a kernel object may be imported."""
    decorators = (
        "import functools\n"
        "def wrapped(f):\n    return functools.wraps(f)(lambda *a: f(*a))\n"
        "def kept(f):\n    def other(*a):\n        return f(*a)\n    return other\n"
    )
    written(tmp_path, {"kernels_of_user.py": HEAD, "decorator_of_user.py": decorators})
    assert callable(loaded(tmp_path, text).kernel(OWN[text]))


LAYOUTS: dict[str, tuple[dict[str, str], str]] = {
    "beside": ({"scale.py": "by = 3\n", "k.py": "from scale import by\n"}, "k.py"),
    "package, relative": (
        {"pkg/__init__.py": "", "pkg/scale.py": "by = 3\n", "pkg/k.py": "from .scale import by\n"},
        "pkg/k.py",
    ),
    "package, two up": (
        {
            "pkg/__init__.py": "",
            "pkg/scale.py": "by = 3\n",
            "pkg/sub/__init__.py": "",
            "pkg/sub/k.py": "from ..scale import by\n",
        },
        "pkg/sub/k.py",
    ),
    "folder without __init__, relative": (
        {"loose/scale.py": "by = 3\n", "loose/k.py": "from .scale import by\n"},
        "loose/k.py",
    ),
    "src": (
        {"pyproject.toml": "", "src/lib_a/__init__.py": "by = 3\n", "bench/k.py": "from lib_a import by\n"},
        "bench/k.py",
    ),
    "src, inside": (
        {
            "src/lib_b/__init__.py": "",
            "src/lib_b/scale.py": "by = 3\n",
            "src/lib_b/k.py": "from lib_b.scale import by\n",
        },
        "src/lib_b/k.py",
    ),
    "from the project's folder": (
        {"pyproject.toml": "", "ops_c/scale.py": "by = 3\n", "ops_c/k.py": "from ops_c.scale import by\n"},
        "ops_c/k.py",
    ),
    "pythonpath in pyproject": (
        {
            "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["code"]\n',
            "code/scale_d.py": "by = 3\n",
            "k.py": "from scale_d import by\n",
        },
        "k.py",
    ),
    "pythonpath in pytest.ini": (
        {
            "pytest.ini": "[pytest]\npythonpath = a b\n",
            "b/scale_e.py": "by = 3\n",
            "t/k.py": "from scale_e import by\n",
        },
        "t/k.py",
    ),
    "pythonpath in setup.cfg": (
        {
            "setup.cfg": "[tool:pytest]\npythonpath =\n  code\n",
            "code/scale_f.py": "by = 3\n",
            "k.py": "from scale_f import by\n",
        },
        "k.py",
    ),
    "beside a conftest above": (
        {
            "tests/conftest.py": "",
            "pytest.ini": "[pytest]\n",
            "tests/scale_g.py": "by = 3\n",
            "tests/deep/k.py": "from scale_g import by\n",
        },
        "tests/deep/k.py",
    ),
    "a companion that imports the kernel": (
        {"impl_h.py": HEAD + "by = 3\n", "k.py": "from impl_h import double, by\ndef inputs(): return ()\n"},
        "k.py",
    ),
    "a package's own file": ({"pkg_i/__init__.py": "by = 3\n"}, "pkg_i/__init__.py"),
    "a dash and a space": ({"my-own kernel.py": "by = 3\n"}, "my-own kernel.py"),
    "a dot": ({"kernel.v2.py": "by = 3\n", "kernel.py": "raise SystemExit\n"}, "kernel.v2.py"),
    "a name that Python has": ({"select.py": "by = 3\n"}, "select.py"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_file_is_imported_as_pytest_does(layout: str, tmp_path: Path) -> None:
    """Packages, relative imports, src, pythonpath, conftest folders; and no module of Python is taken over."""
    files, name = LAYOUTS[layout]
    assert load(written(tmp_path, files) / name).module.by == 3
    import select

    assert not hasattr(select, "by")


@pytest.mark.process
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if "src" not in name and "from the" not in name])
def test_pytest_imports_the_same_layouts(layout: str, tmp_path: Path) -> None:
    """What we say that pytest does, it does: a test file in the kernel's place imports the same names."""
    if layout in ("a name that Python has", "folder without __init__, relative"):
        pytest.skip("pytest refuses it, we take it")
    files, name = LAYOUTS[layout]
    text = files[name].replace(HEAD, "") + "def test_it():\n    assert by == 3\n"
    files = {each: other.replace(HEAD, "double = 1\n") for each, other in files.items()}
    place = (Path(name).parent / "test_k.py").as_posix()
    written(tmp_path, {**files, place: text})
    done = subprocess.run(
        [Path(sys.executable).parent / "pytest", "-q", "-p", "no:nkitools", "-p", "no:cacheprovider", place],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


FAILING = {
    "def f(:\n": r"k\.py:1: ",
    "import no_such_module_here\n": r"k\.py cannot be run: ModuleNotFoundError: .*no_such_module_here.*k\.py:1\)",
    "raise SystemExit(0)\n": r"k\.py cannot be run: it ends the process \(SystemExit: 0\): put what a script does",
    "import sys\nsys.exit('no device')\n": r"k\.py cannot be run: it ends the process .*no device.*k\.py:2\)",
    "x = 1\ny = x / 0\n": r"k\.py cannot be run: ZeroDivisionError: division by zero \(.*k\.py:2\)",
}


@pytest.mark.parametrize("text", FAILING)
def test_a_file_that_cannot_be_run_is_one_sentence(text: str, tmp_path: Path) -> None:
    """With the author's line, not a traceback of ours."""
    written(tmp_path, {"k.py": text})
    with pytest.raises(BadRequest, match=FAILING[text]):
        load(tmp_path / "k.py")


def test_a_link_is_imported_from_where_it_belongs(tmp_path: Path) -> None:
    """A link to a file of a package is that file; a link in a package is its module; the target needs no .py."""
    package = {"real/pkg_j/__init__.py": "", "real/pkg_j/scale.py": "by = 3\n", "store/abc": "from .scale import by\n"}
    written(tmp_path, {**package, "real/pkg_j/k.py": "from .scale import by\n"})
    for name, target in (("link.py", "real/pkg_j/k.py"), ("real/pkg_j/linked.py", "store/abc")):
        (tmp_path / name).symlink_to(tmp_path / target)
        assert load(tmp_path / name).module.by == 3
    (tmp_path / "store/plain").write_text("by = 4\n")
    (tmp_path / "alone.py").symlink_to(tmp_path / "store/plain")
    assert load(tmp_path / "alone.py").module.by == 4


def test_a_file_is_read_anew_within_one_second(tmp_path: Path) -> None:
    """Also where the new text is as long as the old one and of the same time, which Python's cache takes for it."""
    path = written(tmp_path, {"numbers_here.py": "value = 1\n"}) / "numbers_here.py"
    assert load(path).module.value == 1
    py_compile.compile(str(path))
    before = path.stat()
    path.write_text("value = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert load(path).module.value == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"y": 3}, r"double takes x, and is given y: missing a required argument: 'x'"),
        ({"x": np.ones((2, 2)), "z": 1}, r"double takes x, and is given x, z: got an unexpected keyword argument 'z'"),
        ({}, r"double takes x, and is given nothing: missing"),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    """Named by a client, or by the file itself: what the kernel takes, and what it is given."""
    path = written(tmp_path, {"of_names.py": HEAD}) / "of_names.py"
    with pytest.raises(BadRequest, match=words), asked(path, "double", arguments=given):
        pass
    path = written(tmp_path, {"said.py": f"{HEAD}inputs = (1, 2)\n"}) / "said.py"
    with (
        pytest.raises(BadRequest, match=r"double takes x, and is given 2 arguments by position: too"),
        asked(path, "double"),
    ):
        pass


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    """In one process; each with the companion that stands beside it, and found again by its functions' names."""
    for name, number in (("a", 3), ("b", 4), ("c", 5)):
        text = "from scale_k import by\ndef f(x):\n    return by\n"
        written(tmp_path / name, {"k.py": text, "scale_k.py": f"by = {number}\n"})
    files = [load(tmp_path / name / "k.py") for name in "abc"]
    assert [each.module.by for each in files] == [3, 4, 5]
    assert [named(each.module.f).found()(0) for each in files] == [3, 4, 5]


def test_a_file_of_the_name_of_a_python_module_hides_none(tmp_path: Path) -> None:
    """A worker that starts with this process's path imports Python's json, and the file's companion."""
    written(tmp_path, {"json.py": "from scale_l import by\n", "scale_l.py": "by = 3\n"})
    assert load(tmp_path / "json.py").module.by == 3
    spec = importlib.machinery.PathFinder.find_spec("json", sys.path)
    assert spec is not None
    assert not str(spec.origin).startswith(str(tmp_path))


def test_a_file_in_another_encoding_is_read(tmp_path: Path) -> None:
    """With a mark of UTF-8 at its begin, and in the encoding that it declares: also where names are looked up."""
    text = HEAD + "from decorator_of_user import kept\n@kept\ndef plain(x):\n    return x\ninputs = (1,)\n"
    kept = "def kept(f):\n    def other(*a):\n        return f(*a)\n    return other\n"
    written(tmp_path, {"decorator_of_user.py": kept})
    (tmp_path / "mark.py").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "latin.py").write_bytes(f"# coding: latin-1\nname = 'caf\xe9'\n{text}".encode("latin-1"))
    for name in ("mark.py", "latin.py"):
        assert callable(load(tmp_path / name).kernel("plain"))
        with pytest.raises(BadRequest, match="has no kernel treble"):
            seen(f"{tmp_path / name}::treble", needs_inputs=True)


def test_inputs_that_raise_or_are_none_are_one_sentence(tmp_path: Path) -> None:
    """With the author's line; a file of arrays that is none, a saved run, and a space that cannot be read, as well."""
    with pytest.raises(BadRequest, match=r"has no inputs: ZeroDivisionError: division by zero \(.*of_user\.py:\d+\)"):
        loaded(tmp_path, "def inputs():\n    return (1 / 0,)\n").inputs()
    with pytest.raises(BadRequest, match="inputs is int; it must be a tuple or a dictionary"):
        loaded(tmp_path, "inputs = 3\n").inputs()
    (tmp_path / "text.npz").write_text("none")
    np.save(tmp_path / "one.npy", np.ones(2))
    for name in ("text.npz", "one.npy"):
        with pytest.raises(BadRequest, match=f"{name} is no .npz file of arrays"):
            loaded(tmp_path, "inputs = (1,)\n").inputs(str(tmp_path / name))
    nkitools.simulate(lambda: None).save(tmp_path / "run.npz")
    with pytest.raises(
        BadRequest, match=r"run\.npz is a saved run, no file of arrays: save the arguments by np\.savez"
    ):
        loaded(tmp_path, "inputs = (1,)\n").inputs(str(tmp_path / "run.npz"))
    for space in ("'none.toml'", "{}", "{'rows': []}", "3"):
        with pytest.raises(BadRequest, match="its space has no first case"):
            loaded(tmp_path, f"space = {space}\ndef inputs(rows):\n    return (rows,)\n").inputs()


def test_settings_hold_inside_of_the_block(tmp_path: Path) -> None:
    """A keyword replaces an argument in its place, a constant is that of the file and of the kernel's own module."""
    of_kernel = HEAD + "BY = 1\ndef own(x, times=1):\n    return BY, times\n"
    written(tmp_path, {"kernels_of_user.py": of_kernel})
    text = "from kernels_of_user import BY\nimport kernels_of_user\nROWS = 2\nplain = nki.jit(kernels_of_user.own)\n"
    text += "space = {'rows': [3]}\ndef inputs(rows):\n    return rows * ROWS, 5\n"
    written(tmp_path, {"of_user.py": HEAD + text})
    said = {"BY": 7, "times": 9, "ROWS": 10, "rows": 4}
    with asked(tmp_path / "of_user.py", "plain", settings=said) as this:
        assert (this.args, this.kwargs) == ((40, 9), {})
        assert this.file.module.kernels_of_user.BY == this.file.module.BY == 7
    assert (this.file.module.kernels_of_user.BY, this.file.module.BY, this.file.module.ROWS) == (1, 1, 2)


def test_inputs_have_three_forms(tmp_path: Path) -> None:
    """A tuple, a dictionary by name, and a function that returns one."""
    for said in ("inputs = (1, 2)", "inputs = [1, 2]", "def inputs():\n    return 1, 2"):
        assert loaded(tmp_path, said).inputs() == ((1, 2), {})
    assert loaded(tmp_path, "inputs = {'x': 1}").inputs() == ((), {"x": 1})
    with pytest.raises(BadRequest, match="says no inputs"):
        loaded(tmp_path, "").inputs()


def test_inputs_of_a_case_take_the_first_of_the_space(tmp_path: Path) -> None:
    """One file serves a sweep and every other command: those run its first case."""
    text = "space = {'rows': [3, 4], 'kind': ['a', 'b']}\ndef inputs(rows, kind='x'):\n    return rows, kind\n"
    assert loaded(tmp_path, text).inputs() == ((3, "a"), {})
    assert loaded(tmp_path, text.replace("inputs", "arguments")).inputs() == ((3, "a"), {})
    every = text.replace("rows, kind='x'", "**case").replace("rows, kind\n", "dict(case)\n")
    assert loaded(tmp_path, every).inputs() == ((), {"rows": 3, "kind": "a"})
    with pytest.raises(BadRequest, match="inputs takes rows, and the file has no `space`"):
        loaded(tmp_path, "def inputs(rows):\n    return rows,\n").inputs()
    with pytest.raises(BadRequest, match="inputs takes rows, which its space does not have"):
        loaded(tmp_path, "space = {'columns': [1]}\ndef inputs(rows):\n    return rows,\n").inputs()


def test_inputs_may_take_a_generator(tmp_path: Path) -> None:
    """`rng` is one of seed 0 where it has no default and the caller no other; it is no name of a case."""
    said = "space = {'rows': [4, 8]}\nmutates = 'x'\ndef inputs(rng, rows):\n    return (rng.random((rows, 2)),)\n"
    text = HEAD + said
    path = written(tmp_path, {"a.py": text}) / "a.py"
    loaded = load(path)
    (array,), _ = loaded.inputs()
    np.testing.assert_array_equal(array, np.random.default_rng(0).random((4, 2)))
    (other,), _ = loaded.inputs(case={"rng": np.random.default_rng(5), "rows": 3})
    np.testing.assert_array_equal(other, np.random.default_rng(5).random((3, 2)))
    assert (loaded.case_names(), loaded.mutates) == ({"rows"}, ("x",))
    optional = "def inputs(rng=None):\n    return (rng,)\n"
    assert load(written(tmp_path, {"b.py": HEAD + optional}) / "b.py").inputs() == ((None,), {})


def test_arrays_of_a_file_go_first(tmp_path: Path) -> None:
    """Arrays without a name are positional; the others keep their names."""
    np.savez(tmp_path / "a.npz", np.ones(2), np.zeros(3), scale=np.full(1, 5.0))
    args, kwargs = loaded(tmp_path, "inputs = (1,)").inputs(str(tmp_path / "a.npz"))
    assert [each.shape for each in args] == [(2,), (3,)]
    assert kwargs["scale"].tolist() == [5.0]


def test_a_file_that_is_no_archive_is_not_said_to_need_trust(tmp_path: Path) -> None:
    """NumPy takes any text for pickled objects, and says how to load these."""
    (tmp_path / "a.npz").write_text("x = 3\n")
    with pytest.raises(BadRequest, match=r"a\.npz is no \.npz file of arrays, as np\.savez writes them$"):
        loaded(tmp_path, "inputs = (1,)").inputs(str(tmp_path / "a.npz"))


def test_cases_and_variants_have_names_of_their_own(tmp_path: Path) -> None:
    """``space`` are the cases of a sweep and ``settings`` the variants; without settings a space of no cases serves."""
    both = "space = {'rows': [1]}\nsettings = {'BLOCK': [2]}\ndef inputs(rows):\n    return ()\n"
    assert (loaded(tmp_path, both).space, loaded(tmp_path, both).settings) == ({"rows": [1]}, {"BLOCK": [2]})
    assert loaded(tmp_path, "space = {'BLOCK': [2]}\ninputs = ()\n").settings == {"BLOCK": [2]}
    assert loaded(tmp_path, "space = {'rows': [1]}\ndef inputs(rows):\n    return ()\n").settings is None
    assert loaded(tmp_path, "space = 'cases.toml'\n").space == tmp_path / "cases.toml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k.py", "names no kernel: write FILE::KERNEL"),
        ("k.py::", "names no kernel"),
        ("none.py::double", "is no file"),
        ("::double", "^no file is named before ::double"),
        ("k.py::treble", r"has no kernel treble; it has double, made$"),
        ("empty.py::double", r"empty\.py has no kernel double, nor any other$"),
        ("latin.py::double", r"latin\.py cannot be read: it is not text in UTF-8 or in"),
    ],
)
def test_a_name_is_judged_by_the_text_alone(text: str, words: str, tmp_path: Path) -> None:
    """What can be seen without running the file is said before anything is run."""
    written(tmp_path, {"k.py": HEAD + "inputs = (1,)\nmade = print()\nSIZE = 3\nraise SystemExit\n", "empty.py": ""})
    (tmp_path / "latin.py").write_bytes(HEAD.encode() + b"inputs = (1,)\n# caf\xe9\n")
    with pytest.raises(BadRequest, match=words):
        seen(text if text.startswith("::") else str(tmp_path / text), needs_inputs=True)
    assert seen(str(tmp_path / "k.py::double"), needs_inputs=True)[1] == "double"
