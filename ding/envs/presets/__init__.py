"""Environment types over gymnasium and its family, one module per family."""
