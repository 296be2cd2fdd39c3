"""The modes, their fields, and which API collectors are to use."""

import re

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.envs import BaseEnvTimestep
from ding.policy import Policy, create_policy, get_policy_cls
from ding.policy.base_policy import warn_of_no_gpu
from ding.policy.command_mode_policy_instance import DQNCommandModePolicy
from ding.policy.fit import KINDS
from ding.utils import POLICY_REGISTRY, deep_merge_dicts
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import ConfigError, DataError, UnknownTypeError
from tests.policy.attributes import model_of
from tests.policy.batches import make

OBS = {0: np.zeros(3, np.float32), 2: np.ones(3, np.float32)}


def transitions(policy, n, truncated=False, terminated=True, reward=1.0):
    """One trajectory of ``n`` steps through the row API; obs t is ``[t, t, t]``."""
    mode, rows = policy.collect_mode, []
    for t in range(n):
        obs, next_obs = (np.full(3, t + i, np.float32) for i in range(2))
        kwargs = {} if policy.cfg.on_policy else {"eps": 0.5}
        output = mode.forward({5: obs}, **kwargs)[5]
        last = t == n - 1
        info = {"truncated": last and truncated}
        done = last and (terminated or truncated)
        timestep = BaseEnvTimestep(next_obs, np.array([reward], np.float32), done, info)
        rows.append({**mode.process_transition(obs, output, timestep), "collect_iter": 0})
    return rows


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to use")
def test_a_missing_gpu_is_reported(make_dqn, caplog):
    warn_of_no_gpu.cache_clear()
    assert make_dqn(cuda=True).learn_mode.get_attribute("device") == "cpu"
    assert "torch finds no CUDA device" in caplog.text


def test_info_names_the_policy(make_dqn):
    assert "DQN" in make_dqn().learn_mode.info()


def test_attributes(make_dqn):
    policy = make_dqn(collect={"n_sample": 16}, priority=True)
    get = policy.collect_mode.get_attribute
    expected = dict(batch_size=64, device="cpu", n_sample=16, n_episode=None, unroll_len=1)
    expected |= dict(on_policy=False, priority=True, cfg=policy.cfg)
    assert {name: get(name) for name in expected} == expected
    policy.learn_mode.set_attribute("note", 3)
    assert get("note") == 3
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        get("nonsense")


def test_actions_by_environment(make_dqn):
    policy = make_dqn()
    for output in (policy.collect_mode.forward(OBS, eps=0.0), policy.eval_mode.forward(OBS)):
        assert list(output) == [0, 2]
        assert output[0]["action"].dtype == torch.int64
    assert policy.collect_mode.forward(OBS, 0.0).keys() == OBS.keys()


def test_batched_forward_agrees_with_rows(make_dqn):
    policy = make_dqn()
    batch = np.stack(list(OBS.values()))
    by_row = policy.eval_mode.forward(OBS)
    columns = policy.eval_mode.batched.forward(batch)
    assert columns["action"].tolist() == [int(out["action"]) for out in by_row.values()]


def test_replacing_a_function_turns_the_batched_core_off(make_dqn):
    mode = make_dqn().collect_mode
    assert mode.batched is not None
    assert type(mode)(lambda data: {}, *mode[1:]).batched is None


def test_override_of_the_row_api_turns_the_batched_core_off(make_dqn):
    class Mine(DQNCommandModePolicy):
        def _forward_collect(self, data, **kwargs):
            output = super()._forward_collect(data, **kwargs)
            return {env_id: {**out, "mine": True} for env_id, out in output.items()}

    policy = make_dqn(cls=Mine)
    assert policy.collect_mode.batched is None
    assert policy.eval_mode.batched is not None
    output = policy.collect_mode.forward(OBS, eps=0.1)
    assert all(out["mine"] for out in output.values())
    assert output[0]["action"].shape == (1,)


@pytest.mark.parametrize("name", ["dqn", "ppo", "r2d2"])
def test_no_transitions_make_no_samples(name):
    policy = make(POLICY_REGISTRY.get(name))
    assert len(policy.collect_mode.get_train_sample([])) == 0


@pytest.mark.parametrize("name", ["_process_transition", "_get_train_sample"])
def test_override_of_the_data_path_turns_the_batched_core_off(make_dqn, name):
    Mine = type("Mine", (DQNCommandModePolicy,), {name: lambda self, *args: {}})
    assert make_dqn(cls=Mine).collect_mode.batched is None


