"""``python -m ding`` is the command ``ding``."""

from ding.entry.cli import main

if __name__ == "__main__":
    main(prog_name="ding")
