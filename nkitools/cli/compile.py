"""``nkitools compile``: a kernel through AWS's compiler, without a device."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click

from nkitools.cli.compare import let_answer
from nkitools.cli.shared_options import chip_option, inputs_option, json_option, set_option, version_option
from nkitools.cli.terminal import say, say_json
from nkitools.facts import options
from nkitools.kernel_file import seen
from nkitools.kernel_settings import texts_of


@click.command("compile", short_help="Compile a kernel by AWS's compiler, without a device.")
@click.argument("kernel", metavar="FILE::KERNEL")
@click.option("--lnc", type=click.Choice(["1", "2"]), help="Number of physical cores in a logical core.  [default: 1]")
@inputs_option
@set_option
@chip_option
@version_option
@json_option()
@click.pass_context
def compile_kernel(
    context: click.Context, kernel: str, lnc: str | None, inputs: str | None, settings: dict[str, Any], as_json: bool
) -> None:
    """Compile KERNEL of FILE by AWS's compiler, if it is installed; nothing runs on a device.

    The compiler's process ends after NKITOOLS_TIMEOUT seconds and may take NKITOOLS_MEMORY GiB. The arguments are
    `inputs` of FILE, or the arrays in the file of --inputs. An error of the compiler is shown at the author's line,
    with the meaning of its code. For a kernel that compiles, the predicted latency is shown, if the compiler gives one,
    beside nkitools' estimate, to which --nki-version applies. Exit code: 0 if it compiles; 1 if not, or if the compiler
    crashes or runs out of time; 2 for a mistake in the command and without a compiler.
    """
    file, name = seen(kernel, needs_inputs=inputs is None)
    request: dict[str, Any] = {"file": file, "kernel": name, "inputs": inputs, "settings": texts_of(settings)}
    request["options"] = dict(options.overrides() or {})
    told = _answer({**request, **({"degree": int(lnc)} if lnc else {})})
    told |= (
        _estimate(file, name, inputs, settings, told["compiled"]["chip"])
        if told["compiled"]
        else _explained(told["error"])
    )
    if as_json:
        say_json({"kernel": kernel, **told})
    else:
        say(_page(name, told))
    context.exit(int(not told["compiled"]))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the compiler's process and return its answer."""
    with tempfile.TemporaryDirectory() as scratch:
        saved = Path(scratch) / "answer.json"
        let_answer("the compiler", {**request, "side": "compile", "save": str(saved)})
        told: dict[str, Any] = json.loads(saved.read_text(encoding="utf-8"))
        return told


def _estimate(file: str, name: str, inputs: str | None, settings: dict[str, Any], chip: str) -> dict[str, Any]:
    """Return nkitools' estimate, to show beside the prediction, or the reason if there is none."""
    from nkitools.cli.estimate import runs_of

    try:
        (run,) = runs_of(file, name, inputs, [chip], settings)
        found = run.estimate()
    except Exception as error:  # any: the kernel is compiled whatever it does in simulation
        return {"estimate": None, "no_estimate": f"{type(error).__name__}: {error}"}
    return {"estimate": {"latency_us": found.latency_us, "lower_us": found.lower_us, "upper_us": found.upper_us}}


def _explained(words: str) -> dict[str, Any]:
    from nkitools.facts.known_faults import codes_in

    return {"codes": [code.sentence() for code in codes_in(words)]}


def _page(name: str, told: dict[str, Any]) -> str:
    from nkitools.report.estimate_text import us

    if not told["compiled"]:
        head = f"{told['file']}:{told['line']}: AWS's compiler does not take kernel `{name}`:"
        return "\n".join([head, *(f"  {line}" for line in told["error"].splitlines()), *told["codes"]])
    if told["estimate"] is None:
        return f"{told['said']}\nnkitools has no estimate: {told['no_estimate']}"
    found = told["estimate"]
    band = f"{us(found['lower_us'])} to {us(found['upper_us'])}"
    return f"{told['said']}\nnkitools estimates {us(found['latency_us'])} ({band})"
