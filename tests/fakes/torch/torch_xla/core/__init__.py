"""The package of xla_model."""
