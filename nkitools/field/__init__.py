"""The field: tests, scripts and kernels that others wrote, run as they are, each in a process of its own."""
