"""Norms of rows."""

from .rms import rms_norm as rms_norm
from .standard import standard_norm as standard_norm
