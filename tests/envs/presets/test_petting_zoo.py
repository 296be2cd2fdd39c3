"""The type ``petting_zoo``, with a fake of PettingZoo's package, and with the real one."""

import importlib.util
import sys

import numpy as np
import pytest

from ding.envs.petting_zoo import PettingZooEnv
from ding.utils.errors import ActionError, ConfigError, EnvError

AGENTS = 3
SPREAD = """
import numpy as np
from gymnasium import spaces


class parallel_env:
    def __init__(self, N, max_cycles, continuous_actions, **more):
        self.possible_agents = [f"agent_{i}" for i in range(N)]
        self.N, self.limit, self.vectors, self.more = N, max_cycles, continuous_actions, more

    def observation_space(self, agent):
        return spaces.Box(-np.inf, np.inf, (4 + 2 * self.N + 4 * (self.N - 1),), np.float32)

    def action_space(self, agent):
        return spaces.Box(0, 1, (5,)) if self.vectors else spaces.Discrete(5)

    def reset(self, seed):
        self.rng, self.time = np.random.default_rng(seed), 0
        self.marks = self.rng.normal(size=(self.N, 2))
        return self.look(), {}

    def look(self):
        self.speed, self.place = self.rng.normal(size=(2, self.N, 2))
        self.said = self.rng.normal(size=(self.N, 2))
        out = {}
        for i, agent in enumerate(self.possible_agents):
            others = [j for j in range(self.N) if j != i]
            parts = [self.speed[i], self.place[i], (self.marks - self.place[i]).ravel()]
            parts += [(self.place[others] - self.place[i]).ravel(), self.said[others].ravel()]
            out[agent] = np.concatenate(parts).astype(np.float32)
        return out

    def step(self, actions):
        self.time += 1
        if self.vectors:
            self.marks += actions["agent_0"].sum()
        each = dict.fromkeys(self.possible_agents, False)
        ended = dict.fromkeys(self.possible_agents, self.time >= self.limit)
        return self.look(), {a: -1.0 - i for i, a in enumerate(actions)}, each, ended, {}

    def close(self):
        pass
"""
REAL = importlib.util.find_spec("mpe2") is not None


@pytest.fixture(
    params=["fake", pytest.param("real", marks=pytest.mark.skipif(not REAL, reason="needs mpe2"))]
)
def package(request, monkeypatch, tmp_path):
    if request.param == "real":
        yield
        return
    folder = tmp_path / "mpe2"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "simple_spread_v3.py").write_text(SPREAD)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpe2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "mpe2"]:
        sys.modules.pop(name)


def made(**cfg):
    env = PettingZooEnv(
        {"env_id": "simple_spread_v2", "n_agent": AGENTS, "n_landmark": AGENTS, **cfg}
    )
    env.seed(0)
    return env


@pytest.mark.usefixtures("package")
class TestSpread:
    def test_parts_of_an_observation(self):
        env = made()
        obs = env.reset()
        seen = 4 + 2 * AGENTS + 4 * (AGENTS - 1)
        state = 4 * AGENTS + 2 * AGENTS + 2 * AGENTS * (AGENTS - 1)
        shapes = {name: part.shape for name, part in obs.items()}
        assert shapes == {
            "agent_state": (AGENTS, seen),
            "agent_alone_state": (AGENTS, 4 + 2 * AGENTS),
            "agent_alone_padding_state": (AGENTS, seen),
            "global_state": (state,),
            "action_mask": (AGENTS, 5),
        }
        assert env.observation_space.contains(obs)
        assert (obs["agent_alone_padding_state"][:, 4 + 2 * AGENTS :] == 0).all()
        np.testing.assert_array_equal(obs["global_state"][:4], obs["agent_state"][0, :4])
        # The landmarks' places are the same from whichever agent they are seen.
        places = obs["global_state"][4 * AGENTS : 6 * AGENTS].reshape(-1, 2)
        for row in obs["agent_state"]:
            np.testing.assert_allclose(
                row[4 : 4 + 2 * AGENTS].reshape(-1, 2) + row[2:4], places, atol=1e-5
            )

    def test_an_episode(self):
        env = made(max_cycles=4)
        env.reset()
        total = 0.0
        for step in range(4):
            obs, reward, done, info = env.step(env.random_action())
            total += float(reward[0])
            assert done is (step == 3)
        assert reward.shape == (1,)
        assert info["truncated"] is True
        assert info["eval_episode_return"] == pytest.approx(total, rel=1e-5)
        assert env.observation_space.contains(obs)

    def test_seeds(self):
        first, second = (made().reset()["agent_state"] for _ in range(2))
        np.testing.assert_array_equal(first, second)
        env = made()
        assert not np.array_equal(env.reset()["agent_state"], env.reset()["agent_state"])
        other = made()
        other.load_state_dict(env.state_dict())
        np.testing.assert_array_equal(other.reset()["agent_state"], env.reset()["agent_state"])

    def test_vectors_of_actions_are_scaled(self):
        env = made(continuous_actions=True, act_scale=True)
        assert env.action_space.shape == (AGENTS, 5)
        assert env.action_space.low.min() == -1
        obs = env.reset()
        assert "action_mask" not in obs
        plain = made(continuous_actions=True)
        ends = []
        # The least but for one direction: where forces are equal in all, versions move or do not.
        for one, least, action in ((env, -1, 0.0), (env, -1, 1.0), (plain, 0, 0.5)):
            one.seed(0)
            one.reset()
            forces = np.full((AGENTS, 5), least, np.float32)
            forces[:, 1] = action
            ends.append(one.step(forces).obs["global_state"])
        np.testing.assert_allclose(ends[0], ends[2])
        assert not np.allclose(ends[0], ends[1])

    def test_observations_of_agents_alone_and_states_of_their_own(self):
        obs = made(agent_obs_only=True).reset()
        assert obs.shape == (AGENTS, 4 + 2 * AGENTS + 4 * (AGENTS - 1))
        plain = made().reset()
        own = made(agent_specific_global_state=True).reset()["global_state"]
        np.testing.assert_array_equal(own[1, : obs.shape[1]], plain["agent_state"][1])
        np.testing.assert_array_equal(own[1, obs.shape[1] :], plain["global_state"])

    def test_what_cannot_be(self):
        with pytest.raises(ConfigError, match="as many landmarks"):
            made(n_landmark=2)
        with pytest.raises(ConfigError, match="simple_spread_v3"):
            made(env_id="simple_spreat_v3")
        with pytest.raises(ActionError, match="one for each of 3 agents"):
            made().step([0, 1])


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpe2", None)
    with pytest.raises(EnvError, match=r'pip install "ding\[pettingzoo\]"'):
        made()
