"""The documentation site: its menu and its generated pages."""

import re

import pytest

from ding.utils import POLICY_REGISTRY
from ding.worker.message_graph import GRAPH
from tests.docs.fences import ROOT

CONFIG = (ROOT / "mkdocs.yml").read_text()


def test_every_page_is_in_the_menu():
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    menu = set(re.findall(r"- (\w+\.md)$", CONFIG, re.M))
    made = {"policies.md", "cli.md", "benchmarks.md", "contributing.md", "changelog.md"}
    made.add("config_keys.md")
    assert menu - made == pages


def test_the_picture_shows_what_the_message_graph_says():
    picture = (ROOT / "docs/message_graph.svg").read_text()
    words = set(re.findall(r">\s*(\w+)\s*<", picture))
    assert {name for edge in GRAPH for name in (edge.source, edge.target)} <= words


@pytest.fixture
def hooks():
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    from docs import site_hooks

    return site_hooks


class TestMadePages:
    def test_keys_have_their_meaning(self, hooks):
        page = hooks._keys_page()
        assert "| `env.stop_value` | Mean return of an evaluation" in page
        assert "greater than 0" in page

    def test_the_menu_groups_every_policy_once(self, hooks):
        names = [name for group in hooks.GROUPS.values() for name in group.split()]
        types = {key for key in POLICY_REGISTRY.query() if not key.endswith("_command")}
        documented = {name for name in types if POLICY_REGISTRY.get(name).__module__[:5] == "ding."}
        assert sorted(names) == sorted(documented)

    @pytest.mark.slow
    def test_each_policy_has_a_page_with_its_defaults(self, hooks):
        pages = dict(hooks._policy_pages())
        assert "[dqn](policies/dqn.md)" in pages["policies.md"]
        assert "Mnih et al. 2015" in pages["policies/dqn.md"]
        assert "| `learn.target_update_freq` | " in pages["policies/dqn.md"]
        assert "| `cartpole_dqn` | 195 |" in pages["policies/dqn.md"]

    def test_names_and_commands_have_pages(self, hooks):
        assert "::: ding.worker.learner.base_learner.BaseLearner" in hooks._api_page("learners")
        assert "## ding status" in hooks._cli_page()
        assert "--resume" in hooks._cli_page()
