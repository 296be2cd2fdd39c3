"""A run in its process: folder, state, verdict, signals, and the watch over the main thread."""
