"""What environments normalise by goes with the policy wherever that goes."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.entry import serial_pipeline_onpolicy
from ding.entry.application_entry import collect_demo_data, evaluate
from ding.entry.components import build_components, load_config
from ding.entry.run.state import load_run_state
from ding.envs import DingEnvWrapper, create_env_manager
from ding.policy import DQNPolicy
from ding.utils import read_file, save_file
from ding.utils.errors import CheckpointError
from ding.utils.log_writer import DistributedWriter
from ding.worker import InteractionSerialEvaluator, SampleSerialCollector, create_parallel_collector
from ding.worker.coordinator.run_facts import RunFacts
from tests.entry.runs import save_run_state
from tests.worker.collector.parallel_tasks import MemoryLink, collector_cfg, policy_cfg


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def pendulum(manager="base", env_type="gymnasium", **env):
    """PPO on observations that are distinguishable only when normalised."""
    main = dict(
        exp_name="run",
        env=dict(
            env_id="Pendulum-v1",
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=4,
            max_episode_steps=40,
            act_scale=True,
            stop_value=1e9,
            **(env or {"env_wrapper": "mujoco_default"}),
        ),
        policy=dict(
            action_space="continuous",
            model=dict(obs_shape=3, action_shape=1, encoder_hidden_size_list=[16]),
            learn=dict(batch_size=64, epoch_per_collect=2),
            collect=dict(n_sample=128),
            eval=dict(evaluator=dict(eval_freq=1)),
        ),
    )
    create = dict(env=dict(type=env_type), env_manager=dict(type=manager), policy=dict(type="ppo"))
    return main, create


NORMALISED = {"norm_obs": {"use_norm": True}, "norm_reward": {"use_norm": True}}
BEST = "run/ckpt/ckpt_best.pth.tar"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manager", "env"),
    [
        ("base", {}),
        ("subprocess", {}),
        ("async_subprocess", {}),
        ("gym_vector", {}),
        ("base", NORMALISED),
        ("base", {"env_type": "pendulum", **NORMALISED}),
        ("subprocess", {"env_type": "pendulum", **NORMALISED}),
    ],
)
def test_an_evaluation_of_the_best_policy_gives_what_the_run_did(manager, env):
    serial_pipeline_onpolicy(pendulum(manager, **env), seed=1, max_env_step=400)
    state = read_file(BEST)
    assert set(state["env_statistics"]) == {"ObsNormWrapper", "RewardNormWrapper"}
    found = evaluate(pendulum(manager, **env), seed=1, load_path=BEST)
    assert len(set(found)) == 4
    assert np.mean(found) == pytest.approx(state["eval_result"], rel=1e-6)
    # It does matter.
    state["env_statistics"]["ObsNormWrapper"]["mean"] += 1
    assert evaluate(pendulum(manager, **env), seed=1, state_dict=state) != found


def test_weights_without_them_are_refused():
    serial_pipeline_onpolicy(pendulum(), seed=1, max_env_step=200)
    state = read_file(BEST)
    del state["env_statistics"]
    save_file("old.pth.tar", state)
    for use in (
        lambda: evaluate(pendulum(), seed=1, load_path="old.pth.tar"),
        lambda: collect_demo_data(pendulum(), 1, 8, "demo", state_dict_path="old.pth.tar"),
    ):
        with pytest.raises(CheckpointError, match="env_statistics"):
            use()
    # Environments that do not normalise need none.
    evaluate(pendulum(env_wrapper=[]), seed=1, load_path="old.pth.tar")


@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_a_resumed_run_goes_on_with_them(manager):
    def build():
        cfg = load_config(pendulum(manager), 1)
        return build_components(cfg, DistributedWriter("run/log/serial"))

    parts = build()
    for _ in range(2):
        parts.collector.collect(n_sample=64)
    save_run_state(parts)
    known = parts.policy.learn_mode.state_dict()["env_statistics"]
    resumed = build()
    load_run_state(resumed)
    after = []
    for one in (parts, resumed):
        one.collector.collect(n_sample=64)
        after.append(one.policy.learn_mode.state_dict()["env_statistics"])
        one.close()
    for name, moments in known.items():
        for part in after:
            assert moments["count"] + 64 <= part[name]["count"] <= moments["count"] + 120


def manager_of(env_num):
    def make():
        return DingEnvWrapper(cfg=EasyDict(env_id="CartPole-v1", env_wrapper=["obs_norm"]))

    return create_env_manager(EasyDict(type="base"), [make] * env_num)


def assert_frozen(manager, known):
    """An evaluation uses the collectors' statistics, and adds nothing to them."""
    assert manager.take_statistics()["ObsNormWrapper"]["count"] == 0
    for env in manager.state_dict()["envs"]:
        (statistics,) = env["env"]["wrappers"]
        assert statistics["count"] == known["count"]
        np.testing.assert_array_equal(statistics["mean"], known["mean"])


