"""A fake of nki.compiler.ncc_driver of nki 0.6, as public reports show it: options, and the step to a NEFF."""

import os
from dataclasses import dataclass

import nki


@dataclass(frozen=True)
class CompileOptions:
    """What is compiled for, and where to."""

    target: str
    lnc: int = 1
    artifacts_dir: str = ""
    output_path: str = ""
    emit_predicted_latency: bool = False


def compile_bir_to_neff(options, nir, input_arrays, argument_names, output_arg_names):
    """Write the NEFF."""
    assert argument_names == [each.name for each in nir.descriptor.input_specs]
    nki.leave_neff(os.path.dirname(options.output_path), nir.kernel, options.lnc, (), nir.inputs, nir.outputs)
