"""Pages of the documentation site that are generated at each build.

mkdocs calls the functions ``on_*``: pages of the repository's other documents, of each policy, of
each package's public names, and of the command line.
"""

import importlib
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from config_stub import Defaults, defaults  # mkdocs has hooks import from their folder
from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ding.config.parts import default_config
from ding.config.schema import SCHEMA, Key
from ding.entry import cli
from ding.plot import averaged
from ding.utils import POLICY_REGISTRY
from ding.utils.settings import leaves

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
#: Of the curves of a policy; legible on white and on black.
COLOURS = ("#3b7ef5", "#e8710a", "#12a36d", "#c2438f", "#8559e0")
#: The schema's row of a key, by each of its paths.
_KEYS = {path: key for key in SCHEMA for path in (key.path, *key.twins, *key.old)}
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
    for path, content in made_pages().items():
        files.append(File.generated(config, path, content=content))
    return files


def made_pages() -> dict[str, str]:
    """The Markdown of the generated pages, by their paths."""
    pages = {path: (ROOT / source).read_text() for path, source in OTHERS.items()}
    pages.update(_policy_pages())
    pages.update((f"api/{topic}.md", _api_page(topic)) for topic in TOPICS)
    pages["cli.md"] = _cli_page()
    pages["config_keys.md"] = _keys_page()
    return pages


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at pages of the site, and show the picture that was drawn of the diagram."""
    here = Path(OTHERS.get(page.file.src_uri, f"docs/{page.file.src_uri}")).parent
    if page.file.src_uri == "returns.md":  # its tables are wide
        page.meta["hide"] = ["toc"]
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
    lines = [
        "# Policies",
        "",
        "`create_config.policy.type` and `ding train ENV TYPE` take these names.",
    ]
    stored = _stored_returns()
    for group, names in GROUPS.items():
        lines += ["", f"## {group}", "", "| type | actions | paper |", "|---|---|---|"]
        for name in names.split():
            policy: Any = POLICY_REGISTRY.get(name)
            actions = ", ".join(getattr(policy, "actions", ()))
            paper = getattr(policy, "paper", "")
            lines.append(f"| [{name}](policies/{name}.md) | {actions} | {paper} |")
            yield f"policies/{name}.md", _policy_page(name, policy, actions, paper, stored)
    yield "policies.md", "\n".join(lines)


def _policy_page(
    name: str, policy: Any, actions: str, paper: str, stored: list[dict[str, Any]]
) -> str:
    about = inspect.getdoc(policy) or ""
    lines = [f"# {name}", "", about, ""]
    lines += [f"**Actions**: {actions or 'any'}. **Paper**: {paper or 'none'}.", ""]
    lines += [f"Class `{policy.__name__}` in `{policy.__module__.replace('.', '/')}.py`.", ""]
    lines += _returns(name, policy, stored)
    lines += [
        "## Keys",
        "",
        "Keys of `policy` in the main config, with this policy's defaults.",
        "",
    ]
    lines += ["| key | meaning | type | default |", "|---|---|---|---|"]
    for path, value in leaves(default_config(policy), "policy"):
        if value == {} or path.endswith(".cfg_type"):
            continue
        key = _KEYS.get(path)
        link = f"[`{path.removeprefix('policy.')}`](../config_keys.md#{key.path if key else path})"
        meaning, kind = (key.meaning, _type_of(key, [value])) if key else ("", "")
        lines.append(f"| {link} | {meaning} | {kind} | `{value!r}` |")
    if configs := _configs_of(name):
        lines += ["", "## Example configs", "", "```text", *configs, "```"]
    return "\n".join(lines)


def _configs_of(policy: str) -> list[str]:
    """Example configs whose create config has this policy."""
    pattern = re.compile(rf"policy=dict\(\s*type=[\"']{policy}[\"']")
    files = sorted((ROOT / "configs").rglob("*_config.py"))
    return [str(file.relative_to(ROOT)) for file in files if pattern.search(file.read_text())]


# ---------------------------------------------------------------------- returns over seeds


def _stored_returns() -> list[dict[str, Any]]:
    files = sorted((ROOT / "docs/returns").glob("*.json"))
    return [json.loads(file.read_text()) for file in files]


def _returns(name: str, policy: type, stored: list[dict[str, Any]]) -> list[str]:
    """A curve for each environment, and a table; runs of another name of the class count."""
    found = [one for one in stored if POLICY_REGISTRY.get(one["policy"]) is policy]
    # Runs of a reward model, such as GAIL's, are named for it and not for the policy.
    own = [one for one in found if f"_{one['policy']}_" in f"{Path(one['config']).stem}_"]
    lines = ["## Returns over seeds", ""]
    if not found:
        return [*lines, f"No runs of `{name}` have been stored yet.", ""]
    panels: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in own or found:
        panels[one["env"]].append(one)
    lines += ["Interquartile mean of the evaluations over seeds, with its 95 % bootstrap interval."]
    lines += ["", f'<div class="curves">{"".join(map(_panel, panels, panels.values()))}</div>', ""]
    lines += [
        "| config | environment | goal | seeds that reached it | median of the best returns |"
    ]
    lines += ["|---|---|---|---|---|"]
    for one in own or found:
        runs = one["runs"]
        reached = sum(run["best_return"] >= one["goal"] for run in runs)
        best = median(run["best_return"] for run in runs)
        lines.append(
            f"| `{_short(one)}` | {one['env']} | {one['goal']} | {reached} of {len(runs)} "
            f"| {best:.4g} |"
        )
    return [*lines, "", "[Returns](../returns.md) has the details and the other policies.", ""]


def _short(stored: dict[str, Any]) -> str:
    name = Path(stored["config"]).stem.removesuffix("_config")
    return f"SB3 on {name}" if stored.get("peer") else name


def _panel(env: str, results: list[dict[str, Any]]) -> str:
    """The curves of one environment as an SVG whose text takes the page's colour."""
    # Offline runs take no env steps.
    x_name = "env_step" if any(_last(one, "env_step") for one in results) else "update"
    curves = [_mean_curve(one, x_name) for one in results]
    right = max(x[-1] for x, *_ in curves)
    low = min(min(curve[2]) for curve in curves)
    high = max(max(curve[3]) for curve in curves)
    high, low = max([high, *(one["goal"] for one in results if one["goal"] < 2 * high)]), low
    span = (high - low) or 1.0

    def points(x: Sequence[float], y: Sequence[float]) -> str:
        places = zip(x, y, strict=True)
        return " ".join(
            f"{44 + 286 * a / (right or 1):.1f},{164 - 140 * (b - low) / span:.1f}"
            for a, b in places
        )

    parts, legend = [], []
    for i, (one, (x, mean, lower, upper)) in enumerate(zip(results, curves, strict=True)):
        colour, dash = COLOURS[i % len(COLOURS)], ("", "6 3", "2 2")[i % 3]
        band = points([*x, *x[::-1]], [*lower, *upper[::-1]])
        parts.append(f'<polygon points="{band}" fill="{colour}" opacity="0.2"/>')
        parts.append(
            f'<polyline points="{points(x, mean)}" fill="none" stroke="{colour}" '
            f'stroke-width="2" stroke-dasharray="{dash}"/>'
        )
        if low <= one["goal"] <= high:
            goal = points([0, right], [one["goal"]] * 2)
            parts.append(
                f'<polyline points="{goal}" stroke="currentColor" stroke-dasharray="1 4"/>'
            )
        legend.append(f'<span style="color:{colour}">{_short(one)} ({len(one["runs"])})</span>')
    for value in (low, high):
        y = 164 - 140 * (value - low) / span
        text = f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}"
        parts.append(f'<text x="40" y="{y + 4:.0f}" text-anchor="end">{text}</text>')
    unit = "env steps" if x_name == "env_step" else "updates"
    parts.append('<polyline points="44,20 44,164 330,164" fill="none" stroke="currentColor"/>')
    parts.append(f'<text x="330" y="180" text-anchor="end">{right:,.0f} {unit}</text>')
    parts.append(f'<text x="44" y="12" class="title">{env}</text>')
    title = f"mean return in {env} over {unit}"
    return (
        f'<figure><svg viewBox="0 0 340 186" role="img" aria-label="{title}">{"".join(parts)}</svg>'
        f"<figcaption>{', '.join(legend)}</figcaption></figure>"
    )


