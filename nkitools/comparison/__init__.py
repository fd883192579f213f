"""The one place that says whether two arrays differ: the rule, its numbers by dtype, and the elements that break it."""
