"""Data sets of transitions: what is read from files, checked, and put into columns."""
