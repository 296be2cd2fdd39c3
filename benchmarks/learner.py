"""Learning: sample 64 from the buffer and update, double DQN 4-128-128-64-2, updates per second."""

from _cartpole import (
    BATCH,
    EPS,
    HandWrittenDqn,
    di_engine_parts,
    ding_parts,
    hand_written_8_envs,
    hand_written_steps,
    sb3_dqn,
)
from _peers import peer_python
from _timing import Figure, Work, command_line, compare, in_turns

FILL = 4000


def ding():
    parts = ding_parts("base", 8, 80)
    learner, buffer = parts.learner, parts.replay_buffer
    for _ in range(FILL // 80):
        data = parts.collector.collect(policy_kwargs={"eps": EPS})
        buffer.push(data, parts.collector.envstep)

    def act() -> int:
        learner.train(buffer.sample(BATCH, learner.train_iter), parts.collector.envstep)
        return 1

    return act


def hand_written():
    dqn = HandWrittenDqn()
    step = hand_written_steps(hand_written_8_envs(), dqn.ring, dqn.net)
    for _ in range(FILL // 8):
        step()

    def act() -> int:
        dqn.update()
        return 1

    return act


def sb3():
    model, collect = sb3_dqn()
    collect(FILL // 8)

    def act() -> int:
        model.train(gradient_steps=5, batch_size=BATCH)
        return 5

    return act


def di_engine():
    collector, buffer, learner = di_engine_parts(80)
    for _ in range(FILL // 80):
        buffer.push(collector.collect(policy_kwargs={"eps": EPS}), collector.envstep)

    def act() -> int:
        learner.train(buffer.sample(BATCH, learner.train_iter), collector.envstep)
        return 1

    return act


WORKS: dict[str, Work] = {
    "ding": ding,
    "hand-written": hand_written,
    "SB3": sb3,
    "DI-engine": di_engine,
}

GOALS = [
    ("learner, sample and train", "ding", "hand-written", 0.85),
    ("learner, sample and train", "ding", "SB3", 1.8),
    ("learner, sample and train", "ding", "DI-engine", 3.5),
]


def measure(rounds: int, seconds: float) -> list[Figure]:
    pythons = {"SB3": peer_python("peers"), "DI-engine": peer_python("di-engine")}
    sides = {name: pythons.get(name) for name in WORKS}
    return compare(in_turns(__file__, sides, rounds, seconds), GOALS)


if __name__ == "__main__":
    command_line(__doc__, WORKS, measure)
