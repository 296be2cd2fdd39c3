"""The same policies on three sides: environments, buffers and updates for ``policies.py``.

Environments give random numbers of MuJoCo's or CartPole's shapes, so that no simulator is needed
and nothing but the update counts. Libraries are imported where they are used, for each side runs
with its own.
"""

import os
import tempfile
from collections.abc import Callable
from functools import partial

import gymnasium
import numpy as np

FILL = 4000
#: Size of an on-policy collection, and what is done with it.
ROLLOUT, EPOCHS, MINIBATCH = 2048, 4, 64
Act = Callable[[], int]

WIDE, NARROW = [256, 256], [128, 128]
#: Policy to hidden sizes, batch size and whether actions are continuous (17 numbers in, 6 out) or
#: discrete (4 in, 2 out).
SETTINGS: dict[str, tuple[list[int], int, bool]] = {
    "sac": (WIDE, 256, True),
    "td3": (WIDE, 256, True),
    "ddpg": (WIDE, 256, True),
    "td3_bc": (WIDE, 256, True),
    "cql": (WIDE, 256, True),
    "discrete_sac": (NARROW, 64, False),
    "dqn": (NARROW, 64, False),
    "c51": (NARROW, 64, False),
    "qrdqn": (NARROW, 64, False),
    "iqn": (NARROW, 64, False),
    "discrete_cql": (NARROW, 64, False),
    "ppo": ([64, 64], MINIBATCH, False),
    "a2c": ([64, 64], ROLLOUT, False),
}
ON_POLICY = ("ppo", "a2c")
#: Atari-shaped observations, and the settings that go with them.
FRAMES, CONVOLUTIONS = (4, 84, 84), [32, 64, 64, 512]
FRAME_BATCH = {"dqn": 32, "ppo": 256}
FRAME_ROLLOUT = 1024


class Noise(gymnasium.Env):
    """Random observations and rewards; an episode has 200 steps."""

    def __init__(self, continuous: bool = False, frames: bool = False) -> None:
        box = partial(gymnasium.spaces.Box, dtype=np.float32)
        self.observation_space = box(-np.inf, np.inf, (17 if continuous else 4,))
        self.action_space = box(-1, 1, (6,)) if continuous else gymnasium.spaces.Discrete(2)
        if frames:
            self.observation_space = gymnasium.spaces.Box(0, 255, FRAMES, np.uint8)
            self.action_space = gymnasium.spaces.Discrete(6)
        self._rng = np.random.default_rng(0)
        self._steps = 0

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return self._observe(), {}

    def step(self, action):
        self._steps += 1
        ended = self._steps == 200
        return self._observe(), float(self._rng.random()), ended, False, {}

    def _observe(self) -> np.ndarray:
        space = self.observation_space
        if space.dtype == np.uint8:
            return self._rng.integers(0, 256, space.shape, np.uint8)
        return self._rng.standard_normal(space.shape, np.float32)


gymnasium.register("Noise-v0", Noise)


# ---------------------------------------------------------------------- this project


def ding(name: str) -> Act:
    """Samples a batch and updates, as the serial pipeline does."""
    return updates(*ding_config(name), name)


