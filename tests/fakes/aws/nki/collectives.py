"""The fake of nki.collectives: the names of the builtin simulator's."""

from nkitools.dialects.modern.collectives import *  # noqa: F403
