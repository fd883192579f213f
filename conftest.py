"""What every test of this repository can count on."""

from hypothesis import settings

pytest_plugins = ["pytester"]

# A busy machine is no reason for a test to fail. All else stays as Hypothesis chooses it, for CI too.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")
