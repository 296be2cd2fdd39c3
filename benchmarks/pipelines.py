"""Work that users do: env steps per second of whole pipelines while they train, against peers.

    python benchmarks/pipelines.py [dqn_lander ppo_cheetah ...] [--rounds N] [--seconds S]

All sides have equal networks and hyperparameters (``_tasks.py``), one thread, and the vector
environment that they recommend. This project's side is its pipeline as ``ding train`` runs it, with
its log, its checks and the state that it saves; SB3's is ``learn``. Rows whose environments or
peers are not installed are left out: ``pip install '.[box2d,mujoco,atari,envpool]'``.
"""

import os
import tempfile
from functools import partial
from importlib.util import find_spec

import _pipeline_peers as peers
from _peers import peer_python
from _tasks import (
    CLIP,
    ENTROPY,
    EPS,
    FRAMES,
    GAE_LAMBDA,
    GAMMA,
    MAX_NORM,
    NOISE,
    RATES,
    TARGET_FREQ,
    TASKS,
    TAU,
    VALUE,
    Task,
)
from _timing import Figure, Turns, Work, command_line, compare, in_turns

#: The peers of each row, with the least ratio to them that is wanted.
GOALS: dict[str, dict[str, float]] = {
    "dqn_lander": {"SB3": 1.5, "hand-written": 0.95},
    "dqn_subclass": {"SB3": 1.5, "hand-written": 0.95},
    "ppo_lander": {"SB3": 1.4, "tianshou": 1.4, "hand-written": 0.95},
    "ppo_cheetah": {"SB3": 1.4, "tianshou": 1.4, "hand-written": 0.95},
    "sac_cheetah": {"SB3": 1.2},
    "td3_cheetah": {"SB3": 1.2},
    "dqn_frames": {"SB3": 1.2, "hand-written": 0.95},
    "ppo_frames": {"SB3": 1.2, "hand-written": 0.95},
    "ppo_pool": {"hand-written": 0.95},
    "ppo_pool_frames": {"hand-written": 0.95},
    "base_env": {"DI-engine": 3.0},
    "base_env_rows": {"DI-engine": 3.0},
}
TITLES = {
    "dqn_lander": "DQN, LunarLander, 8 envs",
    "dqn_subclass": "... a user's subclass of the policy",
    "ppo_lander": "PPO, LunarLander, 8 envs",
    "ppo_cheetah": "PPO, HalfCheetah, 8 envs",
    "sac_cheetah": "SAC, HalfCheetah",
    "td3_cheetah": "TD3, HalfCheetah",
    "dqn_frames": "DQN, Pong 84x84x4, 8 envs",
    "ppo_frames": "PPO, Pong 84x84x4, 8 envs",
    "ppo_pool": "PPO, EnvPool's CartPole, 64 envs",
    "ppo_pool_frames": "PPO, EnvPool's Pong 84x84x4, 64 envs",
    "base_env": "collection, a user's BaseEnv over CartPole, 8 envs",
    "base_env_rows": "... and a policy with its own transitions",
}
#: What a row needs in this project's environment.
NEEDS = {"LunarLander": "Box2D", "HalfCheetah": "mujoco", "Frameskip": "ale_py"}


# ---------------------------------------------------------------------- this project


def ding(name: str) -> None:
    """The pipeline of `ding.entry`; a callback counts its env steps."""
    os.chdir(tempfile.mkdtemp())
    import ding as package
    from ding.entry import serial_pipeline, serial_pipeline_onpolicy
    from ding.policy import DQNPolicy
    from ding.utils import POLICY_REGISTRY

    class Count(package.RunCallback):
        turns: Turns | None = None
        steps = 0

        def on_collect(self, event) -> bool:
            going = True
            if self.turns is not None:
                going = self.turns.add(event.env_step - self.steps)
            elif event.train_iter or task.policy == "ppo":
                self.turns = Turns()
            self.steps = event.env_step
            return not going

    task = TASKS[name]
    policy_type = task.policy
    if name == "dqn_subclass":
        policy_type = name
        subclass = type("Subclass", (DQNPolicy,), {})
        POLICY_REGISTRY.register(policy_type, subclass)
    pipeline = serial_pipeline_onpolicy if task.policy == "ppo" else serial_pipeline
    pipeline(ding_config(task, policy_type), seed=0, callbacks=[Count()])


def ding_config(task: Task, policy_type: str) -> tuple[dict, dict]:
    on_policy = task.policy == "ppo"
    main = dict(
        exp_name="run",
        env=dict(
            env_id=task.env_id,
            collector_env_num=task.envs,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=1e9,
        ),
        policy=dict(
            cuda=False,
            model=_network(task),
            learn=dict(batch_size=task.batch),
            collect=dict(n_sample=task.rollout if on_policy else task.envs),
            eval=dict(evaluator=dict(eval_freq=10**9)),
        ),
    )
    policy = main["policy"]
    SETTINGS[task.policy](task, policy, policy["learn"])
    if not on_policy:
        policy["learn"]["update_per_collect"] = task.updates
        policy.setdefault("other", {})["replay_buffer"] = dict(replay_buffer_size=task.capacity)
    kind = "atari" if task.frames else "mujoco" if task.continuous else "gymnasium"
    manager = "env_pool" if task.pooled else "base"
    create = dict(
        env=dict(type=kind), env_manager=dict(type=manager), policy=dict(type=policy_type)
    )
    return main, create


