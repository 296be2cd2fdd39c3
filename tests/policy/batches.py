"""Every policy of the package, small, with samples to learn from."""

import numpy as np
import torch
from easydict import EasyDict

from ding.data import Columns, tree_map
from ding.policy import get_policy_cls
from ding.utils import deep_merge_dicts, set_pkg_seed

OBS, ACTIONS, AGENTS, STATE = 3, 2, 2, 4
#: Trajectories, the last of which is shorter than a sequence.
LENGTHS = np.array([4, 4, 3])
TEAMS = ("qmix", "wqmix", "qtran", "collaq", "madqn", "coma")
SEQUENCES = ("r2d2", "r2d3", "impala", "acer", *TEAMS)
CONTINUOUS = ("ddpg", "td3", "sac", "d4pg", "cql", "td3_bc", "iql", "bcq", "edac")
#: Those whose ``action_space`` says what their actions are.
SPACED = ("pg", "ppo", "ppo_pg", "ppo_offpolicy", "a2c", "ppg", "ppg_offpolicy", "impala")
#: Policy type, and what is special about a variant of it.
CASES = [
    *[(name, "") for name in (*CONTINUOUS, *TEAMS, *SPACED, "r2d2", "r2d3", "acer", "pdqn")],
    *[(name, "") for name in ("dqn", "c51", "qrdqn", "iqn", "fqf", "rainbow", "dqfd", "mdqn")],
    *[(name, "") for name in ("sql", "sqn", "bdq", "discrete_cql", "discrete_sac", "bc")],
    *[(name, "continuous") for name in (*SPACED, "bc")],
    *[(name, "agents") for name in ("ppo", "ppo_offpolicy", "a2c", "happo", "discrete_sac")],
    ("ppo", "hybrid"),
    ("ddpg", "hybrid"),
]
IDS = ["-".join(filter(None, case)) for case in CASES]


def overrides(name, kind):
    """Config of a policy that is small and, as far as it can be, draws nothing."""
    hybrid = dict(action_type_shape=2, action_args_shape=1)
    # One number per action where it can be: it may come as `[B]` or `[B, 1]`.
    actions = hybrid if kind == "hybrid" or name == "pdqn" else ACTIONS
    model = dict(obs_shape=OBS, action_shape=actions)
    cfg = dict(cuda=False, model=model, learn={}, collect={}, priority=False)
    cfg["priority_IS_weight"] = False
    if (name in CONTINUOUS and kind != "hybrid") or kind == "continuous":
        model["action_shape"] = 1
    if kind in ("continuous", "hybrid") and name != "bc":
        cfg["action_space"] = kind
    if name == "bc":
        cfg["continuous"] = kind == "continuous"
    if name == "bdq":
        model.update(num_branches=1, action_bins_per_branch=2)
        del model["action_shape"]
    if name in ("impala", "acer"):
        cfg["unroll_len"] = cfg["collect"]["unroll_len"] = cfg["learn"]["unroll_len"] = 4
    if name in ("r2d2", "r2d3"):
        cfg.update(burnin_step=0, learn_unroll_len=4, nstep=2)
        model.update(encoder_hidden_size_list=[8, 8])
    if name in TEAMS:
        cfg["collect"]["unroll_len"] = 4
        model.update(agent_num=AGENTS, global_obs_shape=STATE, hidden_size_list=[8, 8])
        if name == "coma":
            model["obs_shape"] = dict(agent_state=OBS, global_state=STATE)
            del model["global_obs_shape"], model["hidden_size_list"]
            model["actor_hidden_size_list"] = [8, 8]
        if name == "qtran":
            model["embedding_size"] = 8
        if name == "collaq":
            model.update(alone_obs_shape=OBS, attention=False)
    if kind == "agents":
        cfg["multi_agent"] = True
        model.update(agent_num=AGENTS, agent_obs_shape=OBS, global_obs_shape=STATE)
        del model["obs_shape"]
    return cfg


def build(name, kind="", **more):
    """A policy; ``more`` goes over its config."""
    cls = get_policy_cls(EasyDict(type=name))
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(overrides(name, kind)))
    torch.manual_seed(0)
    return cls(deep_merge_dicts(cfg, EasyDict(more)))


def observations(name, kind, n, rng):
    def normal(*shape):
        return rng.normal(size=(n, *shape)).astype(np.float32)

    if name not in TEAMS and kind != "agents":
        return normal(OBS)
    obs = dict(agent_state=normal(AGENTS, OBS), global_state=normal(STATE))
    if name in TEAMS:
        obs["action_mask"] = np.ones((n, AGENTS, ACTIONS), np.float32)
    if name == "collaq":
        obs |= dict(agent_alone_state=normal(AGENTS, OBS))
        obs |= dict(agent_alone_padding_state=normal(AGENTS, OBS))
    return obs


