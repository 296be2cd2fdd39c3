"""Collection: CartPole, ε-greedy DQN 4-128-128-64-2, into a buffer, env steps per second.

With 8 environments stepped one by one. The network has the same weights on all sides: untrained
ones, whose episodes have ten steps, so that resets and seeding weigh most, and ones that balance,
whose episodes have hundreds.
"""

from collections.abc import Callable

from _cartpole import (
    EPS,
    NumpyRing,
    di_engine_parts,
    ding_parts,
    hand_written_8_envs,
    hand_written_steps,
    sb3_dqn,
    set_weights,
    torch_net,
)
from _peers import peer_python
from _timing import Figure, Work, command_line, compare, in_turns


def ding(balances: bool) -> Callable[[], int]:
    n_sample = 80
    parts = ding_parts("base", 8, n_sample)
    set_weights(parts.policy._model, balances)

    def act() -> int:
        data = parts.collector.collect(n_sample, policy_kwargs={"eps": EPS})
        parts.replay_buffer.push(data, parts.collector.envstep)
        return len(data)

    return act


def hand_written(balances: bool) -> Callable[[], int]:
    net = torch_net()
    set_weights(net, balances)
    return hand_written_steps(hand_written_8_envs(), NumpyRing(), net)


def sb3(balances: bool) -> Callable[[], int]:
    model, collect = sb3_dqn()
    set_weights(model.q_net, balances)
    return lambda: collect(10)


def di_engine(balances: bool) -> Callable[[], int]:
    collector, buffer, learner = di_engine_parts(80)
    set_weights(learner.policy.get_attribute("model"), balances)

    def act() -> int:
        data = collector.collect(policy_kwargs={"eps": EPS})
        buffer.push(data, cur_collector_envstep=collector.envstep)
        return len(data)

    return act


#: Name of a side to its work, given whether the network balances.
SIDES = {
    "ding": ding,
    "hand-written": hand_written,
    "SB3": sb3,
    "DI-engine": di_engine,
}
NETWORKS = {"untrained": False, "balancing": True}
WORKS: dict[str, Work] = {
    f"{name}, {network}": (lambda side=side, balances=balances: side(balances))
    for network, balances in NETWORKS.items()
    for name, side in SIDES.items()
}

GOALS = [
    ("8 envs", "ding", "hand-written", 1.0),
    ("8 envs", "ding", "SB3", 1.0),
    ("8 envs", "ding", "DI-engine", 4.0),
]


def measure(rounds: int, seconds: float) -> list[Figure]:
    pythons = {"SB3": peer_python("peers"), "DI-engine": peer_python("di-engine")}
    figures: list[Figure] = []
    for network in NETWORKS:
        sides = {f"{name}, {network}": pythons.get(name) for name in SIDES}
        speeds = in_turns(__file__, sides, rounds, seconds)
        goals = [
            (f"collection, {what}, {network}", f"{ours}, {network}", f"{other}, {network}", goal)
            for what, ours, other, goal in GOALS
        ]
        figures += compare(speeds, goals)
    return figures


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
