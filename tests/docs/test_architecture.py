"""The functions that the page walks through are where it says."""

import ast
import re

import pytest

from .fences import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
#: A name and its file: `Class.method` (`path.py`), or within brackets: `name`, `path.py`.
NAMED = re.compile(r"`([\w.]+)`,?\s+\(?`(ding/[\w/]+\.py)`")


def names_of(file):
    """Functions, classes and methods of a module."""
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(part, ast.FunctionDef):
                yield f"{node.name}.{part.name}"


@pytest.mark.parametrize(("name", "file"), sorted(set(NAMED.findall(PAGE))))
def test_a_hop_is_there(name, file):
    assert name in set(names_of(file))


def test_every_file_is_named_with_what_is_in_it():
    walk = PAGE.partition("## The parts of a parallel run")[0]
    files = re.findall(r"`(ding/[\w/]+\.py)`", walk)
    assert len(files) > 40
    assert len(NAMED.findall(walk)) == len(files)
