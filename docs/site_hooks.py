"""Pages of the documentation site that are generated at each build.

mkdocs calls the functions ``on_*``: pages of the repository's other documents, of each policy, of
each package's public names, and of the command line.
"""

import ast
import importlib
import inspect
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
#: Pages of the site that stand elsewhere in the repository.
OTHERS = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
}
PACKAGES = (
    *("entry", "config", "policy", "model", "worker", "envs", "data"),
    *("rl_utils", "torch_utils", "league", "interaction", "utils"),
)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_MERMAID = re.compile(r"```mermaid\n.*?```", re.S)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    pages = {path: (ROOT / source).read_text() for path, source in OTHERS.items()}
    pages.update(_policy_pages())
    pages.update((f"api/{name}.md", _api_page(f"ding.{name}")) for name in PACKAGES)
    pages["cli.md"] = _cli_page()
    pages["config_keys.md"] = _keys_page()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, and show the picture that was drawn of the diagram."""
    here = Path(OTHERS.get(page.file.src_uri, f"docs/{page.file.src_uri}")).parent
    markdown = _MERMAID.sub("![who talks to whom](message_graph.svg)", markdown)
    return _LINK.sub(lambda link: _on_site(link, here, page.file.src_uri, files), markdown)


def _on_site(link: re.Match[str], here: Path, source: str, files: Files) -> str:
    text, target = link.groups()
    if "://" in target or target.startswith("#"):
        return link.group()
    path, _, anchor = target.partition("#")
    # Generated pages link within the site; the others as they lie in the repository.
    parts: list[str] = []
    for part in (here / path).parts:
        parts[-1:] = [] if part == ".." and parts else [*parts[-1:], part]
    inside = "/".join(parts).removeprefix("docs/")
    page = {**{there: name for name, there in OTHERS.items()}, "benchmarks": "benchmarks.md"}.get(
        "/".join(parts), inside
    )
    if files.get_file_from_path(page) is None:
        return text if text.startswith("`") else f"{text} (`{'/'.join(parts)}`)"
    up = "../" * source.count("/")
    return f"[{text}]({up}{page}{'#' + anchor if anchor else ''})"


# ---------------------------------------------------------------------- policies


def _policy_pages() -> Iterator[tuple[str, str]]:
    from ding.utils import POLICY_REGISTRY

    types = sorted(key for key in POLICY_REGISTRY.query() if not key.endswith("_command"))
    rows = ["| type | actions | paper |", "|---|---|---|"]
    for key in types:
        policy: Any = POLICY_REGISTRY.get(key)
        actions = ", ".join(getattr(policy, "actions", ()))
        paper = getattr(policy, "paper", "")
        rows.append(f"| [{key}](policies/{key}.md) | {actions} | {paper} |")
        yield f"policies/{key}.md", _policy_page(key, policy, actions, paper)
    intro = "Each by the name that `create_config.policy.type` and `ding -p` take."
    yield "policies.md", "\n".join(["# Policies", "", intro, "", *rows])


def _policy_page(key: str, policy: Any, actions: str, paper: str) -> str:
    lines = [f"# {key}", "", inspect.getdoc(policy) or "", ""]
    lines += [f"**Actions**: {actions or 'any'}. **Paper**: {paper or 'none'}.", ""]
    lines += [f"Class `{policy.__module__}.{policy.__name__}`.", ""]
    for cls in policy.__mro__:
        source = _config_source(cls)
        if source:
            own = "## Config" if cls is policy else f"## Config of `{cls.__name__}`"
            lines += [own, ""]
            if cls is not policy:
                lines += ["What the above leaves out.", ""]
            lines += ["```python", source, "```", ""]
    lines += _returns(key)
    return "\n".join(lines)


def _returns(policy: str) -> list[str]:
    """What its tuned configs return, with the curves of their environments."""
    lines: list[str] = []
    for section in (ROOT / "docs/returns.md").read_text().split("\n## ")[1:]:
        # config, policy, goal, reached, env steps to the goal, best return, ...
        table = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")]
        rows = [row for row in table[2:] if row[1].strip() == policy]
        if rows:
            name = section.partition("\n")[0]
            lines += [f"### {name}", ""]
            for config, _, *cells in [*table[:2], *rows]:
                lines.append("|".join(["", _LINK.sub(r"`\1`", config), *cells[:4], ""]))
            lines.append("")
            picture = re.search(r"!\[[^]]*\]\(([^)]+)\)", section)
            lines += [f"![returns of {name}](../{picture[1]})", ""] if picture else []
    return ["## Returns over seeds", "", *lines] if lines else []


def _config_source(cls: type) -> str:
    """The defaults that a class declares, with their comments."""
    if "config" not in vars(cls):
        return ""
    source = textwrap.dedent(inspect.getsource(cls))
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "config":
            lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
            return textwrap.dedent("\n".join(lines))
    return ""


# ---------------------------------------------------------------------- names, commands


def _api_page(package: str) -> str:
    module = importlib.import_module(package)
    lines = [f"# {package}", "", inspect.getdoc(module) or "", ""]
    others = []
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        home = getattr(found, "__module__", "")
        is_documented = inspect.isclass(found) or inspect.isfunction(found)
        if is_documented and home.startswith("ding."):
            lines += [f"::: {home}.{found.__qualname__}", ""]
        else:
            others.append(f"`{name}`")
    if others:
        lines += ["## Besides", "", ", ".join(others)]
    return "\n".join(lines)


def _keys_page() -> str:
    from ding.config.schema import SCHEMA

    sections: dict[str, list[str]] = defaultdict(list)
    defaults = _defaults()
    for key in SCHEMA:
        whole = "a whole number" if key.whole else ""
        values = ", ".join(filter(None, (whole, key.range, key.unit and f"in {key.unit}")))
        others = ", ".join(f"`{path}`" for path in (*key.twins, *key.old))
        facts = [key.meaning, values and f"{values[0].upper()}{values[1:]}."]
        facts += [others and f"Also {others}.", "Not read." if key.silent and not key.range else ""]
        row = (
            f"| `{key.path}` | {' '.join(filter(None, facts))} | {_words_of(defaults[key.path])} |"
        )
        section = ".".join(key.path.split(".")[:-1][:2])
        sections[section or "The run"].append(row)
    lines = [
        "# Config keys",
        "",
        "All keys, by section. Where classes have several defaults, the commonest is first; "
        "[a policy's page](policies.md) has its own.",
    ]
    for name, rows in sections.items():
        lines += ["", f"## {name}", "", "| key | meaning | default |"]
        lines += ["|---|---|---|", *rows]
    return "\n".join(lines)


def _defaults() -> dict[str, Counter[str]]:
    """The defaults of built-in classes by key, with how many classes have each."""
    from ding.config.parts import COMPONENTS, PARALLEL_COMPONENTS, default_config
    from ding.utils.builtin_types import BUILTIN_TYPES
    from ding.utils.registry_factory import registries

    names = {id(registry): name for name, registry in registries.items()}
    found: dict[str, Counter[str]] = defaultdict(Counter)

    def note(path: str, value: object) -> None:
        if isinstance(value, dict) and value:
            for name, item in value.items():
                note(f"{path}.{name}", item)
        else:
            found[path][repr(value)] += 1

    all_parts = (*COMPONENTS.values(), *PARALLEL_COMPONENTS.values())
    parts = {names[id(registry)]: (registry, place) for registry, place in all_parts}
    for name, (registry, place) in parts.items():
        for type_ in BUILTIN_TYPES[name] if place else ():
            note(place, dict(default_config(registry.get(type_))))
    return found


def _words_of(defaults: Counter[str]) -> str:
    values = [value for value, _ in defaults.most_common(4)]
    return ", ".join(f"`{value}`" for value in values[:3]) + (", …" if len(values) > 3 else "")


def _cli_page() -> str:
    from ding.entry.cli import main

    lines = ["# Command line", ""]
    commands = [("ding", main)]
    if isinstance(main, click.Group):
        commands += [(f"ding {name}", command) for name, command in sorted(main.commands.items())]
    for name, command in commands:
        context = click.Context(command, info_name=name, max_content_width=100, terminal_width=100)
        lines += [f"## {name}", "", "```text", command.get_help(context), "```", ""]
    return "\n".join(lines)
