# ruff: noqa: E501, SIM905
"""Do configs with the keys of public ones reach their first update?

    python benchmarks/public_configs.py /path/to/user-config-keys.md      # every policy in it
    python benchmarks/public_configs.py /path/to/user-config-keys.md --only sac,ppo --verbose

The file counts the keys that public configs set, policy by policy. For each policy this makes a
config of the keys that most of them set (``usual``) and configs that add the others one by one
(``rare``), with values of the kind that users give them, in a stand-in environment with the
config's spaces. Each runs in its pipeline until its first update; pipelines for demonstrations and
data sets get a small file. Prints what fails, and keys that are reported as unknown. A policy that
is left out must be named so; it counts as failed.
"""

import argparse
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from easydict import EasyDict
from gymnasium import spaces

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from ding import entry  # noqa: E402
from ding.envs import BaseEnv, BaseEnvTimestep  # noqa: E402
from ding.utils import ENV_REGISTRY, save_file  # noqa: E402

OBS, CHOICES, ACTIONS, AGENTS, STATE = 6, 4, 2, 3, 10

#: Policies by what they act in, and the pipeline of those that are not plainly on- or off-policy.
CONTINUOUS = "bc sac cql td3_bc ddpg td3 iql stevesac d4pg bcq edac sqil_sac mbsac".split()
TEAMS = "qmix madqn collaq qtran wqmix coma happo".split()
OFFLINE = "cql td3_bc iql bcq edac discrete_cql cql_discrete".split()
ON_POLICY = "ppo a2c pg ppg ppo_pg ppo_stdim happo ppo_lstm".split()
#: Later names of policies, as users write them in `create_config`.
NAMES = {"ppo_lstm": "ppo_command"}

#: A value of the kind that users give: by the whole key, or else by its last part.
VALUES: dict[str, Any] = {
    "on_policy": None, "model": dict(), "other": dict(), "eval": dict(), "collect": dict(),
    "model.obs_shape": OBS, "model.action_shape": None, "model.agent_obs_shape": OBS,
    "model.obs_shape.agent_state": OBS, "model.obs_shape.global_state": STATE,
    "model.global_obs_shape": STATE, "model.action_shape.action_type_shape": 3,
    "model.action_shape.action_args_shape": ACTIONS, "action_space": None, "model.agent_num": AGENTS,
    "agent_num": AGENTS, "model.import_names": [], "model.type": None, "model.hidden_size": 16,
    "model.alone_obs_shape": 4, "model.ally_feature_range": [2, 4], "model.self_feature_range": [4, 6],
    "model.activation": None, "model.noise": False, "model.attention": False, "model.strides": [1, 1, 1],
    "collect.noise_sigma": 0.1, "learn.noise": True, "collect.noise": True, "learn.alpha": 0.2,
    "other.replay_buffer.type": "advanced", "other.replay_buffer.sliced": True,
    "other.commander.league": dict(), "other.eps.type": "exp", "collect.noise_sigma.type": "exp",
    "learn.optimizer": "SGD", "learn.grad_clip_type": "clip_norm", "learn.kl_type": "k1",
    "learn.learner.hook.load_ckpt_before_run": "", "other.replay_buffer.multi_buffer": True, "learn.learner.load_path": "",
    "other.her.her_strategy": "future", "eval.evaluator.render.mode": "train_iter",
    "other.replay_buffer.cfg_type": "AdvancedReplayBufferDict", "multi_agent": False,
    "learn.learner.cfg_type": "BaseLearnerDict", "learn.pretrained_model_path": None,
    "learn.tau": 0.7, "learn.wqmix_ow": True, "learn.lmbda": 0.75, "learn.eta": 1.0,
    "collect.n_sample": 64, "collect.n_episode": 4, "learn.batch_size": 16, "nstep": 1,
}  # fmt: skip
LEAVES: dict[str, Any] = dict(
    cuda=False, multi_gpu=False, priority=False, priority_IS_weight=False, noisy_net=False,
    continuous=False, recompute_adv=True, command=False, unroll_len=1, seq_len=8, burnin_step=2,
    learn_unroll_len=6, discount_factor=0.97, gae_lambda=0.95, learning_rate=1e-3, weight_decay=1e-4,
    load_path="./ckpt_best.pth.tar", model_path="model_path_placeholder", loss_type="l1_loss",
    data_path="DATA", data_type="naive", save_path="./save.pkl", state_dict_path="./state.pth.tar",
    expert_data_path="./expert.pkl", bc_model_path="./bc.pth.tar", env_name="Standin-v0",
    env_num=4, collector_env_num=4, expert_random_collect_size=32, random_collect_size=32,
    encoder_hidden_size_list=[16, 16, 16], hidden_size_list=[16], actor_hidden_size_list=[16],
    actor_head_hidden_size=16, critic_head_hidden_size=16, actor_head_layer_num=1,
    critic_head_layer_num=1, head_layer_num=1, embedding_size=8, attention_size=8, action_space=None,
    lstm_type="gru", twin_critic=True, dueling=True, mixer=True, share_encoder=True, res_link=False,
    bound_type=None, sigma_type="conditioned", fixed_sigma_value=0.3, n_atom=11, v_max=10, v_min=-10,
    num_quantiles=8, quantile_embedding_size=8, critic_head_type="categorical", use_lstm=False,
    global_cooperation=True, impala_cnn_encoder=False, num_branches=ACTIONS, init_bias=0.0,
    action_bins_per_branch=3, action_mask=[[1, 0], [0, 1], [0, 0]], multi_pass=False, phi=0.05,
    ensemble_num=3, ensemble_size=2, target_theta=0.005, target_update_freq=100, auto_alpha=True,
    target_update_theta=0.005, actor_update_freq=2, n_sample=64, adv_norm=True, value_norm=True,
    ppo_param_init=True, ignore_done=False, reparameterization=True, value_network=False,
    update_per_collect=2, epoch_per_collect=2, train_epoch=2, eval_freq=100, value_weight=0.5,
    entropy_weight=0.01, clip_ratio=0.2, clip_value=5, grad_clip_value=0.5, grad_norm=0.5,
    betas=(0.9, 0.999), normalize_advantage=True, nstep_return=False, log_space=True, double_q=True,
    lr_decay=False, momentum=0.9, show_accuracy=False, tanh_mask=False, traj_len_inf=True,
    get_train_sample=True, reward_shaping=False, collector_logit=False, trust_region=True, iqn=False,
    with_lagrange=True, with_q_entropy=False, max_use=10, max_reuse=10, max_staleness=1e4, beta=0.4,
    init_memory="zero", gru_bias=2.0, dropout=0.0, value_rescale=True, multi_buffer=True, pho=0.25,
    deepcopy=False, enable_track_used_data=False, min=-0.5, max=0.5, multi_agent=False,
    log_policy=True, num_workers=0, save_ckpt_after_run=True, resume_training=False, start=0.95,
    end=0.1, decay=10000, replay_buffer_size=1000, sample_state=False, encode_shape=16, heads=[1, 1],
    collect_count=32, show_train_test_accuracy=False, ce_label_smooth=False, sample_min_limit_ratio=1,
    epoch_num=100, min_lr_lambda=0.1, render_freq=-1, reset_inplace=True, save_ckpt_after_iter=1000, margin_function=0.8,
)  # fmt: skip
ANY_NUMBER = 1