def _last(stored: dict[str, Any], x_name: str) -> float:
    return max(run["evaluations"][x_name][-1] for run in stored["runs"])


def _mean_curve(stored: dict[str, Any], x_name: str) -> tuple[list[float], ...]:
    """x, interquartile mean, and the ends of its interval: the code of ``ding plot``."""
    runs = stored["runs"]
    curves = []
    for run in runs:
        evaluations = run["evaluations"]
        curves.append(np.array([evaluations[x_name], evaluations["return"]], float).T)
    converged = [run["status"] == "converged" for run in runs]
    return tuple(values.tolist() for values in averaged(curves, converged))


# ---------------------------------------------------------------------- names, keys, commands


def _api_page(topic: str) -> str:
    package, inside = TOPICS[topic]
    module = importlib.import_module(package)
    about = importlib.import_module(inside) if inside else module
    # Guides and keys come first in a search: these pages hold the source, with every word.
    lines = ["---", "search: {boost: 0.3}", "---", ""]
    lines += [f"# {inside or package}", "", inspect.getdoc(about) or "", ""]
    others = []
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        home = getattr(found, "__module__", "")
        is_documented = inspect.isclass(found) or inspect.isfunction(found)
        if is_documented and home.startswith("ding."):
            if home.startswith(inside):
                lines += [f"::: {home}.{found.__qualname__}", ""]
        elif not inside:
            others.append(f"`{name}`")
    if others:
        lines += ["## Other names", "", ", ".join(others)]
    return "\n".join(lines)


