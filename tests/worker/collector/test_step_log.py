import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ding.utils.errors import DataError
from ding.worker.collector.step_log import StepLog

EVERYONE = np.arange(2)


def put(log, *players, env_ids=EVERYONE):
    log.append(env_ids, players)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (np.array([1, 2], np.int8), np.array([300, 4])),
        (np.array([True, False]), np.array([3, 0])),
        (np.array([1, 2]), np.array([0.5, 1.5])),
        (np.array([1, 2], np.float32), np.array([0.1, 1e300])),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_a_column_becomes_as_wide_as_its_values_need(first, later, nested):
    log = StepLog(2)
    for values in (first, later, first):
        put(log, {"obs": {"x": values} if nested else values, "other": np.zeros(2)})
    found = log.columns(0)["obs"]
    found = found["x"] if nested else found
    np.testing.assert_array_equal(found, [*first, *later, *first])


def test_steps_from_before_a_column_came_get_what_stands_for_missing():
    log = StepLog(2)
    put(log, {"a": np.zeros(2)})
    seeds = np.array([7, 8])
    log.add_missing("seed", seeds, -1)
    put(log, {"a": np.ones(2), "seed": seeds})
    assert log.columns(0)["seed"].tolist() == [-1, -1, 7, 8]


def test_columns_that_come_and_go_are_refused():
    log = StepLog(2)
    put(log, {"a": np.zeros(2), "b": np.zeros(2)})
    with pytest.raises(DataError, match="columns a, c came after 2 transitions of a, b"):
        put(log, {"a": np.zeros(2), "c": np.zeros(2)})
    with pytest.raises(DataError, match="columns a came after 2 transitions of a, b"):
        put(log, {"a": np.zeros(2)})
    put(log, {"a": np.ones(2), "b": np.ones(2)})
    assert log.columns(0)["b"].tolist() == [0, 0, 1, 1]


def test_players_have_columns_of_their_own():
    log = StepLog(2, players=2)
    put(log, {"obs": np.array([1, 2])}, {"obs": np.array([3.5, 4.5]), "logit": np.zeros((2, 3))})
    assert [list(log.columns(player)) for player in (0, 1)] == [["obs"], ["obs", "logit"]]
    assert log.columns(1)["obs"].tolist() == [3.5, 4.5]


def test_observations_that_were_given_away_stay_as_they_are():
    log = StepLog(2)
    put(log, {"obs": np.array([1.0, 2.0])})
    log.end(np.array([0]), EVERYONE, [np.array([3.0, 4.0])])
    given_away = log.columns(0)["obs"]
    log.drop_ended(given=[0])
    for _ in range(3):
        put(log, {"obs": np.array([9.0, 9.0])})
    assert given_away.tolist() == [1, 2, 3, 4]
    log.end(np.array([1]), EVERYONE, [np.array([9.0, 8.0])])
    cells, lengths = log.ended()
    obs = log.columns(0)["obs"]
    assert (obs[cells].tolist(), lengths.tolist()) == ([2, 9, 9, 9], [4])
    assert obs[cells + 2].tolist() == [4, 9, 9, 8]


class Reference:
    """The same in lists. An observation is (env, episode, step of the episode)."""

    def __init__(self, env_num):
        self.running = [[] for _ in range(env_num)]
        self.ended = []
        self.obs = [(env, 0, 0) for env in range(env_num)]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), env_num=st.integers(1, 4), steps=st.integers(1, 40))
def test_whoever_acts_and_ends_trajectories_are_whole(data, env_num, steps):
    log, expected = StepLog(env_num), Reference(env_num)
    subsets = st.lists(st.booleans(), min_size=env_num, max_size=env_num).map(np.array)
    everyone = np.ones(env_num, bool)
    for _ in range(steps):
        acts = data.draw(st.one_of(st.just(everyone), subsets))
        if not acts.any():
            continue
        ids = np.flatnonzero(acts)
        shown = np.array(expected.obs)
        log.append(ids, [{"obs": shown[ids], "reward": ids * 1.5}])
        if not acts.all():
            log.note_idle(np.flatnonzero(~acts), [shown[~acts]])
        for i in ids:
            env, episode, at = expected.obs[i]
            expected.obs[i] = (env, episode, at + 1)
            expected.running[i].append(((env, episode, at), expected.obs[i]))
        lost = ids[data.draw(subsets)[ids] & data.draw(subsets)[ids]]
        log.forget(lost)
        for i in lost:
            expected.running[i] = []
        ends = np.setdiff1d(ids[data.draw(subsets)[ids]], lost)
        if len(ends):
            log.end(ends, ids, [np.array(expected.obs)[ids]])
            expected.ended += [expected.running[i] for i in ends]
        for i in [*ends, *lost]:
            expected.running[i] = []
            expected.obs[i] = (i, expected.obs[i][1] + 1, 0)
        if log.has_ended and data.draw(st.booleans()):
            cells, lengths = log.ended()
            obs = log.columns(0)["obs"]
            pairs = zip(obs[cells].tolist(), obs[cells + env_num].tolist())
            steps_of = [step for one in expected.ended for step in one]
            assert [(tuple(a), tuple(b)) for a, b in pairs] == steps_of
            assert lengths.tolist() == [len(one) for one in expected.ended]
            rewards = [before[0] * 1.5 for before, _ in steps_of]
            assert log.columns(0)["reward"][cells].tolist() == rewards
            log.drop_ended(given=[0] if data.draw(st.booleans()) else [])
            expected.ended = []


def test_whoever_stays_away_keeps_nothing():
    log = StepLog(2)
    put(log, {"obs": np.zeros(2)})
    log.end(EVERYONE, EVERYONE, [np.zeros(2)])
    for _ in range(100):
        put(log, {"obs": np.zeros(1)}, env_ids=np.array([0]))
        log.note_idle(np.array([1]), [np.zeros(1)])
        log.end(np.array([0]), np.array([0]), [np.zeros(1)])
        log.drop_ended()
        assert len(log.columns(0)["obs"]) == 0
