"""What ``pipelines.py`` trains on all sides: tasks, networks and hyperparameters. Imports nothing
that is not in the standard library.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """One row of the table.

    Attributes:
        policy: ``dqn``, ``ppo``, ``sac`` or ``td3``.
        envs: How many environments are stepped together.
        obs, actions: Size of an observation, and number of choices, or of an action's dimensions.
        batch: Rows of a minibatch.
        hidden: Sizes of the layers; of frames those of the convolutions, then of the linear layer.
        updates: Off-policy: updates after each step of all environments.
        rollout: On-policy: steps of all environments together before an update.
        epochs: On-policy: passes over them.
        kind: ``vector``, ``frames`` (Atari), ``pool`` or ``pool frames`` (both by EnvPool).
    """

    policy: str
    env_id: str
    envs: int
    obs: int
    actions: int
    batch: int
    hidden: tuple[int, ...] = (64, 64)
    updates: int = 1
    rollout: int = 2048
    epochs: int = 10
    kind: str = "vector"
    capacity: int = 100_000

    @property
    def continuous(self) -> bool:
        return self.env_id.startswith("HalfCheetah")

    @property
    def frames(self) -> bool:
        return "frames" in self.kind

    @property
    def pooled(self) -> bool:
        return "pool" in self.kind


_NATURE = (32, 64, 64, 512)
_PONG = "PongNoFrameskip-v4"
TASKS = {
    "dqn_lander": Task("dqn", "LunarLander-v3", 8, 8, 4, 64, (128, 128), updates=2),
    "dqn_subclass": Task("dqn", "LunarLander-v3", 8, 8, 4, 64, (128, 128), updates=2),
    "ppo_lander": Task("ppo", "LunarLander-v3", 8, 8, 4, 64),
    "ppo_cheetah": Task("ppo", "HalfCheetah-v5", 8, 17, 6, 64),
    "sac_cheetah": Task("sac", "HalfCheetah-v5", 1, 17, 6, 256, (256, 256)),
    "td3_cheetah": Task("td3", "HalfCheetah-v5", 1, 17, 6, 256, (256, 256)),
    "dqn_frames": Task(
        *("dqn", _PONG, 8, 0, 6, 32, _NATURE), updates=2, kind="frames", capacity=10_000
    ),
    "ppo_frames": Task("ppo", _PONG, 8, 0, 6, 256, _NATURE, rollout=1024, epochs=4, kind="frames"),
    "ppo_pool": Task("ppo", "CartPole-v1", 64, 4, 2, 256, epochs=4, kind="pool"),
    "ppo_pool_frames": Task(
        *("ppo", "Pong-v5", 64, 0, 6, 256, _NATURE), rollout=1024, epochs=2, kind="pool frames"
    ),
}
#: Hyperparameters that all tasks share, by policy.
GAMMA, GAE_LAMBDA, CLIP, ENTROPY, VALUE, MAX_NORM = 0.99, 0.95, 0.2, 0.01, 0.5, 0.5
RATES = {"dqn": 1e-3, "ppo": 3e-4, "sac": 3e-4, "td3": 3e-4}
EPS, TARGET_FREQ, TAU, NOISE = 0.1, 500, 0.005, 0.1
FRAMES = (4, 84, 84)