def updates(main: dict, create: dict, name: str, frames: bool = False) -> Act:
    """Updates of a policy on what its untrained self has collected."""
    os.chdir(tempfile.mkdtemp())
    from ding.entry.components import build_components, load_config
    from ding.utils.run_log import RunLog

    cfg = load_config((main, create), 0)
    parts = build_components(cfg, RunLog(cfg.exp_name).writer)
    learner, buffer, collector = parts.learner, parts.replay_buffer, parts.collector
    explore = {"eps": 0.5} if name in ("dqn", "c51", "qrdqn", "iqn", "discrete_cql") else {}
    data = collector.collect(policy_kwargs=explore)
    if buffer is not None:
        for _ in range(FILL // (16 if frames else 8)):
            buffer.push(data, collector.envstep)
            data = collector.collect(policy_kwargs=explore)
    batch_size = main["policy"]["learn"]["batch_size"]

    def act() -> int:
        before = learner.train_iter
        batch = data if buffer is None else buffer.sample(batch_size, before)
        learner.train(batch, collector.envstep)
        return learner.train_iter - before

    return act


def ding_config(name: str) -> tuple[dict, dict]:
    hidden, batch_size, continuous = SETTINGS[name]
    model: dict = dict(obs_shape=17 if continuous else 4, action_shape=6 if continuous else 2)
    if continuous or name == "discrete_sac":
        # One layer, and as many more as `..._layer_num`.
        model.update(actor_head_hidden_size=hidden[0], critic_head_hidden_size=hidden[0])
        model.update(twin_critic=name != "ddpg")
        if continuous:
            is_soft = name in ("sac", "cql")
            model["action_space"] = "reparameterization" if is_soft else "regression"
    elif name in ON_POLICY:
        model.update(encoder_hidden_size_list=hidden[:1], share_encoder=False)
        for part in ("actor", "critic"):
            model[f"{part}_head_hidden_size"], model[f"{part}_head_layer_num"] = hidden[1], 1
        model["action_space"] = "discrete"
    else:
        model.update(encoder_hidden_size_list=hidden, head_layer_num=0)
        model.update(dict(dueling=False) if name in ("dqn", "discrete_cql") else {})
    main = dict(
        exp_name="run",
        env=dict(
            env_id="Noise-v0",
            kwargs=dict(continuous=continuous),
            collector_env_num=8,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=1e9,
        ),
        policy=dict(
            cuda=False,
            model=model,
            learn=dict(batch_size=batch_size),
            collect=dict(n_sample=ROLLOUT if name in ON_POLICY else 8),
            eval=dict(evaluator=dict(eval_freq=10**9)),
        ),
    )
    if name == "ppo":
        # As the other sides: advantages once for each collection.
        main["policy"].update(action_space="discrete", recompute_adv=False)
        main["policy"]["learn"]["epoch_per_collect"] = EPOCHS
    create = dict(env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type=name))
    return main, create


def frames_config(name: str) -> tuple[dict, dict]:
    main, create = ding_config(name)
    main["env"]["kwargs"] = dict(frames=True)
    policy = main["policy"]
    policy["model"] = dict(obs_shape=FRAMES, action_shape=6, encoder_hidden_size_list=CONVOLUTIONS)
    policy["learn"]["batch_size"] = FRAME_BATCH[name]
    if name == "ppo":
        policy["model"]["share_encoder"] = True
        for part in ("actor", "critic"):
            policy["model"].update({f"{part}_head_hidden_size": 512, f"{part}_head_layer_num": 0})
        policy["collect"]["n_sample"] = FRAME_ROLLOUT
    else:
        policy["model"].update(dueling=False, head_layer_num=0)
    return main, create


# ---------------------------------------------------------------------- Stable-Baselines3


