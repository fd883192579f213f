"""From an author's sources to a library: two shared objects, shape functions and kernels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from nkitools.customop.cache import being_built, digest, forget_unused, locked
from nkitools.customop.compiler_words import authors_words, remedies_of
from nkitools.customop.errors import BuildError
from nkitools.customop.process import Worker
from nkitools.customop.sources import defines, host_headers, without_comments
from nkitools.customop.toolchain import Compiler, Prepared, find_compiler, prepare, run, run_together
from nkitools.platforms import LIBRARY_SUFFIX, keep_symbols, library_flags

SHAPE, COMPUTE, DESCRIPTION = f"shape{LIBRARY_SUFFIX}", f"compute{LIBRARY_SUFFIX}", "library.json"

# m.def("name", &shape, "kernel") as sources write it; what registers in other ways is found by asking the library.
_DEFINITION = re.compile(r'\.\s*def\s*\(\s*"[^"]*"\s*,[^;]*?"([^"]*)"\s*\)', re.DOTALL)
_WARNING = r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): warning: "
_REMARKS = {
    "CO112": re.compile(_WARNING + r".*?nkitools CO112: (?P<what>.+?) \[-Wdeprecated-declarations\]$", re.MULTILINE),
    "CO118": re.compile(_WARNING + r"(?P<what>.+?) \[-W[\w-]*uninitialized[\w-]*\]$", re.MULTILINE),
}
_BOUND = re.compile(r'NKT_KERNEL\(\d+, "([^"]+)"')  # as Job writes it
# A name as a compiler lists it for make: a space belongs to it behind an odd number of backslashes.
_LISTED = re.compile(r"(?:[^\s\\]|(?<!\\)\\(?:\\\\)*[ \t]|\\+(?![\\ \t]))+")
_SHAPE_UNIT = "shape"  # how the names of the units of shape sources begin
_IDENTIFIER = re.compile(r"(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*")


@dataclass(frozen=True)
class Recipe:
    """The recipe of a library. Two equal recipes over sources of equal content are one library."""

    name: str
    compute: tuple[str, ...]
    shape: tuple[str, ...]
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remark:
    """Something that the compiler has been made to say about an author's line."""

    message: str
    file: str
    line: int
    column: int
    rule: str = "CO112"


class Registered(NamedTuple):
    """An operator or a kernel: its names, its parameters' letters (the result's first) and its address."""

    library: str
    name: str
    kernel: str
    signature: str
    address: int


@dataclass(frozen=True)
class Built:
    """A library on disk: its two halves, the author's files in it, and remarks on them."""

    shape: str
    compute: str
    sources: tuple[str, ...]
    remarks: tuple[Remark, ...]
    recipe: Recipe
    operators: tuple[Registered, ...] = ()  # what the shape sources register
    kernels: tuple[Registered, ...] = ()  # what is bound of the compute sources

    def described(self) -> dict[str, Any]:
        """Return the description that is kept beside the library."""
        return asdict(self)


def build(recipe: Recipe, *, verbose: bool = False) -> Built:
    """Return the library of ``recipe``, from the cache if no source has changed. BuildError if it cannot be built."""
    compiler = find_compiler()
    key = digest([compiler.key, recipe.name, *recipe.flags, *contents_of((*recipe.compute, "", *recipe.shape))])
    with locked("library-" + key) as index:
        known = _known(index.with_suffix(".json"), key)
        if known is not None:
            return known
        if verbose:
            print(f"nkitools: building {recipe.name} with {compiler.path}", flush=True)
        return _build(compiler, recipe, index.with_suffix(".json"), key, verbose)


def contents_of(paths: Iterable[str]) -> list[bytes]:
    """Return the paths of files and what is in them; BuildError for one that cannot be read."""
    contents = []
    for path in paths:
        try:
            contents += [path.encode(), Path(path).read_bytes() if path else b""]
        except OSError as error:
            raise BuildError(f"source {path} cannot be read: {error.strerror}") from error
    return contents


def _place(index: Path, key: str, included: Sequence[str]) -> Path:
    """Return the path of a library, which depends on the content of its sources and of the files that they include."""
    return index.parent / f"library-{digest([key, *contents_of(included)])}"


def _known(index: Path, key: str) -> Built | None:
    try:
        place = _place(index, key, json.loads(index.read_text()))
        built = read_description(place / DESCRIPTION)
        for used in (index, place):
            os.utime(used)
        return built
    except (OSError, ValueError, KeyError, TypeError, BuildError):
        return None


def read_description(path: Path) -> Built:
    """Return a library as it was described; its halves lie beside the description."""
    told = json.loads(path.read_text())
    told.pop("multicore", None)
    recipe = told["recipe"]
    told["recipe"] = Recipe(recipe["name"], tuple(recipe["compute"]), tuple(recipe["shape"]), tuple(recipe["flags"]))
    told["remarks"] = tuple(Remark(**remark) for remark in told["remarks"])
    told["sources"] = tuple(told["sources"])
    for what in ("operators", "kernels"):
        told[what] = tuple(Registered(*each) for each in told[what])
    built = Built(**told)
    return replace(built, shape=str(path.parent / built.shape), compute=str(path.parent / built.compute))


