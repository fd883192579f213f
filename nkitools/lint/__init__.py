"""Source rules without running: which Python and which calls a kernel's source may hold, for both dialects."""
