import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ding.utils.errors import DataError
from ding.worker.collector.step_log import StepLog

EVERYONE = np.arange(2)


def put(log, *players, env_ids=EVERYONE):
    log.append(env_ids, [{"obs": np.zeros(len(env_ids)), **own} for own in players])


def ended(log, player=0, **kwargs):
    """What there is of all trajectories, ended now or before, one after the other."""
    return log.transitions(player, log.ended(), **kwargs)


def end(log, *finals, env_ids=EVERYONE):
    log.end(env_ids, finals or [np.zeros(len(env_ids))])


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
        put(log, {"a": {"x": values} if nested else values, "other": np.zeros(2)})
    end(log)
    found = ended(log)["a"]
    found = found["x"] if nested else found
    np.testing.assert_array_equal(found.reshape(2, 3).T, [first, later, first])


def test_steps_from_before_a_column_came_get_what_stands_for_missing():
    log = StepLog(2)
    put(log, {"a": np.zeros(2)})
    seeds = np.array([7, 8])
    log.add_missing("seed", seeds, -1)
    put(log, {"a": np.ones(2), "seed": seeds})
    end(log)
    assert ended(log)["seed"].tolist() == [-1, 7, -1, 8]


def test_columns_that_come_and_go_are_refused():
    log = StepLog(2)
    put(log, {"a": np.zeros(2), "b": np.zeros(2)})
    with pytest.raises(DataError, match="columns obs, a, c came after 2 transitions of obs, a, b"):
        put(log, {"a": np.zeros(2), "c": np.zeros(2)})
    with pytest.raises(DataError, match="columns obs, a came after 2 transitions of obs, a, b"):
        put(log, {"a": np.zeros(2)})
    put(log, {"a": np.ones(2), "b": np.ones(2)})
    end(log)
    assert ended(log)["b"].tolist() == [0, 1, 0, 1]


def test_players_have_separate_columns():
    log = StepLog(2, players=2)
    put(log, {"obs": np.array([1, 2])}, {"obs": np.array([3.5, 4.5]), "logit": np.zeros((2, 3))})
    end(log, np.array([5, 6]), np.array([7.5, 8.5]))
    own, other = ended(log, 0), ended(log, 1)
    assert set(own) == {"obs", "next_obs"}
    assert set(other) == {"obs", "next_obs", "logit"}
    assert (other["obs"].tolist(), other["next_obs"].tolist()) == ([3.5, 4.5], [7.5, 8.5])


def test_observations_that_were_given_away_stay_as_they_are():
    log, begun = StepLog(2), np.arange(100.0)
    given_away = []
    for now in begun:
        put(log, {"obs": np.array([now, -now])})
        end(log, np.array([now + 1]), env_ids=EVERYONE[:1])
        found = ended(log, indexed=True)
        given_away.append((found["obs"], found["next_obs"]))
        log.drop_ended()
    for now, pair in zip(begun, given_away):
        assert [column.gathered().tolist() for column in pair] == [[now], [now + 1]]
    end(log, np.array([-100.0]), env_ids=EVERYONE[1:])
    found = ended(log)
    assert found["obs"].tolist() == (-begun).tolist()
    assert found["next_obs"].tolist() == (-begun - 1).tolist()
    assert log.ended().lengths.tolist() == [100]


def test_there_is_room_for_no_more_than_what_runs():
    """One environment plays on and on while the others' episodes are short."""
    log = StepLog(8)
    for _ in range(1000):
        log.append(np.arange(8), [{"obs": np.zeros((8, 100))}])
        log.end(np.arange(1, 8), [np.zeros((7, 100))])
        source = ended(log, indexed=True)["obs"].source
        log.drop_ended()
    assert source.base.nbytes < 8 * 1000 * 100 * 8 * 3 / 4


class Reference:
    """The same in lists. An observation is (env, episode, step of the episode)."""

    def __init__(self, env_num):
        self.running = [[] for _ in range(env_num)]
        self.ended = []
        self.obs = [(env, 0, 0) for env in range(env_num)]


@settings(max_examples=30, deadline=None)
@given(data=st.data(), env_num=st.integers(1, 4), steps=st.integers(1, 40))
def test_trajectories_are_whole_in_any_order_of_steps_and_ends(data, env_num, steps):
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
            log.end(ends, [np.array(expected.obs)[ends]])
            expected.ended += [expected.running[i] for i in ends]
        for i in [*ends, *lost]:
            expected.running[i] = []
            expected.obs[i] = (i, expected.obs[i][1] + 1, 0)
        if data.draw(st.booleans()) and (found := log.ended()) is not None:
            indexed = data.draw(st.booleans())
            columns = log.transitions(0, found, indexed)
            both = [columns[name] for name in ("obs", "next_obs")]
            both = [column.gathered() if indexed else column for column in both]
            pairs = zip(*(column.tolist() for column in both))
            steps_of = [step for one in expected.ended for step in one]
            assert [(tuple(a), tuple(b)) for a, b in pairs] == steps_of
            assert found.lengths.tolist() == [len(one) for one in expected.ended]
            assert found.env_ids.tolist() == [one[0][0][0] for one in expected.ended]
            rewards = [before[0] * 1.5 for before, _ in steps_of]
            assert columns["reward"].tolist() == rewards
            log.drop_ended()
            expected.ended = []


def test_environments_that_stay_away_keep_nothing():
    log = StepLog(2)
    put(log, {})
    end(log)
    for _ in range(500):
        put(log, {}, env_ids=EVERYONE[:1])
        end(log, env_ids=EVERYONE[:1])
        source = ended(log, indexed=True)["obs"].source
        log.drop_ended()
        assert len(source) < 100