def test_parts_of_a_script_of_users_share_them_by_the_policy(tmp_path):
    cfg = policy_cfg()
    cfg.model.obs_shape = 4
    policy = DQNPolicy(cfg, enable_field=["learn", "collect", "eval"])
    collector = SampleSerialCollector(
        SampleSerialCollector.default_config(),
        manager_of(3),
        policy.collect_mode,
        exp_name=str(tmp_path),
    )
    collector.collect(n_sample=90, policy_kwargs={"eps": 0.5})
    (known,) = policy.learn_mode.state_dict()["env_statistics"].values()
    assert known["count"] >= 90
    other = DQNPolicy(cfg, enable_field=["eval"])
    other.eval_mode.load_state_dict(policy.learn_mode.state_dict())
    returns = []
    for judged in (policy, other):
        evaluator_cfg = InteractionSerialEvaluator.default_config()
        evaluator_cfg.update(n_episode=2, stop_value=1000)
        envs = manager_of(2)
        envs.seed(4, dynamic_seed=False)
        evaluator = InteractionSerialEvaluator(
            evaluator_cfg, envs, judged.eval_mode, exp_name=str(tmp_path)
        )
        returns.append(evaluator.eval()[1]["eval_episode_return"])
        assert_frozen(envs, known)
        evaluator.close()
    assert returns[0] == returns[1]
    collector.close()


def test_parallel_collectors_bring_news_and_follow_what_is_published():
    env = dict(
        type="gymnasium",
        env_id="CartPole-v1",
        env_wrapper=["obs_norm"],
        collector_env_num=2,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        manager=dict(type="base", episode_num=5),
    )
    policy = policy_cfg()
    policy.model.obs_shape = 4
    facts = RunFacts()
    for name in ("one", "other"):
        link = MemoryLink(name)
        weights = DQNPolicy(policy, enable_field=["eval"]).eval_mode.state_dict()
        link.policies["policy_a"] = {**weights, "iter": 2}
        collector = create_parallel_collector(collector_cfg(env=env, policy=policy))
        collector.attach(link)
        collector.start()
        news = [m["env_statistics"] for m in link.metadata if "env_statistics" in m]
        assert news
        assert [facts.observed(one) for one in news] == [None] * len(news)
        link.parts.close()
    count = facts.env_statistics["ObsNormWrapper"]["count"]
    assert count > 0
    assert "cannot be added up" in facts.observed({"ObsNormWrapper": {"count": 1}})
    again = RunFacts()
    again.load_state_dict(facts.state_dict())
    assert again.env_statistics["ObsNormWrapper"]["count"] == count

    link = MemoryLink()
    link.policies["policy_a"] = {**weights, "iter": 3, "env_statistics": facts.env_statistics}
    collector = create_parallel_collector(collector_cfg(env=env, policy=policy, eval_flag=True))
    collector.attach(link)
    collector.start()
    assert_frozen(collector.env_manager, facts.env_statistics["ObsNormWrapper"])
    link.parts.close()


def test_training_from_weights_without_them_says_so():
    serial_pipeline_onpolicy(pendulum(), seed=1, max_env_step=100)
    state = read_file(BEST)
    del state["env_statistics"]
    save_file("old.pth.tar", state)
    main, create = pendulum()
    main["exp_name"] = "second"
    main["policy"]["learn"]["learner"] = dict(hook=dict(load_ckpt_before_run="old.pth.tar"))
    serial_pipeline_onpolicy((main, create), seed=1, max_env_step=100)
    with open("second/run.json") as file:
        assert "env_statistics" in file.read()
