"""A fake of nki.framework.compiled, which exists since nki 0.6, and for which nkitools has no stand-in.

``compile_kernel_to_nir``: as public reports show it on hosts without a device, with the latency that is predicted.
"""

from types import SimpleNamespace

import numpy as np

import nki

PREDICTED_NS = 12_500.0


def compile_kernel_to_nir(kernel, inputs, compile_opts, enable_cache=True):
    """Run the compiler's front end."""
    assert compile_opts.lnc == kernel.lnc
    outputs = nki.compiled_by(kernel, (), inputs)
    specs = [SimpleNamespace(name=name) for name, each in inputs.items() if isinstance(each, np.ndarray)]
    return SimpleNamespace(
        kernel=kernel,
        inputs=inputs,
        outputs=outputs,
        total_time_ns=PREDICTED_NS if compile_opts.emit_predicted_latency else None,
        descriptor=SimpleNamespace(input_specs=specs, output_specs=[SimpleNamespace(name="out")]),
    )
