"""Pages of the documentation site that are generated at each build.

mkdocs calls the functions ``on_*``: pages of the repository's other documents, of each policy, of
each package's public names, and of the command line.
"""

import importlib
import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
#: Pages of the site that are stored elsewhere in the repository.
OTHERS = {
    "readme.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
}
#: Pages of public names: the package, and where in it the names of a page are defined.
TOPICS = {
    **{
        name: (f"ding.{name}", "")
        for name in ("entry", "config", "policy", "model", "envs", "data")
    },
    **{
        topic: ("ding.worker", f"ding.worker.{inside}")
        for topic, inside in {
            "collectors": "collector",
            "learners": "learner",
            "buffers": "replay_buffer",
            "coordinator": "coordinator",
            "engines": "engines",
            "adapters": "adapter",
        }.items()
    },
    **{
        name: (f"ding.{name}", "")
        for name in ("rl_utils", "torch_utils", "league", "interaction", "utils")
    },
}
#: The policies, as the menu groups them.
GROUPS = {
    "Value-based": "dqn c51 qrdqn iqn fqf rainbow mdqn sqn sql r2d2 bdq",
    "Actor-critic, on-policy": "ppo ppo_pg a2c pg ppg ppg_offpolicy ppo_offpolicy impala acer",
    "Actor-critic, off-policy": "sac discrete_sac sac_discrete td3 ddpg d4pg pdqn",
    "Teams of agents": "qmix wqmix qtran collaq madqn coma happo",
    "Offline": "cql discrete_cql cql_discrete iql td3_bc bcq edac dt bc",
    "With demonstrations": "dqfd r2d3 sqil_sac",
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
_MERMAID = re.compile(r"```mermaid\n.*?```", re.S)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the policies into the menu, by group."""
    reference = next(item["Reference"] for item in config.nav or [] if "Reference" in item)
    groups = [
        {group: [{name: f"policies/{name}.md"} for name in names.split()]}
        for group, names in GROUPS.items()
    ]
    reference[reference.index("policies.md")] = {"Policies": ["policies.md", *groups]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages = {path: (ROOT / source).read_text() for path, source in OTHERS.items()}
    pages.update(_policy_pages())
    pages.update((f"api/{topic}.md", _api_page(topic)) for topic in TOPICS)
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
    from ding.config.schema import SCHEMA
    from ding.utils import POLICY_REGISTRY

    meanings = {path: key.meaning for key in SCHEMA for path in (key.path, *key.twins, *key.old)}
    lines = ["# Policies", "", "`create_config.policy.type` and `ding -p` take these names."]
    for group, names in GROUPS.items():
        lines += ["", f"## {group}", "", "| type | actions | paper |", "|---|---|---|"]
        for name in names.split():
            policy: Any = POLICY_REGISTRY.get(name)
            actions = ", ".join(getattr(policy, "actions", ()))
            paper = getattr(policy, "paper", "")
            lines.append(f"| [{name}](policies/{name}.md) | {actions} | {paper} |")
            yield f"policies/{name}.md", _policy_page(name, policy, actions, paper, meanings)
    yield "policies.md", "\n".join(lines)


def _policy_page(name: str, policy: Any, actions: str, paper: str, meanings: dict[str, str]) -> str:
    from ding.config.parts import default_config

    lines = [f"# {name}", "", inspect.getdoc(policy) or "", ""]
    lines += [f"**Actions**: {actions or 'any'}. **Paper**: {paper or 'none'}.", ""]
    lines += [f"Class `{policy.__name__}` in `{_source(policy)}`.", "", *_returns(name)]
    lines += [
        "## Keys",
        "",
        "Keys of `policy` in the main config, with this policy's defaults.",
        "",
    ]
    lines += ["| key | meaning | default |", "|---|---|---|"]
    for path, value in _leaves("policy", dict(default_config(policy))):
        lines.append(
            f"| `{path.removeprefix('policy.')}` | {meanings.get(path, '')} | `{value!r}` |"
        )
    return "\n".join(lines)


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(f"{path}.{name}", item)
    else:
        yield path, value


def _source(found: Any) -> str:
    """The file in which a class or function is defined."""
    return f"{found.__module__.replace('.', '/')}.py"


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


# ---------------------------------------------------------------------- names, commands


def _api_page(topic: str) -> str:
    package, inside = TOPICS[topic]
    module = importlib.import_module(package)
    about = importlib.import_module(inside) if inside else module
    lines = [f"# {inside or package}", "", inspect.getdoc(about) or "", ""]
    others = []
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        home = getattr(found, "__module__", "")
        is_documented = inspect.isclass(found) or inspect.isfunction(found)
        if is_documented and home.startswith("ding."):
            if home.startswith(inside):
                lines += [f"::: {home}.{found.__qualname__}", "", f"Source: `{_source(found)}`", ""]
        elif not inside:
            others.append(f"`{name}`")
    if others:
        lines += ["## Other names", "", ", ".join(others)]
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

    all_parts = (*COMPONENTS.values(), *PARALLEL_COMPONENTS.values())
    parts = {names[id(registry)]: (registry, place) for registry, place in all_parts}
    for name, (registry, place) in parts.items():
        for type_ in BUILTIN_TYPES[name] if place else ():
            for path, value in _leaves(place, dict(default_config(registry.get(type_)))):
                found[path][repr(value)] += 1
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
        context = click.Context(command, info_name=name)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        lines += [f"## {name}", "", f"`{usage}`", "", inspect.cleandoc(command.help or ""), ""]
        if rows := [row for option in command.params if (row := _option_row(option, context))]:
            lines += ["| option | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _option_row(option: click.Parameter, context: click.Context) -> str:
    """A table row; choices are listed with the meaning, since code in tables cannot hold ``|``."""
    record = option.get_help_record(context)
    if record is None:
        return ""
    names, meaning = (" ".join(text.split()) for text in record)
    if isinstance(option.type, click.Choice) and option.type.choices[0] not in meaning:
        names = names.partition(" [")[0]
        meaning += " One of " + ", ".join(f"`{choice}`" for choice in option.type.choices) + "."
    return f"| `{names}` | {meaning} |"
