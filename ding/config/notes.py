"""What a user should know of a config that is no error."""

from dataclasses import dataclass, field
from typing import Any

#: Sections that are kept and without effect when a pipeline runs the config, and why.
IGNORED = {
    "reward_model": "no pipeline of this package learns a reward",
    "world_model": "no pipeline of this package learns a model of the environment",
    "wandb_logger": "trackers=dict(wandb=dict(...)) logs to Weights & Biases",
}


@dataclass
class Notes:
    """What was found while a config was compiled.

    Attributes:
        unknown: Paths of keys that nothing in this package reads, with the nearest path that it
            does read (empty if none is near). They stay in the config.
        unused: Paths of keys that have a meaning, but none in this run, with the reason.
        adapted: Settings that did not fit together, and how they are read; one line each.
    """

    unknown: dict[str, str] = field(default_factory=dict)
    unused: dict[str, str] = field(default_factory=dict)
    adapted: list[str] = field(default_factory=list)

    def say_what_runs_ignore(self) -> None:
        """Tell the sections that scripts read, and no run of this package, by their name."""
        for path in [one for one in self.unknown if one.removeprefix("create_config.") in IGNORED]:
            del self.unknown[path]
            self.unused[path] = IGNORED[path.removeprefix("create_config.")]

    def adapt(self, line: str) -> None:
        if line not in self.adapted:
            self.adapted.append(line)

    @property
    def text(self) -> str:
        """One block for the start of a run; empty if there is nothing to say."""
        lines = []
        if self.unknown:
            lines.append("config: unknown keys, kept for whoever reads them:")
            lines += [
                f"  {path}" + (f" (nearest known key: {near})" if near else "")
                for path, near in self.unknown.items()
            ]
        if self.unused:
            lines.append("config: keys without effect in this run:")
            lines += [f"  {path}: {reason}" for path, reason in self.unused.items()]
        if self.adapted:
            lines.append("config: adapted:")
            lines += [f"  {line}" for line in self.adapted]
        return "\n".join(lines)

    @property
    def facts(self) -> dict[str, Any]:
        """The same for ``run.json``; only what there is."""
        facts = {
            "unknown_keys": self.unknown,
            "unused_keys": self.unused,
            "adapted": self.adapted,
        }
        return {name: value for name, value in facts.items() if value}