def _build(compiler: Compiler, recipe: Recipe, index: Path, key: str, verbose: bool) -> Built:
    with being_built(index.parent / f"building-{key}") as scratch:
        job = Job(compiler, prepare(compiler), recipe, scratch)
        job.compile()
        included = sorted(job.included())
        operators, kernels = _listed(str(scratch / SHAPE), str(scratch / COMPUTE))
        bound = {each.name for each in kernels}
        lost = tuple(dict.fromkeys(each.kernel for each in operators if each.kernel not in bound))
        if lost:
            job.compile_kernels(lost)
            operators, kernels = _listed(str(scratch / SHAPE), str(scratch / COMPUTE))
        built = Built(SHAPE, COMPUTE, tuple(included), job.remarks(), recipe, operators, kernels)
        (scratch / DESCRIPTION).write_text(json.dumps(built.described(), indent=1))
        if verbose and job.said:
            print(job.said, flush=True)
    place = _place(index, key, included)
    if not place.exists():
        os.replace(index.parent / f"building-{key}", place)
    forget_unused(index.parent)
    fresh = index.with_name(f".{index.name}-{os.getpid()}")
    fresh.write_text(json.dumps(included))
    os.replace(fresh, index)
    return read_description(place / DESCRIPTION)


def _listed(shape: str, compute: str) -> tuple[tuple[Registered, ...], tuple[Registered, ...]]:
    """Return the operators that both halves of a library register.

    A process of its own loads them, since loading runs the author's code.
    """
    worker = Worker(shape, compute)
    worker.close()
    return tuple(map(_registered, worker.operators)), tuple(map(_registered, worker.kernels))


def _registered(fields: Sequence[str]) -> Registered:
    return Registered(fields[0], fields[1], fields[2], fields[3], int(fields[4]))