def _keys_page() -> str:
    found = defaults()
    sections: dict[str, list[str]] = defaultdict(list)
    for key in SCHEMA:
        # An old name is found in the row of the new one.
        if key.path.endswith(".cfg_type"):
            continue
        others = ", ".join(f"`{path}`" for path in (*key.twins, *key.old))
        facts = [key.meaning, others and f"Also {others}."]
        facts.append("Not read." if key.silent and not key.values else "")
        facts.append(key.gone and f"No effect: {key.gone}.")
        values = found[key.path]
        row = [
            f'<a id="{key.path}"></a>`{key.path}`',
            " ".join(filter(None, facts)),
            _type_of(key, [value for value, _ in values.values()]),
            _shown_defaults(values),
            _users_of(key.path, values),
        ]
        section = ".".join(key.path.split(".")[:-1][:3])
        sections[section or "The run"].append("| " + " | ".join(row) + " |")
    first = ("The run", "env", "policy")
    order = dict(sorted(sections.items(), key=lambda item: item[0].split(".")[0] not in first))
    lines = [
        *("---", "hide: [toc]", "search: {boost: 10}", "---", ""),
        *("# Config keys", ""),
        "Every key of the main config, by section. Where classes have different defaults, the most",
        "common one is first. A [policy's page](policies.md) lists the keys and defaults of that",
        "policy.",
        "",
        " · ".join(f"[{name}](#{slugify(name, '-')})" for name in order),
    ]
    for name, rows in order.items():
        lines += ["", f"## {name}", "", "| key | meaning | type, range, unit | default | used by |"]
        lines += ["|---|---|---|---|---|", *rows]
    return "\n".join(lines)


def _shown_defaults(values: Defaults) -> str:
    common = sorted(values, key=lambda text: -len(values[text][1]))
    return ", ".join(f"`{text}`" for text in common[:3]) + (", …" if len(common) > 3 else "")


def _users_of(path: str, values: Defaults) -> str:
    """The types whose classes have a key, for keys of a policy and of other components."""
    types = sorted({name for _, names in values.values() for name in names})
    if not path.startswith("policy.") or path.count(".") > 3:
        return ", ".join(types[:6]) + (", …" if len(types) > 6 else "")
    policies = {name for names in GROUPS.values() for name in names.split()}
    missing = sorted(policies - set(types))
    if not types or not missing:
        return "all policies" if types else ""
    if not policies & set(types):
        return ", ".join(types)
    return f"all but {', '.join(missing)}" if len(missing) < 8 else ", ".join(types)


def _type_of(key: Key, values: Sequence[object]) -> str:
    """The type of a key's values with their range and unit, such as ``int, at least 1, steps``."""
    kinds = {type(value) for value in (*values, key.like) if value is not None}
    kinds -= {int} if float in kinds else set()
    kinds = {int} if key.whole else kinds
    names = sorted({"list" if kind is tuple else kind.__name__ for kind in kinds} or {""})
    optional = key.may_be_none or (None in [*values] and bool(kinds))
    name = " or ".join([*filter(None, names), *(["None"] if optional else [])])
    return ", ".join(filter(None, (name, key.values, key.unit)))


def _cli_page() -> str:
    lines = ["# Command line", "", "Each command prints its help with `-h`.", ""]
    for name, command in _commands("ding", cli.main):
        # click keeps a command's help option as the first context names it.
        context = click.Context(command, info_name=name, **cli.main.context_settings)
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        lines += [f"## {name}", "", f"`{usage}`", "", _help(command.help), ""]
        options = [row for option in command.params if (row := _option_row(name, option, context))]
        if options:
            lines += ["| option | meaning |", "|---|---|", *options, ""]
        lines += [_help(command.epilog), ""]
    return "\n".join(lines)


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    for word, inner in sorted(getattr(command, "commands", {}).items()):
        if not inner.hidden:
            yield from _commands(f"{name} {word}", inner)


def _help(text: str | None) -> str:
    """A help text, with the paragraphs that click does not wrap as blocks of code."""
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    blocks = [
        "```text\n" + one.lstrip("\b\n") + "\n```" if one.startswith("\b") else one
        for one in paragraphs
    ]
    return "\n\n".join(blocks)


def _option_row(command: str, option: click.Parameter, context: click.Context) -> str:
    """A table row; choices are listed with the meaning, since code in tables cannot hold ``|``."""
    record = option.get_help_record(context)
    if record is None:
        return ""
    names, meaning = (" ".join(text.split()) for text in record)
    if isinstance(option.type, click.Choice) and option.type.choices[0] not in meaning:
        names = names.partition(" [")[0]
        meaning += " One of " + ", ".join(f"`{choice}`" for choice in option.type.choices) + "."
    # A range such as [x>=1] is not a link.
    meaning = re.sub(r"\[([^]]*)\](?!\()", r"(\1)", meaning).replace("<", "&lt;")
    anchor = f"{command.replace(' ', '-')}-{max(option.opts, key=len).lstrip('-')}"
    return f'| <a id="{anchor}"></a>[`{names}`](#{anchor}) | {meaning} |'