def _network(task: Task) -> dict:
    sizes, first, last = [*task.hidden], task.hidden[0], task.hidden[-1]
    heads = dict(actor_head_hidden_size=last, critic_head_hidden_size=last)
    shapes = dict(obs_shape=[*FRAMES] if task.frames else task.obs, action_shape=task.actions)
    if task.policy == "dqn":
        own = dict(encoder_hidden_size_list=sizes, dueling=False, head_layer_num=0)
    elif task.policy == "ppo":
        kind = dict(action_space="continuous" if task.continuous else "discrete", **heads)
        layers = dict(actor_head_layer_num=1, critic_head_layer_num=1)
        own = dict(share_encoder=False, encoder_hidden_size_list=[first], activation="tanh")
        if task.frames:
            layers = dict(actor_head_layer_num=0, critic_head_layer_num=0)
            own = dict(share_encoder=True, encoder_hidden_size_list=sizes)
        own = {**kind, **layers, **own}
    else:
        drawn = "reparameterization" if task.policy == "sac" else "regression"
        own = dict(action_space=drawn, twin_critic=True, **heads)
    return {**shapes, **own}


def _dqn(task: Task, policy: dict, learn: dict) -> None:
    policy["discount_factor"] = GAMMA
    learn.update(learning_rate=RATES["dqn"], target_update_freq=TARGET_FREQ)
    policy["other"] = dict(eps=dict(type="exp", start=EPS, end=EPS, decay=1000))


def _ppo(task: Task, policy: dict, learn: dict) -> None:
    # As the other sides: advantages once for each collection.
    policy.update(action_space=policy["model"]["action_space"], recompute_adv=False)
    policy["collect"].update(discount_factor=GAMMA, gae_lambda=GAE_LAMBDA)
    learn.update(
        epoch_per_collect=task.epochs,
        learning_rate=RATES["ppo"],
        clip_ratio=CLIP,
        entropy_weight=ENTROPY,
        value_weight=VALUE,
        value_norm=False,
        grad_clip_type="clip_norm",
        grad_clip_value=MAX_NORM,
    )


def _sac(task: Task, policy: dict, learn: dict) -> None:
    rates = ("learning_rate_q", "learning_rate_policy", "learning_rate_alpha")
    learn.update(dict.fromkeys(rates, RATES["sac"]))
    learn.update(target_theta=TAU, discount_factor=GAMMA, auto_alpha=True)
    policy["random_collect_size"] = task.batch


def _td3(task: Task, policy: dict, learn: dict) -> None:
    learn.update(dict.fromkeys(("learning_rate_actor", "learning_rate_critic"), RATES["td3"]))
    learn.update(target_theta=TAU, discount_factor=GAMMA)
    policy["collect"]["noise_sigma"] = NOISE
    policy["random_collect_size"] = task.batch


SETTINGS = {"dqn": _dqn, "ppo": _ppo, "sac": _sac, "td3": _td3}


def ding_base_env(name: str) -> peers.Act:
    """This project's collector with a user's environments, into its buffer."""
    os.chdir(tempfile.mkdtemp())
    from ding.entry.components import build_components, load_config
    from ding.policy import DQNPolicy
    from ding.utils import POLICY_REGISTRY
    from ding.utils.run_log import RunLog

    @POLICY_REGISTRY.register("base_env_rows")
    class Own(DQNPolicy):
        def _process_transition(self, obs, policy_output, timestep) -> dict:
            return super()._process_transition(obs, policy_output, timestep)

    env_class = peers.user_env()
    setting = env_class, [{}] * 8, [{}]
    policy = "dqn" if name == "base_env" else name
    create = dict(env=dict(type="unused"), env_manager=dict(type="base"), policy=dict(type=policy))
    cfg = load_config((peers.user_env_config(), create), 0, setting)
    parts = build_components(cfg, RunLog(cfg.exp_name).writer, setting)

    def act() -> int:
        data = parts.collector.collect(policy_kwargs={"eps": EPS})
        parts.replay_buffer.push(data, cur_collector_envstep=parts.collector.envstep)
        return len(data)

    return act


# ---------------------------------------------------------------------- the table


def _hand_written(name: str) -> peers.Act:
    from _hand_written import build

    return build(name)


def work(side: str, name: str) -> Work:
    """What ``--serve`` does for a side of a row."""
    if name.startswith("base_env"):
        return {"ding": partial(ding_base_env, name), "DI-engine": peers.di_engine}[side]
    sides = {"ding": ding, "hand-written": _hand_written}
    sides |= {"SB3": peers.sb3, "tianshou": peers.tianshou}
    return partial(sides[side], name)


WORKS: dict[str, Work] = {
    f"{side}: {name}": work(side, name)
    for name, goals in GOALS.items()
    for side in ("ding", *goals)
}


def _interpreter(side: str, task: Task | None) -> str | None:
    """The interpreter of a side; ``None`` for this project's own."""
    if side == "DI-engine":
        return peer_python("di-engine")
    # gymnasium's preprocessing of Atari needs OpenCV, which this project does not.
    of_peers = side != "ding" and (side != "hand-written" or (task is not None and task.frames))
    return peer_python("peers") if of_peers else None


def measure(rounds: int, seconds: float, names: tuple[str, ...] = ()) -> list[Figure]:
    figures = []
    for name, goals in GOALS.items():
        task = TASKS.get(name)
        if names and name not in names:
            continue
        env_id = "" if task is None else task.env_id
        needed = [package for part, package in NEEDS.items() if part in env_id]
        needed += ["envpool"] if task is not None and task.pooled else []
        if not all(map(find_spec, needed)):
            continue
        sides = {f"{side}: {name}": _interpreter(side, task) for side in ("ding", *goals)}
        speeds = in_turns(__file__, sides, rounds, seconds)
        speeds = {side.partition(":")[0]: values for side, values in speeds.items()}
        rows = [(TITLES[name], "ding", peer, goal) for peer, goal in goals.items()]
        figures += compare(speeds, rows)
    return figures


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure, GOALS)