def test_patched_instance_turns_the_batched_core_off(make_dqn):
    policy = make_dqn()
    policy._forward_eval = lambda data: {}
    assert policy.eval_mode.batched is None
    assert policy.eval_mode.forward(OBS) == {}


def test_override_of_the_core_serves_both_apis(make_dqn):
    class Mine(DQNCommandModePolicy):
        def _forward_eval_batch(self, obs):
            return {"action": torch.full((len(obs),), 7)}

    mode = make_dqn(cls=Mine).eval_mode
    assert mode.batched.forward(np.zeros((4, 3), np.float32))["action"].tolist() == [7] * 4
    assert mode.forward(OBS)[2]["action"].item() == 7


def test_policy_with_the_row_api_alone():
    class Rows(Policy):
        def _forward_collect(self, data):
            return {env_id: {"action": 1} for env_id in data}

        def _process_transition(self, obs, policy_output, timestep):
            return {"obs": obs}

        def _get_train_sample(self, transitions):
            return transitions

    policy = Rows(Rows.default_config(), model=torch.nn.Linear(1, 1))
    assert policy.collect_mode.batched is None
    assert policy.eval_mode.batched is None
    assert policy.collect_mode.forward(OBS) == {0: {"action": 1}, 2: {"action": 1}}
    with pytest.raises(NotImplementedError, match="Rows cannot learn"):
        policy.learn_mode.forward([])


def test_resets_is_true_if_reset_does_anything(make_dqn):
    class Stateful(DQNCommandModePolicy):
        def _reset_collect(self, data_id=None):
            self.was_reset = data_id

    assert not make_dqn().collect_mode.batched.resets
    assert make_dqn(cls=Stateful).collect_mode.batched.resets


def test_enable_field(make_dqn):
    collector = make_dqn(enable_field=["collect"])
    assert collector.collect_mode.forward(OBS, eps=0.0)
    assert not hasattr(collector, "_optimizer")
    with pytest.raises(ConfigError, match="'fly'"):
        make_dqn(enable_field=["fly"])


def test_create_policy_by_type():
    cfg = get_policy_cls(EasyDict(type="dqn")).default_config()
    cfg = deep_merge_dicts(
        cfg, EasyDict(type="dqn_command", model=dict(obs_shape=3, action_shape=2))
    )
    policy = create_policy(cfg, enable_field=["eval"])
    assert type(policy) is DQNCommandModePolicy
    assert policy.eval_mode.forward(OBS)
    with pytest.raises(UnknownTypeError, match="dqm"):
        create_policy(EasyDict(type="dqm"))


def test_create_policy_does_not_change_its_config():
    cfg = deep_merge_dicts(
        get_policy_cls(EasyDict(type="dqn")).default_config(),
        EasyDict(model=dict(obs_shape=3, action_shape=2)),
    )
    before = EasyDict(cfg)
    create_policy(cfg)
    assert cfg == before
    assert "type" not in cfg.model


def test_model_that_is_no_module(make_dqn):
    with pytest.raises(ConfigError, match=r"torch\.nn\.Module"):
        make_dqn(network=lambda x: x)


def test_training_mode_follows_use(make_dqn):
    policy = make_dqn(model=dict(obs_shape=3, action_shape=2, dropout=0.5))
    assert len({float(policy.eval_mode.forward(OBS)[2]["logit"][0]) for _ in range(5)}) == 1
    assert not model_of(policy).training
    policy.learn_mode.forward(policy.collect_mode.get_train_sample(transitions(policy, 4)))
    assert model_of(policy).training


@pytest.mark.parametrize("nstep", [1, 3])
@pytest.mark.parametrize("ending", ["terminated", "truncated", "cut"])
def test_rows_and_columns_make_the_same_samples(make_dqn, nstep, ending):
    policy = make_dqn(nstep=nstep)
    rows = transitions(policy, 5, ending == "truncated", ending == "terminated")
    by_rows = policy.collect_mode.get_train_sample(rows).columns
    columns = {
        "obs": np.stack([row["obs"] for row in rows]),
        "next_obs": np.stack([row["next_obs"] for row in rows]),
        "action": np.array([int(row["action"]) for row in rows]),
        "reward": np.ones(5, np.float32),
        "done": np.array([row["done"] for row in rows]),
        "collect_iter": np.zeros(5, np.int64),
    }
    by_columns = policy.collect_mode.batched.get_train_columns(columns, np.array([5]))
    assert by_rows.keys() == by_columns.keys()
    for name, column in by_columns.items():
        rows_of = np.asarray(by_rows[name]).reshape(np.shape(column))
        np.testing.assert_array_equal(rows_of, column, err_msg=name)


