"""Old checkpoints of every policy, through every door by which one comes in."""

from types import SimpleNamespace

import pytest
import torch
from easydict import EasyDict

from ding.torch_utils import CountVar
from ding.utils import POLICY_REGISTRY, deep_merge_dicts
from ding.worker.learner.learner_hook import LoadCkptHook
from tests.old_checkpoints import OLD, old_state
from tests.policy.attributes import model_of, optimizer_of

VECTOR = {"obs_shape": 4, "action_shape": 2}
HYBRID = {"action_type_shape": 3, "action_args_shape": 2}
TEAM = {
    "agent_num": 2,
    "obs_shape": 6,
    "global_obs_shape": 8,
    "action_shape": 5,
    "hidden_size_list": [32, 32],
}
#: Policy type, and the old network of its checkpoints; what its config says of the network, and
#: of the policy.
CASES = {
    "dqn": ("dqn dueling", VECTOR, {}),
    "mdqn": ("dqn dueling", VECTOR, {}),
    "sql": ("dqn dueling", VECTOR, {}),
    "dqfd": ("dqn dueling", VECTOR, {}),
    "c51": ("c51", VECTOR, {}),
    "qrdqn": ("qrdqn", VECTOR, {}),
    "discrete_cql": ("qrdqn", VECTOR, {}),
    "iqn": ("iqn", VECTOR, {}),
    "fqf": ("fqf", VECTOR, {}),
    "rainbow": ("rainbow", VECTOR, {}),
    "r2d2": ("drqn", VECTOR, {}),
    "r2d3": ("drqn", VECTOR, {}),
    "bdq": ("bdq", {"obs_shape": 4, "num_branches": 2, "action_bins_per_branch": 3}, {}),
    "ppo": ("vac", VECTOR, {"action_space": "discrete"}),
    "ppo_offpolicy": ("vac", VECTOR, {"action_space": "discrete"}),
    "a2c": ("vac", VECTOR, {}),
    "impala": ("vac", VECTOR, {}),
    "ppo_pg": ("pg", VECTOR, {}),
    "pg": ("pg", VECTOR, {}),
    "acer": ("acer", VECTOR, {}),
    "ppg": ("ppg", VECTOR, {}),
    "ppg_offpolicy": ("ppg", VECTOR, {}),
    "ddpg": ("qac regression", {**VECTOR, "twin_critic": False}, {}),
    "sac": ("qac gaussian twin", {**VECTOR, "twin_critic": True}, {}),
    "discrete_sac": ("qac discrete twin", {**VECTOR, "twin_critic": True}, {}),
    "d4pg": ("qac dist", {**VECTOR, "action_space": "regression"}, {}),
    "edac": ("edac", {**VECTOR, "ensemble_num": 3}, {}),
    "bc": ("bc discrete", VECTOR, {}),
    "pdqn": ("pdqn", {"obs_shape": 4, "action_shape": HYBRID}, {}),
    "qmix": (
        "qmix",
        {**TEAM, "agent_num": 3, "obs_shape": 4, "global_obs_shape": 6, "action_shape": 2},
        {},
    ),
    "qtran": ("qtran", {**TEAM, "embedding_size": 32}, {}),
    "wqmix": ("wqmix", TEAM, {}),
}
#: Types whose default widths are not those of the table.
WIDTHS = {
    name: {"actor_head_hidden_size": 64, "critic_head_hidden_size": 64}
    for name in ("ddpg", "sac", "discrete_sac", "d4pg", "edac")
}
EACH = pytest.mark.parametrize("kind", CASES)


def build(kind, **kwargs):
    _, model, overrides = CASES[kind]
    cls = POLICY_REGISTRY.get(kind)
    overrides = {**overrides, "model": {**model, **WIDTHS.get(kind, {})}}
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(overrides))
    torch.manual_seed(7)
    return cls(cfg, **kwargs)


def checkpoint(kind):
    shapes = OLD[CASES[kind][0]][1]
    return {"model": old_state(shapes, 0), "target_model": old_state(shapes, 1)}


def parameters(policy):
    return model_of(policy).state_dict()


def reference(kind, key="model"):
    """The network alone, with the old state."""
    model = build(kind, enable_field=["eval"]).eval_mode.get_attribute("model")
    model.load_state_dict(checkpoint(kind)[key])
    return model


def assert_same(states, wanted):
    assert states.keys() == wanted.keys()
    for name, value in wanted.items():
        assert torch.equal(states[name], value), name


