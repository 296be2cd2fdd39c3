"""Reward models in serial runs: what they see, and that they are part of what is resumed."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ding.entry
from ding.entry import (
    serial_pipeline,
    serial_pipeline_onpolicy,
    serial_pipeline_reward_model_offpolicy,
    serial_pipeline_reward_model_onpolicy,
)
from ding.entry.components import build_components, load_config
from ding.entry.run.state import load_run_state
from ding.reward_model import BaseRewardModel
from ding.utils import REWARD_MODEL_REGISTRY, read_file
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.log_writer import DistributedWriter
from tests.entry.runs import metrics, save_run_state, walk_config, walk_envs
from tests.entry.test_serial_sqil import RepeatedWalkEnv

MODELS = ["rnd", "icm", "her"]
SETTINGS = {
    "her": dict(achieved=[0, 1], goal=[1, 2]),
    "icm": dict(hidden_size_list=[8, 8], update_per_collect=3, batch_size=8),
    "rnd": dict(hidden_size_list=[8, 8], update_per_collect=3, batch_size=8),
}


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@REWARD_MODEL_REGISTRY.register("constant", force_overwrite=True)
class ConstantRewardModel(BaseRewardModel):
    """Every reward is 3; what it was called with is kept."""

    config = dict(type="constant", size=3.0)
    drawn_batches: list = []
    trained_at: list = []

    def collected(self, transitions, lengths):
        assert sum(lengths) == len(transitions["reward"])
        size = np.full_like(transitions["reward"], self._cfg.size)
        return {**transitions, "reward": size}, lengths

    def train(self, train_iter, envstep):
        self.trained_at.append(envstep)

    def drawn(self, batch):
        self.drawn_batches.append(batch)
        return batch


@pytest.fixture
def constant(monkeypatch):
    monkeypatch.setattr(ConstantRewardModel, "drawn_batches", [])
    monkeypatch.setattr(ConstantRewardModel, "trained_at", [])
    return ConstantRewardModel


def config(policy="dqn", **reward_model):
    found = walk_config(policy=policy, reward_model=reward_model)
    if reward_model["type"] == "her":
        found[0].policy.collect = dict(n_episode=1, collector=dict(get_train_sample=True))
    return found


def build(policy="dqn", **reward_model):
    cfg = load_config(config(policy, **reward_model), 0, walk_envs())
    mode = "serial_reward_model_onpolicy" if policy == "ppo" else "serial_reward_model"
    return build_components(cfg, DistributedWriter("run/log/serial"), walk_envs(), mode=mode)


def rewards_of(samples):
    return torch.stack([torch.as_tensor(row["reward"]) for row in samples])


@pytest.mark.parametrize("transform", [False, True])  # rows
def test_returns_over_several_steps_are_of_the_new_rewards(constant, transform):
    changed = config(type="constant")
    changed[0].policy.collect.collector = dict(transform_obs=transform)
    serial_pipeline_reward_model_offpolicy(changed, 0, walk_envs(), max_env_step=40)
    rewards = rewards_of(constant.drawn_batches[-1])
    assert rewards.shape[1:] == (2,)  # nstep
    assert set(np.asarray(rewards).flatten().tolist()) == {0.0, 3.0}
    assert (rewards[:, 0] == 3).all()
    assert len(constant.trained_at) == 5  # once after each collection


def test_advantages_are_of_the_new_rewards(constant):
    parts = build("ppo", type="constant", size=0.0)
    data = parts.collector.collect(n_sample=20, policy_kwargs={})
    parts.close()
    columns = data.columns
    assert (columns["reward"] == 0).all()
    # With γλ-weighted sums of nothing but values, which a fresh critic has near 0.
    assert columns["adv"].abs().max() < 1


def test_a_serial_run_uses_the_reward_model_of_its_config(constant):
    serial_pipeline(config(type="constant"), 0, walk_envs(), max_env_step=16)
    assert len(constant.trained_at) == 2
    serial_pipeline_onpolicy(config("ppo", type="constant"), 0, walk_envs(), max_env_step=64)
    assert len(constant.trained_at) == 3


@pytest.mark.parametrize(
    ("policy", "type_"), [("dqn", type_) for type_ in MODELS] + [("ppo", "rnd"), ("ppo", "icm")]
)
def test_is_trained_and_logged(policy, type_):
    pipelines = {
        "dqn": serial_pipeline_reward_model_offpolicy,
        "ppo": serial_pipeline_reward_model_onpolicy,
    }
    pipelines[policy](
        config(policy, type=type_, **SETTINGS[type_]), 0, walk_envs(), max_env_step=130
    )
    tag = "reward_model_iter/" + ("relabelled_success" if type_ == "her" else "loss")
    logged = [row[tag] for row in metrics() if tag in row]
    assert logged
    assert np.isfinite(logged).all()


def episode(seed, length=10):
    rng = np.random.default_rng(seed)
    obs = rng.random((length + 1, 3), np.float32)
    return {
        "obs": obs[:-1],
        "next_obs": obs[1:],
        "action": rng.integers(0, 2, length),
        "reward": rng.random(length, np.float32),
        "done": np.arange(length) == length - 1,
        "collect_iter": np.zeros(length, np.int64),
    }


def rounds(model, first, last):
    """The rewards of some rounds of collecting and training."""
    rewards = []
    for number in range(first, last):
        transitions, _ = model.collected(episode(number), np.array([10]))
        rewards.append(np.asarray(transitions["reward"]))
        model.train(train_iter=number, envstep=10 * number)
    return rewards


@pytest.mark.parametrize("type_", MODELS)
def test_resumes_bit_for_bit(type_):
    parts = build(type=type_, **SETTINGS[type_])
    rounds(parts.reward_model, 0, 4)
    save_run_state(parts)
    expected = rounds(parts.reward_model, 4, 8)
    parts.close()
    torch.manual_seed(7)
    np.random.seed(7)
    resumed = build(type=type_, **SETTINGS[type_])
    load_run_state(resumed)
    np.testing.assert_array_equal(rounds(resumed.reward_model, 4, 8), expected)
    resumed.close()
    other = build(type=type_, **SETTINGS[type_])
    assert not np.array_equal(rounds(other.reward_model, 4, 8), expected)
    other.close()


@pytest.mark.parametrize("type_", MODELS)
def test_a_resumed_run_goes_on_in_the_same_way(type_):
    def part(folder, limit, resume=False):
        main, create = config(type=type_, **SETTINGS[type_])
        main.exp_name = folder
        main.policy.learn.update(update_per_collect=2, resume_training=resume)
        if type_ != "her":  # it collects whole episodes
            main.policy.collect.n_sample = 20  # an episode of each environment
        environments = [RepeatedWalkEnv, [{}, {}], [{}]]
        serial_pipeline_reward_model_offpolicy(
            (main, create), 0, environments, max_train_iter=limit
        )
        name = max(Path(folder, "ckpt").glob("iteration_*"), key=lambda path: path.stat().st_mtime)
        return read_file(str(name))

    one = part("whole", 8)
    first = part("parts", 4)
    two = part("parts", 8, resume=True)
    assert one["last_iter"] == two["last_iter"] == 8
    assert not same(one["model"], first["model"])
    for section in ("model", "reward_model"):
        assert same(one[section], two[section])


def same(one, two):
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    return np.array_equal(np.asarray(one), np.asarray(two))


def test_a_checkpoint_brings_its_reward_model():
    settings = dict(type="rnd", **SETTINGS["rnd"])
    serial_pipeline_reward_model_offpolicy(config(**settings), 0, walk_envs(), max_env_step=80)
    path = "run/ckpt/iteration_20.pth.tar"
    saved = read_file(path)["reward_model"]
    assert saved["networks"]["moments"]["count"] > 1
    other = config(**settings)
    other[0].policy.learn.learner.hook.load_ckpt_before_run = path
    cfg = load_config(other, 1, walk_envs())
    parts = build_components(cfg, DistributedWriter("other/log/serial"), walk_envs())
    parts.learner.call_hook("before_run")
    loaded = parts.reward_model.checkpoint()
    parts.close()
    assert loaded["networks"]["moments"]["count"] == saved["networks"]["moments"]["count"]
    weights, before = (one["networks"]["network"] for one in (loaded, saved))
    assert all(torch.equal(weights[name], before[name]) for name in before)
    # Evaluation does not need it.
    evaluated = ding.entry.eval(config(**settings), 0, walk_envs(), load_path=path)
    assert np.isfinite(evaluated)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match="missing section reward_model: its type is one of"):
        serial_pipeline_reward_model_offpolicy(walk_config(), 0, walk_envs())
    with pytest.raises(UnknownTypeError, match="rnd"):
        serial_pipeline_reward_model_offpolicy(config(type="rdn"), 0, walk_envs())
    with pytest.raises(ConfigError, match="learning_rat: did you mean"):
        load_config(config(type="rnd", learning_rat=1.0), 0, walk_envs())
    with pytest.raises(ConfigError, match="'her' adds what the policy has not done"):
        build("ppo", type="her", achieved=[0, 1], goal=[1, 2])
    sampled = walk_config(reward_model=dict(type="her", achieved=[0, 1], goal=[1, 2]))
    with pytest.raises(ConfigError, match=r"needs whole episodes: set policy\.collect\.n_episode"):
        serial_pipeline_reward_model_offpolicy(sampled, 0, walk_envs())
    with pytest.raises(ConfigError, match="learning_rate must be greater than 0"):
        load_config(config(type="rnd", learning_rate=0.0), 0, walk_envs())