#: Keys that go together, and those in whose place they are.
GROUPS = {
    "a team": ["model.agent_obs_shape", "model.global_obs_shape", "model.agent_num", "multi_agent"],
    "hybrid actions": ["model.action_shape.action_args_shape", "model.action_shape.action_type_shape"],
    "episodes": ["collect.n_episode", "collect.collector.get_train_sample"],
    "a schedule": ["learn.lr_scheduler.epoch_num", "learn.lr_scheduler.min_lr_lambda"],
    "two buffers": [f"other.replay_buffer.{one}" for one in ("policy.max_use", "value.max_use")],
    "choices": [f"model.{one}" for one in ("encoder_hidden_size_list", "dueling")],
    "warm-up": ["learn.warmup_epoch", "learn.warmup_lr", "learn.lr_decay", "learn.decay_epoch"],
}  # fmt: skip
INSTEAD = {
    "choices": ["continuous", "model.action_space", "model.actor_head_hidden_size", "loss_type"],
    "a team": ["model.obs_shape"],
    "hybrid actions": ["model.action_shape", "action_space"],
    "episodes": ["collect.n_sample", "collect.unroll_len"],
}


class StandIn(BaseEnv):
    """Episodes of 20 steps with random observations of the config's spaces."""

    def __init__(self, cfg: dict) -> None:
        self._cfg = cfg
        self.observation_space, self.action_space = cfg["spaces"]
        self.reward_space = spaces.Box(-1, 1, (1,), np.float32)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self.observation_space.seed(seed)
        self.action_space.seed(seed)

    def reset(self) -> Any:
        self._t = 0
        return self._obs()

    def _obs(self) -> Any:
        found = self.observation_space.sample()
        if isinstance(found, dict):
            found = {**found}
            if "action_mask" in found:
                found["action_mask"] = np.ones_like(found["action_mask"])
        return found

    def step(self, action: Any) -> BaseEnvTimestep:
        self._t += 1
        done, info = self._t == 20, {}
        if done:
            info = {"eval_episode_return": 1.0, "final_eval_reward": 1.0}
        return BaseEnvTimestep(self._obs(), np.array([0.5], np.float32), done, info)

    def random_action(self) -> Any:
        return self.action_space.sample()

    def close(self) -> None:
        pass

    def render(self, mode: str = "rgb_array") -> np.ndarray:
        return np.zeros((8, 8, 3), np.uint8)

    def __repr__(self) -> str:
        return "StandIn"


