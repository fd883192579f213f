"""The compiler: which one, with which flags, and what it says."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from nkitools import platforms
from nkitools.customop.cache import being_built, digest, locked
from nkitools.customop.errors import BuildError
from nkitools.processes import Output, TimedOut, outputs_of

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
RUNTIME = HERE / "runtime"

_COMPILERS = ("c++", "g++", "clang++")
_FULL = "No space left on device"
_SECONDS = 300  # after which a compiler that has not come back is given up

# C++14 and libc++ 10 are what the device's compiler has (Kernel Function, custom C++ operators guide).
# No contraction: products and sums round as NumPy's do. No sibling calls, and frame pointers: a finding's line is that
# of the call that was made. DWARF 4: of version 5 binutils 2.40 takes the wrong file for some lines. size_t in a list
# of sizes is the guide's own example, hence no word of narrowing.
_FLAGS = (
    *("-std=c++14", "-O3", "-gdwarf-4", "-ffp-contract=off", "-fno-omit-frame-pointer"),
    *("-fno-optimize-sibling-calls", "-fvisibility=hidden", "-U_FORTIFY_SOURCE", "-Wno-narrowing"),
    *("-Wdeprecated-declarations", "-Wuninitialized"),
    # A function that ends without its return stops there, instead of going on in whatever code comes next.
    *("-fsanitize=return", "-fsanitize-undefined-trap-on-error"),
)
_PRECOMPILED = "prelude.h"
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-undefined-trap-on-error", "-O1")


@dataclass(frozen=True)
class Compiler:
    """One C++ compiler."""

    path: str
    version: str
    arguments: tuple[str, ...] = ()  # that $CXX has behind the program: -m64, or g++ behind ccache

    @property
    def command(self) -> tuple[str, ...]:
        """Return the first words of a command of the compiler."""
        return (self.path, *self.arguments)

    @property
    def is_clang(self) -> bool:
        """Return whether the compiler takes clang's flags where they differ from gcc's."""
        return "clang" in self.version

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Return the flags of every compilation."""
        own = ("-Wsometimes-uninitialized",) if self.is_clang else ("-fno-gnu-unique", "-Wmaybe-uninitialized")
        return (*_FLAGS, *own, *platforms.code_flags(), "-isystem", str(INCLUDE))

    @cached_property
    def key(self) -> str:
        """Return a name for all that libraries share: the compiler, its flags, our headers and the runtime."""
        ours = sorted([*INCLUDE.rglob("*.h*"), *RUNTIME.iterdir()])
        return digest(
            [
                processor(),
                *self.command,
                self.version,
                *self.flags,
                *(part for p in ours for part in (p.name, p.read_bytes())),
            ]
        )


@cache
def processor() -> str:
    """Return the name of the processor that code is tuned for; the code may not run on another kind."""
    return digest(platforms.processor_words())


def find_compiler() -> Compiler:
    """Return the compiler ``$CXX``, else the first of c++, g++ and clang++ on the path. BuildError if there is none."""
    return _found(os.environ.get("CXX") or "", os.environ.get("PATH", os.defpath))


@cache
def _found(said: str, path: str) -> Compiler:
    names: tuple[str, ...] = (said,) if said else _COMPILERS
    arguments: tuple[str, ...] = ()
    if said and shutil.which(said, path=path) is None:
        names, arguments = _split(said)
    found = next((each for name in names if (each := shutil.which(name, path=path))), None)
    if found is None:
        looked = f"CXX={said}, which is not there" if said else f"none of {', '.join(_COMPILERS)} on the path"
        remedy = platforms.compiler_remedy()
        raise BuildError(f"custom operators need a C++ compiler: {looked}. Install one ({remedy}).")
    done = run([found, *arguments, "--version"])
    if done.end.status != 0:
        raise BuildError(f"the C++ compiler {found} does not work: {done.stderr}", done.stderr)
    return Compiler(found, done.stdout, arguments)


def _split(said: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the program and the arguments of ``$CXX``, as a shell reads it."""
    try:
        program, *arguments = shlex.split(said) or [said]
    except ValueError:  # a quotation mark without its other one
        return (said,), ()
    return (program,), tuple(arguments)


def run(command: Sequence[str]) -> Output:
    """Run a tool with messages that a program can read. BuildError if it does not end."""
    return run_together([command])[0]


def run_together(commands: Sequence[Sequence[str]]) -> list[Output]:
    """Run tools side by side, as `run`; all have ended when this does, with what they have started."""
    try:
        return outputs_of(commands, _SECONDS, env={**os.environ, "LC_ALL": "C"})
    except TimedOut:
        raise BuildError(f"{commands[0][0]} has not come back after {_SECONDS} seconds") from None


@dataclass(frozen=True)
class Prepared:
    """The parts that are compiled once: the runtime, and the header that every source begins with."""

    runtime: Path
    prelude: tuple[str, ...]


def prepare(compiler: Compiler, extra: Sequence[str] = ()) -> Prepared:
    """Return the runtime's object and the precompiled header, built where they are not in the cache.

    ``extra``: flags that both are to have, those of the sanitizers. They have no precompiled header.
    """
    name = "tools-" + digest([compiler.key, *extra])
    with locked(name) as place:
        if not place.exists():
            with being_built(place) as scratch:
                _prepare(compiler, scratch, tuple(extra))
    if extra:
        return Prepared(place / "runtime.o", ())
    header = str(place / _PRECOMPILED)
    precompiled = ("-include-pch", header + ".pch") if compiler.is_clang else ("-include", header)
    return Prepared(place / "runtime.o", precompiled)


def _prepare(compiler: Compiler, scratch: Path, extra: tuple[str, ...]) -> None:
    header = scratch / _PRECOMPILED
    header.write_text("#include <torch/torch.h>\n")
    commands = [
        [
            *compiler.command,
            *compiler.flags,
            *extra,
            "-O0" if extra else "-O2",
            "-c",
            str(RUNTIME / "runtime.cpp"),
            "-o",
            str(scratch / "runtime.o"),
        ]
    ]
    if not extra:
        # clang looks for what it has precompiled, and at its time; gcc takes the text that lies beside it.
        source = str(INCLUDE / "torch" / "torch.h") if compiler.is_clang else str(header)
        form = ("-Xclang", "-fno-pch-timestamp") if compiler.is_clang else ()
        made = f"{header}.pch" if compiler.is_clang else f"{header}.gch"
        commands.append([*compiler.command, *compiler.flags, *form, "-x", "c++-header", source, "-o", made])
    for done in run_together(commands):
        if done.end.status != 0 and _FULL in done.stderr:
            raise BuildError(f"nothing can be built in {scratch.parent}: {_FULL.lower()}", done.stderr)
        if done.end.status != 0:
            raise BuildError(
                f"{compiler.path} does not compile nkitools' own headers; custom operators need gcc 7 or clang 6 at "
                f"least:\n{done.stderr}",
                done.stderr,
            )
