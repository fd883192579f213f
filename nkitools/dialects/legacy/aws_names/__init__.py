"""Other names that public legacy kernels import from AWS's package."""