ENV_REGISTRY.register("stand_in")(StandIn)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("keys", type=Path, help="user-config-keys.md")
    parser.add_argument("--only", help="policies, with commas")
    parser.add_argument("--rare", action="store_true", help="add the rare keys one by one")
    parser.add_argument("--verbose", action="store_true", help="print tracebacks")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else None
    reached = total = 0
    for policy, (count, keys) in counted(args.keys).items():
        if wanted and policy not in wanted:
            continue
        usual = [key for key, times in keys.items() if 2 * times >= count]
        problem = attempt(policy, usual, args.verbose)
        total, reached = total + count, reached + (0 if problem else count)
        print(f"{policy} ({count}): {problem or 'ok'}", flush=True)
        for name, variant in variants(policy, usual, keys) if args.rare and not problem else ():
            if found := attempt(policy, variant, args.verbose):
                print(f"    with {name} ({keys.get(name, '')}): {found}", flush=True)
    print(f"policies of {reached} of {total} configs reach their first update with the usual keys")


def counted(path: Path) -> dict[str, tuple[int, dict[str, int]]]:
    """Policies with the number of their configs, and of those that set each key."""
    text = path.read_text().split("## Per policy")[1].split("## `create_config`")[0]
    found = re.findall(r"- \*\*(\w+)\*\* \((\d+) configs\): (.*)", text)
    return {
        policy: (int(count), {k: int(n) for k, n in re.findall(r"`([^`]+)` (\d+)", keys)})
        for policy, count, keys in found
    }


def variants(policy: str, usual: list[str], keys: dict[str, int]) -> list[tuple[str, list[str]]]:
    """Teams, hybrid actions and episodes, if some configs have them, and each rare key."""
    found, rest = [], {*keys} - {*usual}
    for name, group in GROUPS.items():
        own = {key for key in rest if key in group and (policy == "bc") >= (name == "choices")}
        if own:
            without = [key for key in usual if key not in INSTEAD.get(name, ())]
            found.append((name, [*without, *sorted(own)]))
            rest -= own
    return found + [(key, [*usual, key]) for key in sorted(rest)]


@contextlib.contextmanager
def own_folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def attempt(policy: str, keys: list[str], verbose: bool) -> str:
    """Run until the first update; returns what went wrong, in one line."""
    with own_folder():
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                start(policy, keys)
            end = json.loads(Path("run/run.json").read_text())
            unknown = end.get("unknown_keys")
            if (end["train_iter"] or 0) < 1:
                return "no update"
            return f"unknown keys: {unknown}" if unknown else ""
        except (Exception, SystemExit) as error:
            if verbose:
                traceback.print_exc()
            return f"{type(error).__name__}: {error}"[:300]


def start(policy: str, keys: list[str]) -> None:
    main, own_spaces = config_of(policy, keys)
    create = EasyDict(
        env=dict(type="stand_in", import_names=[]),
        env_manager=dict(type="base"),
        policy=dict(type=NAMES.get(policy, policy)),
    )
    envs = [StandIn, [dict(spaces=own_spaces)] * 4, [dict(spaces=own_spaces)] * 2]
    pipeline(policy)((EasyDict(main), create), seed=0, env_setting=envs, max_train_iter=1)


def pipeline(policy: str) -> Callable[..., Any]:
    if policy in OFFLINE:
        return entry.serial_pipeline_offline
    if policy == "bc":
        return lambda cfg, seed, env_setting, max_train_iter: entry.serial_pipeline_offline(
            cfg, seed, env_setting, max_train_iter=max_train_iter
        )
    if policy in ON_POLICY:
        return entry.serial_pipeline_onpolicy
    return entry.serial_pipeline


