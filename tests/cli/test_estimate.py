"""``nkitools estimate``: a kernel of a file, its page, its JSON, and several chips."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main

KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

WIDTH = 512

@nki.jit
def square(x, times=1):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for n in range(x.shape[1] // WIDTH):
        tile = nl.ndarray((128, WIDTH), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, n * WIDTH : (n + 1) * WIDTH])
        for _ in range(times):
            nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.multiply)
        nisa.dma_copy(dst=out[:, n * WIDTH : (n + 1) * WIDTH], src=tile)
    return out

def inputs():
    return {"x": np.ones((128, 4096), np.float32)}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "squares.py"
    path.write_text(KERNEL)
    return str(path)


def estimated(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["estimate", *arguments])


def test_the_page_has_latency_engines_traffic_and_lines(file: str) -> None:
    """The page names the kernel and its chip, has a bar for each engine that works, and the lines of the path."""
    page = estimated(f"{file}::square", "--chip", "trn2").output
    assert page.startswith("square on trn2: ")
    assert [line.split()[0] for line in page.splitlines() if "#" in line] == ["vector", "dma"]
    assert "x: 2,097,152 bytes read, 0 written, of 2,097,152" in page
    assert "squares.py:14: " in page.partition("critical path:")[2]


def test_json_has_the_numbers_of_each_chip(file: str) -> None:
    """A list of one object for each chip, in the order asked for, with cores, engines and microseconds."""
    first, second = json.loads(estimated(f"{file}::square", "--chip", "trn3,trn1", "--json").output)
    assert (first["chip"], second["chip"]) == ("trn3", "trn1")
    assert (first["is_calibrated"], second["is_calibrated"]) == (False, True)
    assert first["latency_us"] > first["launch_us"] > 0
    assert second["roofline"]["hbm_bytes"] == 2 * 4 * 128 * 4096
    assert [(each["tensor"], each["loads"]) for each in second["traffic"]] == [("x", 1.0), ("out", 0.0)]
    assert {each["engine"] for each in first["engines"]} == {"tensor", "vector", "scalar", "gpsimd", "sync", "dma"}


def test_chips_stand_side_by_side(file: str) -> None:
    """Several chips are the columns of a table below the page of the first."""
    page = estimated(f"{file}::square", "--chip", "trn1,trn2").output
    assert page.startswith("square on trn1: ")
    table = page.partition("\n\n" + " " * 22)[2].splitlines()
    assert table[0].split() == ["trn1", "trn2"]
    assert table[1].split()[0] == "latency"
    assert "calibrated yes yes" in " ".join(page.split())


@pytest.mark.parametrize(("kernel", "said"), [("", "write FILE::KERNEL"), ("::cube", "has no kernel cube; it has")])
def test_a_mistake_in_the_command_is_named(file: str, kernel: str, said: str) -> None:
    """Exit code 2, and a sentence that says what there is."""
    result = estimated(f"{file}{kernel}")
    assert result.exit_code == 2
    assert said in result.output


def test_an_unknown_chip_is_named(file: str) -> None:
    """Exit code 2, and the chips that there are."""
    result = estimated(f"{file}::square", "--chip", "trn9")
    assert result.exit_code == 2
    assert "'trn9' is not a chip" in result.output


def test_a_variant_is_estimated_by_its_constants_and_keywords(file: str) -> None:
    """Eight tiles of three instructions; by settings one wide tile, and one in which ten instructions compute."""

    def instructions(*settings: str) -> int:
        arguments = [part for setting in settings for part in ("--set", setting)]
        found = json.loads(estimated(f"{file}::square", "--chip", "trn2", "--json", *arguments).output)
        return int(found[0]["instructions"])

    assert instructions() == 24
    assert instructions("WIDTH=4096") == 3
    assert instructions("WIDTH=4096", "times=10") == 12


@pytest.mark.parametrize(("setting", "said"), [("DEPTH=2", "DEPTH is no parameter"), ("WIDTH", "write NAME=VALUE")])
def test_a_setting_that_means_nothing_is_refused(file: str, setting: str, said: str) -> None:
    """Exit code 2, and the name."""
    result = estimated(f"{file}::square", "--set", setting)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_the_variants_of_the_file_are_ranked(file: str) -> None:
    """Wider tiles first; the same by a TOML file beside it; a file without either is refused by name."""
    assert "says no settings" in " ".join(estimated(f"{file}::square", "--tune").output.split())
    path = Path(file)
    path.write_text(KERNEL + 'space = {"WIDTH": [512, 4096], "times": [1, 10]}\n')
    ranked = json.loads(estimated(f"{file}::square", "--tune", "--chip", "trn2", "--json").output)
    (alone,) = json.loads(
        estimated(f"{file}::square", "--chip", "trn2", "--json", "--set", "WIDTH=4096", "--set", "times=10").output
    )
    latencies = {(each["values"]["WIDTH"], each["values"]["times"]): each["latency_us"] for each in ranked}
    assert list(latencies.values()) == sorted(latencies.values())
    assert latencies[4096, 10] == alone["latency_us"] > latencies[4096, 1]
    assert all(each["is_proposed"] for each in ranked)
    path.with_name("widths.toml").write_text("WIDTH = [512, 4096]\n")
    path.write_text(KERNEL + 'space = "widths.toml"\n')
    page = estimated(f"{file}::square", "--tune", "--chip", "trn2").output.splitlines()
    verb = CliRunner().invoke(main, ["tune", f"{file}::square", "--chip", "trn2"])
    assert (verb.exit_code, verb.output.splitlines()) == (0, page)
    assert sorted(line.partition(":")[0] for line in page[:2]) == ["* WIDTH=4096", "* WIDTH=512"]
    best, other = (each.split()[1].rstrip(":") for each in page[:2])
    assert page[2].startswith(f"chosen: {best}, ")
    assert other != best
