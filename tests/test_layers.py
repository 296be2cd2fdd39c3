"""Import rules: a layer may import earlier layers, and none of the later ones."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Packages of one line may import each other, as long as no module does so in a circle.
LAYERS = (
    ("utils",),
    ("torch_utils", "data"),
    ("rl_utils", "model", "envs", "interaction"),
    ("policy", "league", "board"),
    ("reward_model",),
    ("worker",),
    ("config",),
    ("entry",),
)
LEVELS = {package: level for level, packages in enumerate(LAYERS) for package in packages}
#: Paths of the public API at which names of a later layer are found.
FORWARDING = {"utils/data/dataset.py"}
ROOT = Path(__file__).parent.parent / "ding"


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package of ``ding`` of each import, also of those inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            names = [f"{module}.{alias.name}" for alias in node.names]
        for name in names:
            top, _, rest = name.partition(".")
            if top == "ding" and rest.partition(".")[0] in LEVELS:
                yield node.lineno, rest.partition(".")[0]


def test_every_package_has_a_layer():
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages == set(LEVELS)


@pytest.mark.parametrize("package", LEVELS)
def test_a_layer_imports_none_after_it(package):
    found = [
        f"{path.relative_to(ROOT.parent)}:{line} imports ding.{imported}"
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.relative_to(ROOT).as_posix() not in FORWARDING
        for line, imported in _imports(path)
        if LEVELS[imported] > LEVELS[package]
    ]
    assert not found, "\n".join(found)


def _modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """Modules that a file imports by their whole names, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    # What is no module itself is a name of one.
    return {name if name in modules else name.rpartition(".")[0] for name in names} & {*modules}


def test_no_module_imports_in_a_circle():
    modules = _modules()
    graph = {name: _imported(path, modules) - {name} for name, path in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