def sb3(name: str, device: str = "cpu") -> Act:
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env
    from torch import nn

    hidden, batch_size, continuous = SETTINGS[name]
    env = make_vec_env("Noise-v0", 8, env_kwargs={"continuous": continuous})
    kwargs: dict = dict(device=device, policy_kwargs=dict(net_arch=hidden, activation_fn=nn.ReLU))
    if name in ON_POLICY:
        kwargs["n_steps"] = ROLLOUT // 8
        kwargs.update(dict(batch_size=MINIBATCH, n_epochs=EPOCHS) if name == "ppo" else {})
    else:
        kwargs.update(batch_size=batch_size, buffer_size=100_000, train_freq=1)
    model = getattr(stable_baselines3, name.upper())("MlpPolicy", env, **kwargs)
    _, callback = model._setup_learn(10**9)
    if name in ON_POLICY:
        model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)

        def act() -> int:
            model.train()
            return EPOCHS * ROLLOUT // MINIBATCH if name == "ppo" else 1

        return act
    from stable_baselines3.common.type_aliases import TrainFreq, TrainFrequencyUnit

    freq = TrainFreq(FILL // 8, TrainFrequencyUnit.STEP)
    model.collect_rollouts(env, callback, freq, model.replay_buffer, learning_starts=FILL)

    def act() -> int:
        model.train(gradient_steps=8, batch_size=batch_size)
        return 8

    return act


# ---------------------------------------------------------------------- tianshou


def tianshou(name: str) -> Act:
    from tianshou.algorithm.algorithm_base import policy_within_training_step
    from tianshou.data import Batch, ReplayBuffer

    hidden, batch_size, continuous = SETTINGS[name]
    env = Noise(continuous)
    on_policy = name in ON_POLICY
    size = ROLLOUT if on_policy else FILL
    buffer = ReplayBuffer(size)
    obs, _ = env.reset()
    for _ in range(size):
        act = env.action_space.sample()
        next_obs, rew, terminated, truncated, info = env.step(act)
        ends = terminated or truncated
        row = dict(obs=obs, act=act, rew=rew, obs_next=next_obs, info=info)
        buffer.add(Batch(**row, terminated=terminated, truncated=truncated, done=ends))
        obs = env.reset()[0] if ends else next_obs
    algorithm = _tianshou_algorithm(name, env, hidden)
    if name == "cql":
        buffer = algorithm.process_buffer(buffer)

    def update() -> int:
        with policy_within_training_step(algorithm.policy):
            if on_policy:
                algorithm.update(buffer, batch_size, EPOCHS if name == "ppo" else 1)
                return EPOCHS * ROLLOUT // MINIBATCH if name == "ppo" else 1
            algorithm.update(buffer, batch_size)
            return 1

    return update


def _tianshou_algorithm(name: str, env: Noise, hidden: list[int]):
    import torch
    from tianshou import algorithm as tianshou_algorithms
    from tianshou.algorithm.optim import AdamOptimizerFactory
    from tianshou.utils.net import continuous, discrete
    from tianshou.utils.net.common import Net

    state = env.observation_space.shape
    space = {"action_space": env.action_space}
    optim = AdamOptimizerFactory(lr=3e-4)
    net = partial(Net, state_shape=state, hidden_sizes=hidden)
    algorithm = {
        "dqn": "DQN", "c51": "C51", "qrdqn": "QRDQN", "iqn": "IQN", "ddpg": "DDPG", "td3": "TD3",
        "sac": "SAC", "discrete_sac": "DiscreteSAC", "ppo": "PPO", "a2c": "A2C",
        "td3_bc": "TD3BC", "cql": "CQL", "discrete_cql": "DiscreteCQL",
    }[name]  # fmt: skip
    make = getattr(tianshou_algorithms, algorithm)
    modelfree = tianshou_algorithms.modelfree
    if name in ("dqn", "c51", "qrdqn", "iqn", "discrete_cql"):
        policy_class, options = modelfree.dqn.DiscreteQLearningPolicy, {}
        if name == "dqn":
            model = net(action_shape=2)
        elif name == "c51":
            policy_class, options = modelfree.c51.C51Policy, {"num_atoms": 51}
            model = net(action_shape=2, softmax=True, num_atoms=51)
        elif name == "iqn":
            policy_class = modelfree.iqn.IQNPolicy
            options = dict.fromkeys(("sample_size", "online_sample_size", "target_sample_size"), 32)
            model = discrete.ImplicitQuantileNetwork(
                preprocess_net=net(), action_shape=2, num_cosines=128
            )
        else:
            policy_class = modelfree.qrdqn.QRDQNPolicy
            model = net(action_shape=2, num_atoms=32)
        policy = policy_class(model=model, **space, **options)
        quantiles = {} if name in ("dqn", "c51") else {"num_quantiles": 32}
        return make(policy=policy, optim=optim, target_update_freq=100, **quantiles)
    if name in ON_POLICY:
        actor = discrete.DiscreteActor(preprocess_net=net(), action_shape=2, softmax_output=False)
        policy = modelfree.reinforce.DiscreteActorPolicy(
            actor=actor,
            dist_fn=lambda logit: torch.distributions.Categorical(logits=logit),
            **space,
        )
        critic = discrete.DiscreteCritic(preprocess_net=net())
        return make(policy=policy, critic=critic, optim=optim)
    optims = {"policy_optim": optim, "critic_optim": optim}
    if name == "discrete_sac":
        actor = discrete.DiscreteActor(preprocess_net=net(), action_shape=2, softmax_output=False)
        policy = modelfree.discrete_sac.DiscreteSACPolicy(actor=actor, **space)
        critic, other = (discrete.DiscreteCritic(preprocess_net=net(), last_size=2) for _ in "ab")
        alpha = modelfree.sac.AutoAlpha(0.6, 0.0, optim)
        return make(policy=policy, critic=critic, critic2=other, alpha=alpha, **optims)
    joint = partial(net, action_shape=6, concat=True)
    critic, other = (continuous.ContinuousCritic(preprocess_net=joint()) for _ in "ab")
    twins = {} if name == "ddpg" else {"critic2": other}
    if name in ("sac", "cql"):
        actor = continuous.ContinuousActorProbabilistic(
            preprocess_net=net(), action_shape=6, unbounded=True, conditioned_sigma=True
        )
        policy = modelfree.sac.SACPolicy(actor=actor, **space)
        twins["alpha"] = modelfree.sac.AutoAlpha(-6.0, 0.0, optim)
    else:
        actor = continuous.ContinuousActorDeterministic(preprocess_net=net(), action_shape=6)
        policy = modelfree.ddpg.ContinuousDeterministicPolicy(actor=actor, **space)
    return make(policy=policy, critic=critic, **twins, **optims)
