"""The fake of nki.language: the names of the builtin simulator's."""

from nkitools.dialects.modern.language import *  # noqa: F403