@dataclass
class Job:
    """The compilation of one library in a directory of its own."""

    compiler: Compiler
    prepared: Prepared
    recipe: Recipe
    directory: Path
    extra: tuple[str, ...] = ()  # flags beside those of the compiler
    said: str = ""  # the compiler's words so far
    named: tuple[str, ...] = ()  # kernels that m.def names, and does not spell out in the text of the source

    def compile(self) -> None:
        """Compile and link both halves."""
        units = self.compute_units()
        shapes = [(self._unit(f"{_SHAPE_UNIT}{i}", path, ()), path) for i, path in enumerate(self.recipe.shape)]
        self.compile_units([*shapes, *units])
        self._link([unit for unit, _ in shapes], SHAPE)
        self._link([unit for unit, _ in units], COMPUTE)

    def compile_kernels(self, named: tuple[str, ...]) -> None:
        """Compile and link the half of the kernels once more, with further ones that the other half names."""
        self.named = named
        units = self.compute_units()
        self.compile_units(units)
        self._link([unit for unit, _ in units], COMPUTE)

    def _guessed_kernels(self) -> list[str]:
        texts = [Path(path).read_text(errors="replace") for path in self.recipe.shape]
        found = [without_comments(text) for text in texts]
        return list(dict.fromkeys([*(name for text in found for name in _DEFINITION.findall(text)), *self.named]))

    def compute_units(self) -> list[tuple[Path, str]]:
        """Return a unit for each compute source; the kernels are bound in the one that defines them."""
        kernels = self._guessed_kernels()
        bodies = {path: without_comments(Path(path).read_text(errors="replace")) for path in self.recipe.compute}
        bound: dict[str, list[str]] = {path: [] for path in bodies}
        for kernel in kernels:
            if _IDENTIFIER.fullmatch(kernel) is None:
                raise BuildError(f"m.def names the kernel {kernel!r}, which is no C++ name")
            definers = [path for path, body in bodies.items() if defines(body, kernel)]
            # Where none is seen to define it, the first may include what does; the compiler knows.
            bound[(definers or list(bodies))[0]].append(kernel)
        return [(self._unit(f"compute{i}", path, bound[path]), path) for i, path in enumerate(bodies)]

    def _unit(self, name: str, source: str, kernels: Sequence[str]) -> Path:
        """Write and return a unit that binds the kernels of a source. The command includes the source, whatever its
        path.
        """
        unit = self.directory / f"{name}.cpp"
        lines = ['#include "nkitools/bind.h"'] if kernels else []
        lines += [f'NKT_KERNEL({i}, "{kernel}", ::{kernel})' for i, kernel in enumerate(kernels)]
        unit.write_text("\n".join(lines) + "\n")
        return unit

    def compile_units(self, units: Sequence[tuple[Path, str]]) -> None:
        """Compile units, each with its source ('' for none), side by side.

        BuildError has the compiler's words on the author's source.
        """
        compiler = self.compiler
        flags = [*compiler.flags, *self.extra, *self.recipe.flags, *self.prepared.prelude, "-MMD"]
        commands = [
            [
                *compiler.command,
                *flags,
                *self._host_flags(unit),
                *_including(source),
                *_from(unit, self.object_of(unit)),
            ]
            for unit, source in units
        ]
        for done, (unit, source) in zip(run_together(commands), units, strict=True):
            self.said += f"{done.stderr}\n"
            if done.end.status == 0:
                continue
            syntax = ("-fsyntax-only", "-x", "c++", source or str(unit))
            alone = run([*compiler.command, *flags[:-1], *self._host_flags(unit), *syntax])
            text = authors_words(alone.stderr if alone.end.status else done.stderr, str(unit)).rstrip()
            text += remedies_of(text)
            if alone.end.status:
                raise BuildError(f"{os.path.basename(source)} does not compile:\n{text}", done.stderr)
            lost = re.search(rf"{re.escape(str(unit))}:(\d+):\d+: error: ", done.stderr)
            named = _BOUND.match(unit.read_text().splitlines()[int(lost[1]) - 1]) if lost is not None else None
            if named is not None:
                wrong = (
                    f"m.def names the kernel `{named[1]}`, and the compute sources do not define one function of that"
                )
                raise BuildError(f"{wrong} name (looked in {os.path.basename(source)})", done.stderr)
            raise BuildError(f"{os.path.basename(source)} does not compile:\n{text}", done.stderr)

    def _host_flags(self, unit: Path) -> tuple[str, ...]:
        """Return the flags of a shape source, which PyTorch itself compiles: its headers, and all of its members."""
        if not unit.stem.startswith(_SHAPE_UNIT):
            return ()
        host = self.directory / "host"
        for header in host_headers(self.recipe.shape):
            (host / header).parent.mkdir(parents=True, exist_ok=True)
            (host / header).write_text("#include <torch/torch.h>\n")
        return ("-isystem", str(host), "-Wno-deprecated-declarations", "-include", "nkitools/host.h")

    def object_of(self, unit: Path) -> Path:
        """Return the path of a unit's object file."""
        return self.directory / f"{unit.stem}.o"

    def _link(self, units: Sequence[Path], name: str) -> None:
        objects = [str(self.object_of(unit)) for unit in units]
        command = [*self.compiler.command, *self.extra, *objects, str(self.prepared.runtime), *library_flags()]
        done = run([*command, "-o", str(self.directory / name)])
        if done.end.status != 0:
            raise BuildError(f"the library {self.recipe.name} does not link:\n{done.stderr}", done.stderr)
        keep_symbols(self.directory / name)

    def included(self) -> set[str]:
        """Return the author's files: the sources and what they include, but for the system's and our own."""
        units = {str(path) for path in self.directory.glob("*.cpp")}
        found: set[str] = set()
        folders = sorted({os.path.dirname(each) for each in (*self.recipe.compute, *self.recipe.shape)}, key=len)
        for listing in self.directory.glob("*.d"):
            _, _, names = listing.read_text(errors="surrogateescape").partition(":")
            for number, folder in reversed(list(enumerate(folders))):  # which may have the end of a line in its name
                names = names.replace(_in_listing(folder) + "/", f"\0{number}\0")
            found.update(_LISTED.findall(names.replace("\\\n", " ")))
        names_of = (re.sub("\0(\\d+)\0", lambda at: folders[int(at[1])] + "/", _out_of_listing(each)) for each in found)
        paths = {os.path.abspath(name) for name in names_of if name}
        ours = tuple(str(each) + os.sep for each in (self.prepared.runtime.parent, self.directory / "host"))
        return {path for path in paths if path not in units and not path.startswith(ours)}

    def remarks(self) -> tuple[Remark, ...]:
        """Return the compiler's remarks on code that Neuron's guide does not allow, and on variables."""
        found = [
            Remark(m["what"], os.path.abspath(m["file"]), int(m["line"]), int(m["column"]), rule)
            for rule, words in _REMARKS.items()
            for m in words.finditer(self.said)
        ]
        places: dict[str, list[Remark]] = {}
        for remark in dict.fromkeys(found):
            places.setdefault(remark.message, []).append(remark)
        return tuple(_folded(each) for each in places.values())


def _folded(remarks: Sequence[Remark]) -> Remark:
    """Return the first of the remarks on one name, which says how many other uses there are."""
    more = len(remarks) - 1
    if not more:
        return remarks[0]
    uses = "1 more use" if more == 1 else f"{more} more uses"
    return replace(remarks[0], message=f"{remarks[0].message} (and {uses})")


def _including(source: str) -> tuple[str, ...]:
    """Return the flags that put a source before a unit; none for a unit that is whole by itself."""
    return ("-include", source) if source else ()


def _from(unit: Path, made: Path) -> tuple[str, ...]:
    """Return the flags that make an object of a unit."""
    return ("-c", str(unit), "-o", str(made))


def _in_listing(path: str) -> str:
    """Return a path as a compiler lists it for make: a space, and each backslash before it, behind a backslash."""
    path = re.sub(r"(\\*)([ \t])", r"\1\1\\\2", path)
    return path.replace("$", "$$").replace("#", "\\#")


def _out_of_listing(name: str) -> str:
    name = re.sub(r"(\\*)\\([ \t])", lambda at: at[1][: len(at[1]) // 2] + at[2], name)
    return name.replace("\\#", "#").replace("$$", "$")