def test_samples_are_columns_to_the_inside_and_rows_to_callers(make_dqn):
    policy = make_dqn()
    samples = policy.collect_mode.get_train_sample(transitions(policy, 3))
    assert isinstance(samples, Columns)
    assert samples.is_columnar
    row = samples[2]
    assert row["done"] is True
    assert row["collect_iter"] == 0
    assert row["obs"].dtype == torch.float32


def test_unrolled_samples(make_dqn):
    policy = make_dqn(collect={"unroll_len": 2})
    assert policy.collect_mode.batched is None
    samples = policy.collect_mode.get_train_sample(transitions(policy, 4))
    assert len(samples) == 2
    assert len(samples[0]["obs"]) == 2
    with pytest.raises(DataError, match=r"unrolls.* set policy\.collect\.unroll_len to 1"):
        policy.learn_mode.forward(samples)


def test_extra_keys_of_a_transition_are_kept(make_dqn):
    policy = make_dqn(nstep=2)
    rows = [{**row, "mine": np.float32(i)} for i, row in enumerate(transitions(policy, 3))]
    rows = [{**row, "prev_state": None} for row in rows]
    samples = policy.collect_mode.get_train_sample(rows)
    assert samples.columns["mine"].tolist() == [0, 1, 2]
    assert "prev_state" not in samples.columns


def test_nan_of_the_network_names_the_policy(make_dqn):
    policy = make_dqn()
    with torch.no_grad():
        next(model_of(policy).parameters()).fill_(float("nan"))
    with pytest.raises(DataError, match=r"DQNCommandModePolicy, collecting: .*NaN"):
        policy.collect_mode.forward(OBS, eps=0.0)
    with pytest.raises(DataError, match=r"DQNCommandModePolicy, evaluating: .*NaN"):
        policy.eval_mode.forward(OBS)


def test_gradients_are_averaged_in_one_message(make_dqn, monkeypatch):
    policy = make_dqn()
    calls = []

    def halve(tensor):
        calls.append(tensor.numel())
        tensor.div_(2)

    monkeypatch.setattr("ding.policy.learning.get_world_size", lambda: 2)
    monkeypatch.setattr("ding.torch_utils.gradients.allreduce", halve)
    parameters = list(model_of(policy).parameters())
    for parameter in parameters[1:]:
        parameter.grad = torch.full_like(parameter, 4.0)
    policy.sync_gradients(model_of(policy))
    assert calls == [sum(parameter.numel() for parameter in parameters) + len(parameters)]
    assert parameters[0].grad is None  # in no process
    assert all(parameter.grad.eq(2).all() for parameter in parameters[1:])
    assert all(parameter.grad.shape == parameter.shape for parameter in parameters[1:])


def test_one_learner_alone_syncs_nothing(make_dqn):
    policy = make_dqn()
    policy.sync_gradients(model_of(policy))
    assert all(parameter.grad is None for parameter in model_of(policy).parameters())


EVERY_TYPE = pytest.mark.parametrize(
    "type_", [name for name in BUILTIN_TYPES["policy"] if not name.endswith("_command")]
)


@EVERY_TYPE
def test_tells_its_paper_and_actions(type_):
    policy = POLICY_REGISTRY.get(type_)
    assert re.fullmatch(r"[A-Z].* \d{4}[ab]?", policy.paper)
    assert policy.actions
    assert set(policy.actions) <= set(KINDS)


@EVERY_TYPE
def test_the_command_mode_alone_needs_no_network(type_):
    cfg = POLICY_REGISTRY.get(type_).default_config()
    cfg.type, cfg.model.action_shape = f"{type_}_command", 2
    policy = create_policy(cfg, model=torch.nn.Identity(), enable_field=["command"])
    setting = policy.command_mode.get_setting_collect({"envstep": 10, "env_step": 10})
    assert setting.keys() <= {"eps"}
