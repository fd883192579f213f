"""Many variants of a kernel: one kind of space, and their order by estimate."""
