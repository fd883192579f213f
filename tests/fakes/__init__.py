"""Stand-ins for hardware: packages and plugins that behave as public documentation says that the real ones do.

Each behaviour names its source. What no document says they do not do. Their numbers are the builtin simulator's, or
those of JAX on the CPU.
"""