@EACH
def test_each_mode_loads_it(kind):
    wanted = reference(kind).state_dict()
    learner = build(kind, enable_field=["learn"])
    learner.learn_mode.load_state_dict(checkpoint(kind))
    assert_same(parameters(learner), wanted)
    saved = learner.learn_mode.state_dict()
    if "target_model" in saved:
        assert_same(saved["target_model"], reference(kind, "target_model").state_dict())
    for mode in ("collect", "eval"):
        policy = build(kind, enable_field=[mode])
        getattr(policy, f"{mode}_mode").load_state_dict(checkpoint(kind))
        assert_same(parameters(policy), wanted)


@EACH
def test_the_hook_loads_it(kind, tmp_path):
    torch.save({**checkpoint(kind), "last_iter": 3, "last_step": 5}, tmp_path / "old.pth.tar")
    policy = build(kind, enable_field=["learn"])
    engine = SimpleNamespace(
        policy=policy.learn_mode,
        last_iter=CountVar(0),
        collector_envstep=0,
        info=lambda text: None,
        instance_name="learner",
    )
    ext_args = {"load_path": str(tmp_path / "old.pth.tar")}
    LoadCkptHook("load", 20, position="before_run", ext_args=ext_args)(engine)
    assert (engine.last_iter.val, engine.collector_envstep) == (3, 5)
    assert_same(parameters(policy), reference(kind).state_dict())


@EACH
def test_own_states_stay_what_they_are(kind):
    policy, again = (build(kind, enable_field=["learn"]) for _ in range(2))
    policy.learn_mode.load_state_dict(checkpoint(kind))
    again.learn_mode.load_state_dict(policy.learn_mode.state_dict())
    assert_same(parameters(again), parameters(policy))


# ---------------------------------------------------------------------- optimisers


def adam(shapes, step):
    moments = {
        i: {"step": step, "exp_avg": torch.full(shape, i + 1.0), "exp_avg_sq": torch.ones(shape)}
        for i, shape in enumerate(shapes)
    }
    group = {"lr": 0.002, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    return {"state": moments, "param_groups": [{**group, "params": list(range(len(shapes)))}]}


@pytest.mark.parametrize(
    "order", [("head.Q", "head.fqf_fc", "encoder"), ("encoder", "head.Q", "head.fqf_fc")]
)
def test_fqf_keeps_the_state_of_both_optimisers(order, caplog):
    state = checkpoint("fqf")
    names = [name for name in state["model"] if "quantiles" not in name and "sigma" not in name]
    names.sort(key=lambda name: [name.startswith(part) for part in order].index(True))
    state["optimizer_quantile_loss"] = adam([state["model"][name].shape for name in names], 70)
    proposals = [name for name in state["model"] if "quantiles" in name]
    square = {
        i: {"step": 70, "square_avg": torch.full(state["model"][name].shape, i + 0.5)}
        for i, name in enumerate(proposals)
    }
    group = {"lr": 2.5e-9, "momentum": 0, "alpha": 0.95, "eps": 1e-5, "centered": False,
             "weight_decay": 0, "params": [0, 1]}  # fmt: skip
    state["optimizer_fraction_loss"] = {"state": square, "param_groups": [group]}
    policy = build("fqf", enable_field=["learn"])
    policy.learn_mode.load_state_dict(state)
    assert not caplog.records
    params = dict(model_of(policy).named_parameters())
    for i, name in enumerate(names):
        moments = optimizer_of(policy).state[params[name]]
        assert moments["step"].item() == 70
        assert (moments["exp_avg"] == i + 1).all()
    for i, name in enumerate(proposals):
        assert (
            policy.learn_mode.get_attribute("fraction_optimizer").state[params[name]]["square_avg"]
            == i + 0.5
        ).all()


def test_edac_keeps_the_state_of_its_optimisers(caplog):
    state = checkpoint("edac")
    for entry, part in (("optimizer_q", "critic."), ("optimizer_policy", "actor.")):
        shapes = [value.shape for name, value in state["model"].items() if name.startswith(part)]
        state[entry] = adam(shapes, 7)
    state["optimizer_alpha"] = adam([torch.Size([1])], 7)
    policy = build("edac", enable_field=["learn"])
    policy.learn_mode.load_state_dict(state)
    assert not caplog.records
    first = model_of(policy).critic.pred[0][0].weight
    assert (policy.learn_mode.get_attribute("optimizer_critic").state[first]["exp_avg"] == 1).all()
