"""Engines: the transport of a parallel run's messages, samples, weights and files."""
