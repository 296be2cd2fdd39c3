"""What carries a parallel run: its messages, samples, weights and files."""
