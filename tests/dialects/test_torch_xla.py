"""The stand-in for ``torch_xla``: scripts around kernels run with CPU tensors, and what is not there is refused."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nki
import nki.language as nl
import pytest

from nkitools.dialects import import_hint, stand_in
from nkitools.rules.finding import NotModelled
from nkitools.targets.packages import is_installed


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Each test begins and ends without torch_xla: others have a package of that name on the path."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torch_xla"}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch_xla"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.fixture
def torch() -> Any:
    """PyTorch, or a skipped test."""
    return pytest.importorskip("torch")


def test_a_kernel_takes_what_lies_on_the_device(torch: Any) -> None:
    """Tensors of the device are torch's own on the CPU, and a kernel called with one returns one."""
    xm = importlib.import_module("torch_xla.core.xla_model")
    x = torch.arange(8, dtype=torch.float32).reshape(2, 4).to(xm.xla_device())

    @nki.jit
    def double(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(out, nl.add(tile, tile))
        return out

    result = double(x)
    xm.mark_step()
    assert result.device == torch.device("cpu")
    assert result.tolist() == [[0, 2, 4, 6], [8, 10, 12, 14]]


def test_one_device_and_one_process(torch: Any) -> None:
    """Its numbers are those of one process on one device; another device is refused."""
    xla, runtime = importlib.import_module("torch_xla"), importlib.import_module("torch_xla.runtime")
    xm = importlib.import_module("torch_xla.core.xla_model")
    assert (xla.device(), xla.devices(), xla.device_count()) == (torch.device("cpu"), [torch.device("cpu")], 1)
    assert (runtime.world_size(), runtime.global_ordinal(), runtime.device_type()) == (1, 0, "CPU")
    assert (xm.get_ordinal(), xm.xrt_world_size(), xm.is_master_ordinal()) == (0, 1, True)
    assert xm.xla_device_hw(xm.xla_device()) == "CPU"
    assert xm.rendezvous("here", b"payload") == [b"payload"]
    with pytest.raises(IndexError, match="one device"):
        xla.device(1)
    with pytest.raises(ValueError, match="the CPU alone"):
        xm.xla_device(devkind="TPU")


def test_a_step_of_training(torch: Any, tmp_path: Path) -> None:
    """The optimizer steps once, closures run at once, and what is saved can be loaded."""
    xla, xm = importlib.import_module("torch_xla"), importlib.import_module("torch_xla.core.xla_model")
    weight = torch.nn.Parameter(torch.tensor([3.0], device=xm.xla_device()))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    said = io.StringIO()
    with xla.step():
        (weight * 2).sum().backward()
        xm.optimizer_step(optimizer)
        xm.add_step_closure(lambda each: xm.master_print("weight", each, fd=said), args=(weight.item(),))
    xla.sync()
    assert weight.tolist() == [2.0]  # 3 - 0.5 * 2
    assert said.getvalue() == "weight 2.0\n"
    xm.save({"weight": weight.detach()}, tmp_path / "weight.pt")
    assert torch.load(tmp_path / "weight.pt")["weight"].tolist() == [2.0]


def test_functions_that_are_compiled_or_launched_run_as_they_are(torch: Any) -> None:
    """``compile`` gives the function back, and ``launch`` calls it as process 0; no graphs are counted."""
    xla = importlib.import_module("torch_xla")
    calls: list[tuple[int, str]] = []
    xla.launch(lambda index, word: calls.append((index, word)), args=("hello",))
    assert calls == [(0, "hello")]
    assert xla.compile(len) is len
    with pytest.raises(NotModelled, match="num_different_graphs_allowed"):
        xla.compile(len, num_different_graphs_allowed=2)


def test_the_seed_is_torchs(torch: Any) -> None:
    """Numbers drawn after a seed are those of torch's own generator."""
    importlib.import_module("torch_xla").manual_seed(7)
    first = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(first, torch.rand(3))
    importlib.import_module("torch_xla.core.xla_model").set_rng_state(7)
    assert torch.equal(first, torch.rand(3))


def test_what_is_not_there_is_refused_by_name(torch: Any) -> None:
    """A function as an attribute and by import, and a module: each with a sentence of nkitools'."""
    xm = importlib.import_module("torch_xla.core.xla_model")
    assert not hasattr(xm, "all_reduce")
    with pytest.raises(NotModelled, match=r"torch_xla.core.xla_model has no `all_reduce` here: nkitools stands in"):
        _ = xm.all_reduce
    with pytest.raises(ImportError, match="has no `all_gather` here"):
        exec("from torch_xla.core.xla_model import all_gather")
    with pytest.raises(ModuleNotFoundError, match=r"torch_xla has no module `torch_xla.distributed` here"):
        importlib.import_module("torch_xla.distributed")


def test_without_torch_a_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """ModuleNotFoundError, as without nkitools, with what to install."""
    monkeypatch.setattr(stand_in, "_installed_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="nkitools stands in for it where torch is") as caught:
        importlib.import_module("torch_xla")
    assert caught.value.name == "torch_xla"


def test_who_only_looks_finds_what_is_installed(torch: Any) -> None:
    """Neither `find_spec` nor an import that stands in an installed package is answered, nor nkitools' own question."""
    assert importlib.util.find_spec("torch_xla") is None
    library = compile("import torch_xla", "/usr/lib/python3/site-packages/library.py", "exec")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'torch_xla'$"):
        exec(library)
    importlib.import_module("torch_xla")
    is_installed.cache_clear()
    assert not is_installed("torch_xla")
    is_installed.cache_clear()


def test_an_import_of_the_author_is_no_librarys() -> None:
    """The question is asked by a finder, and answered for the frame that stands before the import's machinery."""

    def finder() -> bool:
        return import_hint.is_import_by_a_library()

    assert finder() is False
    asks = "def outer():\n    return finder()\n"
    space: dict[str, Any] = {"finder": finder}
    exec(compile(asks, "/x/dist-packages/library.py", "exec"), space)
    assert space["outer"]() is True
