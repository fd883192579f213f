"""What every test of this repository can count on."""

pytest_plugins = ["pytester"]
