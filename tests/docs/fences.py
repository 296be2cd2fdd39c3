"""The contents of the fenced blocks of the repository's own pages."""

import re
import shlex
import textwrap
from pathlib import Path

import tests

ROOT = Path(next(iter(tests.__path__))).parent
PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")))
#: Its blocks need each other: tests/docs/test_first_hour.py pastes them in their order.
FIRST_HOUR = "docs/first_hour.md"


def blocks(language):
    """``(page, text)`` of all blocks of a language, in order."""
    for page in sorted(PAGES):
        for text in re.findall(rf" *```{language}\n.*?```", (ROOT / page).read_text(), re.S):
            yield page, "\n".join(textwrap.dedent(text).splitlines()[1:-1])


def commands():
    """Every command line: its page, and its words without the comment."""
    for page, text in blocks("sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield page, words


def inline_commands():
    """Command lines of ``ding`` within the text that are written out."""
    for page in sorted(PAGES):
        for line in re.findall(r"`(ding -[^`]+)`", (ROOT / page).read_text()):
            if "..." not in line:
                yield page, shlex.split(line)