def samples(policy, name, kind="", lengths=LENGTHS, seed=0):
    """Columns of tensors of what ``policy`` collected in trajectories of random observations."""
    rng, n = np.random.default_rng(seed), int(np.sum(lengths))
    set_pkg_seed(seed, use_cuda=False)
    obs, next_obs = (observations(name, kind, n, rng) for _ in range(2))
    batched = policy.collect_mode.batched
    eps = {"eps": 0.2} if explores_by_eps(name) else {}
    ids = {"env_ids": list(range(n))} if batched.recurrent else {}
    output = tree_map(np.asarray, batched.forward(obs, **eps, **ids))
    columns = {name: output[name] for name in ("action", *batched.transition_outputs)}
    columns |= dict(obs=obs, next_obs=next_obs)
    columns["reward"] = rng.normal(size=n).astype(np.float32)
    columns["done"] = np.zeros(n, bool)
    columns["done"][np.cumsum(lengths)[:-1] - 1] = True
    made = batched.get_train_columns(columns, np.asarray(lengths))
    made = tree_map(lambda leaf: torch.from_numpy(np.asarray(leaf)), dict(made))
    made["IS"] = torch.linspace(0.5, 1.0, len(made["done"]))
    return made


def collected(policy, obs, reward, lengths, ends=True, next_obs=None):
    """What collectors make of trajectories acted by the policy; rewards may come from actions."""
    batched = policy.collect_mode.batched
    output = tree_map(np.asarray, dict(batched.forward(obs)))
    columns = {name: output[name] for name in ("action", *batched.transition_outputs)}
    done = np.zeros(sum(lengths), bool)
    done[np.cumsum(lengths) - 1] = ends
    columns |= {"obs": obs, "next_obs": obs if next_obs is None else next_obs, "done": done}
    reward = reward(columns["action"]) if callable(reward) else reward
    columns["reward"] = np.asarray(reward, np.float32)
    return Columns(batched.get_train_columns(columns, np.asarray(lengths)))


def explores_by_eps(name):
    """Whether the collect mode takes ``eps``."""
    greedy = ("discrete_sac", "pdqn", "sql", "sqn", "bdq", "mdqn", "dqfd", "discrete_cql")
    values = ("dqn", "c51", "qrdqn", "iqn", "fqf", "rainbow", "r2d2", "r2d3")
    return name in (*greedy, *values, *TEAMS)


def make(cls, network=None, seed=0, **overrides):
    """A policy for three numbers and two actions; ``overrides`` go over the config of its class."""
    model = overrides.pop("model", {})
    if "agent_obs_shape" not in model:
        model = {"obs_shape": 3, "action_shape": 2, **model}
    cfg = deep_merge_dicts(cls.default_config(), EasyDict(overrides, model=model))
    set_pkg_seed(seed, use_cuda=False)
    return cls(cfg, model=network)


def steps(obs, next_obs, action, reward, done, **more):
    """Samples of single steps, whose observations are one number each."""
    columns = {
        name: torch.tensor(part)[:, None]
        for name, part in zip(("obs", "next_obs"), (obs, next_obs))
    }
    columns |= {"action": torch.tensor(action), "reward": torch.tensor(reward)}
    return Columns({**columns, "done": np.array(done), **more})


def rollout(obs, action, adv, **more):
    """Samples of an actor-critic; the values are the observations, of one number each."""
    zeros = torch.zeros(len(obs), 1)
    columns = {
        name: torch.tensor(part)[:, None]
        for name, part in zip(("obs", "action", "adv"), (obs, action, adv))
    }
    columns |= {"next_obs": zeros, "reward": zeros, "value": columns["obs"]}
    return Columns({**columns, "done": np.zeros(len(obs), bool), **more})


def random_steps(n, numbers=None, obs=3, nstep=1, seed=0, **more):
    """Samples of random steps, with actions of some numbers, or of two choices if that is None."""
    rng = np.random.default_rng(seed)
    action = rng.integers(2, size=n) if numbers is None else rng.uniform(-1, 1, (n, numbers))
    columns = {
        "obs": rng.normal(size=(n, obs)),
        "next_obs": rng.normal(size=(n, obs)),
        "action": action,
        "reward": rng.normal(size=(n, nstep)),
    }
    columns = {
        name: torch.from_numpy(part if part.dtype == np.int64 else part.astype(np.float32))
        for name, part in columns.items()
    }
    return Columns({**columns, "done": rng.random(n) < 0.3, **more})
