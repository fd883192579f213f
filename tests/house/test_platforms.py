"""What differs by operating system stands in one module of the package; on Windows it says what to do instead."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkitools import platforms
from tests.cases import each
from tests.house.sources import nodes_in, nodes_of
from tests.house.test_words import docstrings

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"
OWN = PACKAGE / "platforms.py"
SOURCES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != OWN and not {"examples", "templates"} & set(path.relative_to(PACKAGE).parts)
]

MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
KEYWORDS = {"preexec_fn", "process_group", "start_new_session"}
# Python's own names of Ctrl-C, which every system has.
OF_CTRL_C = {"SIGINT", "SIG_IGN", "default_int_handler", "getsignal", "set_wakeup_fd", "signal"}
OF_OS = re.compile(
    r"fork|forkpty|kill|killpg|memfd_create|mkfifo|name|nice|pidfd_open|register_at_fork|sched_\w+|set[pru]\w*id|setpgrp"
    r"|setsid|sysconf|uname|wait\w*|geteuid|getpgid|getpgrp"
)
PLACES = re.compile(
    r"(?:^|[\s'\"{(])/?(?:proc|sys/fs|sys/devices)/|(?:^|[\s'\"])/(?:dev|etc|proc|sys|tmp|usr|var)(?:/|$)"
)
OF_COMPILERS = re.compile(
    r"^-(?:shared|fPIC|Wl,|ldl|lpthread|march=|mcpu=)|\.(?:so|dylib)\b|^(?:addr2line|atos|dsymutil)$"
)


def names_of_systems(nodes: tuple[ast.AST, ...], prose: set[int]) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of whatever an operating system decides; ``prose`` are the docstrings."""
    for node in nodes:
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Import(names=aliases) if found := MODULES & {alias.name for alias in aliases}:
                yield line, f"module {', '.join(found)}"
            case ast.ImportFrom(module=module) if module in MODULES | {"signal", "os"}:
                yield line, f"from {module}"
            case ast.keyword(arg=arg) if arg in KEYWORDS:
                yield line, str(arg)
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if OF_OS.fullmatch(name):
                yield line, f"os.{name}"
            case ast.Attribute(value=ast.Name(id="signal"), attr=name) if name not in OF_CTRL_C:
                yield line, f"signal.{name}"
            case ast.Attribute(value=ast.Name(id="sys"), attr="platform"):
                yield line, "sys.platform"
            case ast.Attribute(
                value=ast.Name(id="platform"), attr="machine" | "processor" | "release" | "system" as name
            ):
                yield line, f"platform.{name}"
            case ast.Attribute(value=ast.Name(id="mmap"), attr=name) if name.startswith("MAP_"):
                yield line, f"mmap.{name}"
            case ast.Attribute(attr="prctl" | "get_context" | "set_start_method" as name):
                yield line, name
            case ast.Call(func=ast.Name(id="CDLL") | ast.Attribute(attr="CDLL"), args=[ast.Constant(value=None)]):
                yield line, "the C library"
            case ast.Constant(value=str(text)) if id(node) not in prose:
                if PLACES.search(text) or OF_COMPILERS.search(text):
                    yield line, text


@each("path", SOURCES, lambda path: str(path.relative_to(REPOSITORY)))
def test_only_one_module_names_an_operating_system(path: Path) -> None:
    """Process groups, /proc, limits, forks, signals, flags of compilers and paths are in nkitools/platforms.py."""
    prose = {id(node) for node in docstrings(nodes_of(path)[0])}
    assert list(names_of_systems(nodes_of(path), prose)) == []


@each(
    "source, found",
    [
        ("import resource", "module resource"),
        ("from signal import SIGKILL", "from signal"),
        ("os.killpg(1, 2)", "os.killpg"),
        ("os.fork()", "os.fork"),
        ("os.name == 'posix'", "os.name"),
        ("hasattr(os, 'x') and sys.platform", "sys.platform"),
        ("signal.SIGKILL", "signal.SIGKILL"),
        ("signal.setitimer", "signal.setitimer"),
        ("subprocess.Popen(x, start_new_session=True)", "start_new_session"),
        ("open('/proc/self/statm')", "/proc/self/statm"),
        ("root / 'proc/meminfo'", "proc/meminfo"),
        ("f'/proc/{process}/task'", "/proc/"),
        ("nodes('/dev/accel*')", "/dev/accel*"),
        ("Path('/tmp')", "/tmp"),
        ("ctypes.CDLL(None).x", "the C library"),
        ("libc.prctl(1)", "prctl"),
        ("multiprocessing.get_context('fork')", "get_context"),
        ("('-O3', '-fPIC')", "-fPIC"),
        ("('-shared',)", "-shared"),
        ("f'lib{name}.so'", ".so"),
        ("mmap.MAP_POPULATE", "mmap.MAP_POPULATE"),
    ],
)
def test_such_names_are_found(source: str, found: str) -> None:
    """Each kind."""
    assert [name for _, name in names_of_systems(nodes_in(source), set())] == [found]


@each(
    "source", ["signal.signal(signal.SIGINT, f)", "os.devnull", "x = 'a / proc'", "'/'", "'so on. So'", "os.getppid()"]
)
def test_what_python_has_everywhere_is_none(source: str) -> None:
    """Ctrl-C, paths of the author, words."""
    assert list(names_of_systems(nodes_in(source), set())) == []


def test_each_difference_says_what_macos_gets() -> None:
    """In the docstring of its function."""
    functions = [
        function
        for name, function in inspect.getmembers(platforms, inspect.isfunction)
        if function.__module__ == platforms.__name__ and not name.startswith("_")
    ]
    assert len(functions) > 25
    assert [each.__name__ for each in functions if "macOS" not in (each.__doc__ or "")] == []


# Modules of Python that ask for the system are imported before: what they need of Windows is not here.
AS_WINDOWS = "import inspect, pathlib, shutil, subprocess, sys, tempfile\nsys.platform = 'win32'\n"


@pytest.mark.process
@each("words", [("-m", "nkitools", "doctor"), ("-m", "nkitools"), ("-c", "import nkitools"), ("-m", "pytest", "-h")])
def test_on_windows_the_way_is_wsl(words: tuple[str, ...], tmp_path: Path) -> None:
    """The command says so in one line; the import and pytest, which loads the plugin, with an ImportError."""
    (tmp_path / "sitecustomize.py").write_text(AS_WINDOWS)
    said = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(REPOSITORY)])}
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env={**os.environ, **said}, capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    assert platforms.refusal("win32").startswith("nkitools runs on Linux and macOS. On Windows use WSL")
    if words[1] == "nkitools":
        assert (done.returncode, lines) == (2, [f"nkitools: {platforms.refusal('win32')}"])
    else:
        assert done.returncode != 0
        assert lines[-1].endswith(f"ImportError: {platforms.refusal('win32')}")


def test_the_module_runs_beside_nkitools() -> None:
    """Scripts load it by its path: it imports nothing of the package, and little of the standard library."""
    imported = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in nodes_of(OWN)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert not {name for name in imported if name.startswith("nkitools")}
    assert imported <= set(sys.stdlib_module_names) | {"collections.abc", "multiprocessing.context"}
