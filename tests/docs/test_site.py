"""The documentation site: its menu and its generated pages."""

import re
from xml.etree import ElementTree

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


@pytest.fixture(scope="module")
def hooks():
    pytest.importorskip("mkdocs", reason="the extra 'docs' is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        from docs import site_hooks

        yield site_hooks


@pytest.fixture(scope="module")
def pages(hooks):
    return hooks.made_pages()


@pytest.mark.slow
class TestMadePages:
    def test_keys_have_their_meaning(self, pages):
        page = pages["config_keys.md"]
        assert "`env.stop_value` | Mean return of an evaluation" in page
        assert "| int, greater than 0 |" in page
        assert re.search(r"`policy.other.eps.decay` \|.*environment steps.*`10000`.*dqn", page)

    def test_the_menu_groups_every_policy_once(self, hooks):
        names = [name for group in hooks.GROUPS.values() for name in group.split()]
        types = {key for key in POLICY_REGISTRY.query() if not key.endswith("_command")}
        documented = {name for name in types if POLICY_REGISTRY.get(name).__module__[:5] == "ding."}
        assert sorted(names) == sorted(documented)

    def test_each_policy_has_a_page_with_its_defaults(self, pages):
        assert "[dqn](policies/dqn.md)" in pages["policies.md"]
        assert "Mnih et al. 2015" in pages["policies/dqn.md"]
        key = "[`learn.target_update_freq`](../config_keys.md#policy.learn.target_update_freq)"
        assert key in pages["policies/dqn.md"]
        assert "configs/cartpole/cartpole_dqn_config.py" in pages["policies/dqn.md"]
        assert "| `cartpole_dqn` | CartPole-v1 | 195 | 5 of 5 |" in pages["policies/dqn.md"]

    def test_each_policy_shows_its_curve_or_that_there_is_none(self, pages):
        for path, page in pages.items():
            if path.startswith("policies/"):
                assert ("<polyline" in page) != ("have been stored yet" in page), path
            for drawn in re.findall(r"<svg.*?</svg>", page):
                ElementTree.fromstring(drawn)
                places = [float(x) for x in re.findall(r"[ \"](-?[\d.]+),", drawn)]
                assert min(places) >= 0
                assert max(places) <= 340

    def test_keys_link_to_rows_that_exist(self, hooks, pages):
        anchors = set(re.findall(r'<a id="([^"]+)">', pages["config_keys.md"]))
        missing = {key.path for key in hooks.SCHEMA} - anchors
        assert all(path.endswith(".cfg_type") for path in missing)

    def test_names_and_commands_have_pages(self, pages):
        assert "::: ding.worker.learner.base_learner.BaseLearner" in pages["api/learners.md"]
        assert "## ding status" in pages["cli.md"]
        assert "--resume" in pages["cli.md"]

    def test_each_option_has_an_anchor(self, pages):
        page = pages["cli.md"]
        assert '<a id="ding-env-step"></a>[`--env-step' in page
        assert not re.search(r"\[x[<>]", page)  # a range would be read as a link
