"""The field: suites of kernels that others wrote, run against nkitools' own simulator."""
