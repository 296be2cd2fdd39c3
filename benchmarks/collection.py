"""Collection: CartPole, ε-greedy DQN 4-128-128-64-2, into a buffer, env steps per second.

With 8 environments stepped one by one, and with 64 in one native vector environment. The network
is untrained on all sides, with the same weights: episodes have some 10 steps.
"""

from _cartpole import (
    EPS,
    NumpyRing,
    di_engine_parts,
    ding_parts,
    hand_written_8_envs,
    hand_written_steps,
    sb3_dqn,
    torch_net,
)
from _peers import peer_python
from _timing import Figure, Work, command_line, compare, in_turns


def ding(manager: str, env_num: int, n_sample: int):
    parts = ding_parts(manager, env_num, n_sample)

    def act() -> int:
        data = parts.collector.collect(n_sample, policy_kwargs={"eps": EPS})
        parts.replay_buffer.push(data, parts.collector.envstep)
        return len(data)

    return act


def hand_written_8():
    return hand_written_steps(hand_written_8_envs(), NumpyRing(), torch_net())


def hand_written_64():
    import gymnasium as gym

    envs = gym.make_vec("CartPole-v1", num_envs=64, vectorization_mode="vector_entry_point")
    return hand_written_steps(envs, NumpyRing(), torch_net())


def sb3():
    _, collect = sb3_dqn()
    return lambda: collect(10)


def di_engine():
    collector, buffer, _ = di_engine_parts(80)

    def act() -> int:
        data = collector.collect(policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        return len(data)

    return act


WORKS: dict[str, Work] = {
    "ding": lambda: ding("base", 8, 80),
    "hand-written": hand_written_8,
    "SB3": sb3,
    "DI-engine": di_engine,
    "ding, native vector env": lambda: ding("gym_vector", 64, 640),
    "hand-written, native vector env": hand_written_64,
}

GOALS = [
    ("collection, 8 envs, env steps", "ding", "hand-written", 1.0),
    ("collection, 8 envs, env steps", "ding", "SB3", 1.0),
    ("collection, 8 envs, env steps", "ding", "DI-engine", 4.0),
    (
        "collection, 64 envs in a native vector env",
        "ding, native vector env",
        "hand-written, native vector env",
        0.8,
    ),
]


def measure(rounds: int, seconds: float) -> list[Figure]:
    pythons = {"SB3": peer_python("peers"), "DI-engine": peer_python("di-engine")}
    names = list(WORKS)
    speeds = in_turns(__file__, {name: pythons.get(name) for name in names[:4]}, rounds, seconds)
    speeds |= in_turns(__file__, dict.fromkeys(names[4:]), rounds, seconds)
    return compare(speeds, GOALS)


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
