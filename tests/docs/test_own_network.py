"""docs/own_network.md lists what policies ask of their networks as they declare it."""

from pathlib import Path
from typing import Any

import tests
from ding.policy.networks import described
from ding.utils import POLICY_REGISTRY

PAGE = Path(next(iter(tests.__path__))).parent / "docs/own_network.md"


def rows():
    """The page's table: which policies, what they call, and what has to come back."""
    types: dict[str, tuple[list[str], Any, Any]] = {}
    for name in sorted(POLICY_REGISTRY.query()):
        cls = POLICY_REGISTRY.get(name)
        if cls.__module__.startswith("ding.") and not name.endswith("_command"):
            for kind, calls in cls.networks.items():
                several = f" ({kind})" if len(cls.networks) > 1 else ""
                same = types.setdefault(repr((calls, cls.network_parts)), ([], calls, cls))
                same[0].append(f"`{name}`{several}")
    for names, calls, cls in types.values():
        parts = cls.network_parts
        needs = f"; parts {', '.join(f'`{part}`' for part in parts)}" if parts else ""
        for number, call in enumerate(calls):
            who = f"{', '.join(names)}{needs}" if number == 0 else ""
            yield f"| {who} | `{call.shown()}` | `{described(call.gives)}` |"


def test_the_page_lists_what_policies_ask_for():
    page = PAGE.read_text()
    start = page.index("|---|---|---|\n") + len("|---|---|---|\n")
    assert page[start:].split("\n\n")[0] == "\n".join(rows())
