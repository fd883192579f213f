"""The fake of neuronxcc.nki.isa: the names of the builtin simulator's."""

from nkitools.dialects.legacy.isa import *  # noqa: F403
