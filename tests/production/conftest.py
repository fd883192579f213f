"""The tests of the repository are run by those here, as its own."""

collect_ignore = ["repository"]
