"""Operators for the tests: many in one library, since every library costs two compilations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.customop import Library, Operator, OperatorRun, load
from nkitools.customop.errors import BuildError
from nkitools.customop.toolchain import find_compiler

HEADERS = "#include <torch/torch.h>\n#include <neuron/neuron-utils.hpp>\n"
MOST = 10  # operators of a library

Sources = dict[str, str]
Builder = Callable[..., dict[str, Operator]]


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own, which goes with their other files; without a compiler there is nothing to test."""
    try:
        find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def build_operators(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    """Build sources that each define ``kernel`` and ``shape``, as operators of the sources' names.

    A source is compiled from a file of its own, in a namespace of its name.
    """

    def build(sources: Sources, headers: str = "", **settings: Any) -> dict[str, Operator]:
        directory = tmp_path_factory.mktemp("operators")
        for name, text in sources.items():
            (directory / f"{name}.cpp").write_text(text)
        names = list(sources)
        built: dict[str, Operator] = {}
        for first in range(0, len(names), MOST):
            built |= _library(directory, first // MOST, names[first : first + MOST], headers, settings).ops
        return built

    return build


def _library(directory: Path, number: int, names: list[str], headers: str, settings: dict[str, Any]) -> Library:
    body = "".join(f'namespace {name} {{\n#include "{name}.cpp"\n}}\n' for name in names)
    definitions = "".join(f'  m.def("{name}", &{name}::shape, "{name}::kernel");\n' for name in names)
    compute, shape = directory / f"compute{number}.cpp", directory / f"shape{number}.cpp"
    compute.write_text(headers + HEADERS + body)
    register = '#include "torchneuron/register.h"\n'
    shape.write_text(f"{headers}{HEADERS}{register}{body}NEURON_LIBRARY(tests, m) {{\n{definitions}}}\n")
    return load(f"tests{number}", [compute], [shape], **settings)


def places(run: OperatorRun) -> list[tuple[str, int]]:
    """Rule and line of each finding."""
    return [(finding.rule, finding.line) for finding in run.findings]


def arguments_of(source: str) -> tuple[Any, ...]:
    """The arguments that the first line of an example names: ``// run(x(1000), 2.0)``."""
    found = re.search(r"run\((.*)\)$", source.splitlines()[0])
    assert found is not None, source
    arguments = eval(f"({found[1]},)", {"x": _array})
    assert isinstance(arguments, tuple)
    return arguments


def _array(*shape: int) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)