def config_of(policy: str, keys: list[str]) -> tuple[dict, tuple[spaces.Space, spaces.Space]]:
    """A main config with these keys of the policy, and the spaces of its environments."""
    is_team = policy in TEAMS or "model.global_obs_shape" in keys
    is_hybrid = "model.action_shape.action_args_shape" in keys or policy == "pdqn"
    is_continuous = policy in CONTINUOUS
    known = dict(VALUES)
    known["model.action_shape"] = ACTIONS if is_continuous else CHOICES
    known["action_space"] = "hybrid" if is_hybrid else "continuous" if is_continuous else "discrete"
    known["model.action_space"] = {
        "sac": "reparameterization", "stevesac": "reparameterization", "mbsac": "reparameterization",
        "cql": "reparameterization", "sqil_sac": "reparameterization", "ppo": "discrete",
        "bc": "regression",
    }.get(policy, "regression" if is_continuous else "discrete")  # fmt: skip
    if is_hybrid:
        known["model.action_space"] = "hybrid"
    known["on_policy"] = policy in ON_POLICY
    known["multi_agent"] = is_team
    if policy == "bcq":
        known["model.actor_head_hidden_size"] = known["model.critic_head_hidden_size"] = [16, 16]
    if policy == "bc":
        known["continuous"] = is_continuous = "model.encoder_hidden_size_list" not in keys
        known["model.action_shape"] = ACTIONS if is_continuous else CHOICES
    if policy in ("acer", "impala"):
        known["unroll_len"] = known["collect.unroll_len"] = 8
    if policy in ("r2d2", "r2d3", "r2d2_gtrxl"):
        known["unroll_len"] = known["collect.unroll_len"] = 8
        known["learn.batch_size"], known["nstep"] = 4, 2
    if policy in TEAMS and policy != "happo":
        known["collect.unroll_len"], known["learn.batch_size"] = 8, 4
    own: dict[str, Any] = {}
    for key in keys:
        value = known[key] if key in known else LEAVES.get(key.rpartition(".")[2], ANY_NUMBER)
        put(own, key, value)
    if {"collect.n_sample", "collect.n_episode"} <= {*keys}:
        del own["collect"]["n_episode"]
    own_spaces = spaces_of(is_team, is_hybrid, is_continuous, policy)
    for section in ("collect", "learn"):
        if own.get(section, {}).get("data_path") == "DATA":
            own[section]["data_path"] = save_data(own_spaces)
    env = dict(
        env_id="StandIn-v0", collector_env_num=4, evaluator_env_num=2, n_evaluator_episode=2,
        stop_value=200, use_act_scale=True, norm_obs=dict(use_norm=False), frame_stack=4,
        norm_reward=dict(use_norm=False), manager=dict(shared_memory=False, reset_timeout=1000),
    )  # fmt: skip
    return dict(exp_name="run", seed=0, env=env, policy=own), own_spaces


def put(into: dict[str, Any], path: str, value: Any) -> None:
    *sections, name = path.split(".")
    for section in sections:
        if not isinstance(into.get(section), dict):
            into[section] = {}
        into = into[section]
    if not isinstance(into.get(name), dict):
        into[name] = value


def spaces_of(
    team: bool, hybrid: bool, continuous: bool, policy: str
) -> tuple[spaces.Space, spaces.Space]:
    def box(*shape: int) -> spaces.Box:
        return spaces.Box(-1.0, 1.0, shape, np.float32)

    if team:
        obs = {
            "agent_state": box(AGENTS, OBS),
            "global_state": box(STATE) if policy != "happo" else box(AGENTS, STATE),
            "action_mask": spaces.Box(0, 1, (AGENTS, CHOICES), np.float32),
        }
        if policy == "collaq":
            obs["agent_alone_state"] = box(AGENTS, 4)
            obs["agent_alone_padding_state"] = box(AGENTS, OBS)
        act = box(AGENTS, ACTIONS) if continuous else spaces.MultiDiscrete([CHOICES] * AGENTS)
        return spaces.Dict(obs), act
    if hybrid:
        args = {"action_type": spaces.Discrete(3), "action_args": box(ACTIONS)}
        return box(OBS), spaces.Dict(args)
    if policy == "bdq":
        return box(OBS), spaces.MultiDiscrete([3] * ACTIONS)
    return box(OBS), box(ACTIONS) if continuous else spaces.Discrete(CHOICES)


def save_data(own: tuple[spaces.Space, spaces.Space]) -> str:
    rows = [
        {
            "obs": own[0].sample(),
            "next_obs": own[0].sample(),
            "action": np.reshape(own[1].sample(), (-1,)),
            "reward": np.array([1.0], np.float32),
            "done": number % 20 == 19,
        }
        for number in range(100)
    ]
    save_file("data.pkl", rows)
    return os.path.abspath("data.pkl")


if __name__ == "__main__":
    main()
