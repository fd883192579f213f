"""The fake of neuronxcc.nki.language: the names of the builtin simulator's."""

from nkitools.dialects.legacy.language import *  # noqa: F403
