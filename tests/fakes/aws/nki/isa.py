"""The fake of nki.isa: the names of the builtin simulator's."""

from nkitools.dialects.modern.isa import *  # noqa: F403
