"""A fake of torch_neuronx.xla_impl.custom_op.

Source: Building and executing operators, and Loading a previously built library, in the Neuron Custom C++ Operators
Developer Guide: ``load`` compiles a library, in ``build_directory`` as ``lib<name>.so`` where that is given, and loads
it into the process; the operators are ``torch.ops.<lib_name>.<op_name>``, with the library's name in NEURON_LIBRARY;
``load_library`` takes the path of a library that was built before. ``extra_cflags``: Performance Guidance, ibid.;
``verbose``: the tutorial's build.py. The guide says of neither what it returns.

What it computes is what nkitools.customop does.
"""

from nkitools import customop

log = []


def load(name, compute_srcs, shape_srcs, build_directory=None, multicore=False, verbose=False, extra_cflags=()):
    """Build and load a library."""
    log.append((name, multicore))
    library = customop.load(name, compute_srcs, shape_srcs, build_directory, multicore, verbose, extra_cflags)
    customop.register_with_torch(library)


def load_library(path):
    """Load a library that was built before."""
    log.append((path,))
    customop.register_with_torch(customop.load_library(path))
