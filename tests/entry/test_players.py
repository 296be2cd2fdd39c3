"""Who plays in a battle."""

from types import SimpleNamespace

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.data import Columns
from ding.entry.components import players
from ding.entry.serial_entry import players_data
from ding.utils.errors import ConfigError
from tests.fakes import StepPolicy

OBS = np.zeros((6, 2), np.float32)
BOX = spaces.Box(np.array([[-1, -1], [2, 3]]), np.array([[1, 1], [4, 5]]), dtype=np.float64)


def battle(space, **evaluator):
    cfg = EasyDict(
        env={"player_num": 3},
        policy={
            "collect": {"collector": {"type": "sample_1v1"}},
            "eval": {"evaluator": {"type": "battle_interaction", **evaluator}},
        },
    )
    return players(cfg, StepPolicy(), SimpleNamespace(action_space=space))


@pytest.mark.parametrize(
    ("space", "own"),
    [
        (spaces.MultiDiscrete([2, 5]), spaces.Discrete(5)),
        (spaces.MultiDiscrete([[2, 2], [5, 6]]), spaces.MultiDiscrete([5, 6])),
        (BOX, spaces.Box(BOX.low[1], BOX.high[1], dtype=np.float64)),
        (spaces.Tuple([spaces.Discrete(2), spaces.Discrete(5)]), spaces.Discrete(5)),
        (spaces.Discrete(5), spaces.Discrete(5)),
    ],
)
def test_random_opponents_draw_from_their_own_part_of_the_space(space, own):
    collect, (judged, *others) = battle(space)
    assert len(collect) == 3
    assert len(others) == 2
    assert type(others[0]) is type(judged)
    actions = others[0].batched.forward(OBS)["action"].numpy()
    assert actions.shape == (6, *own.shape)
    assert all(own.contains(action.astype(own.dtype)) for action in actions)


def test_a_policy_may_play_itself():
    _, modes = battle(spaces.MultiDiscrete([2, 2]), opponent="self")
    assert [mode.forward for mode in modes[1:]] == [modes[0].forward] * 2


def test_the_data_of_all_players_are_one_batch():
    own, other = (Columns({"obs": np.full((2, 3), value)}) for value in (1.0, 2.0))
    both = players_data(([own, other], None))
    assert both.is_columnar
    assert both.columns_or_none()["obs"][:, 0].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert players_data(([own, []], None)).is_columnar
    assert players_data(([[], []], None)) == []
    assert players_data(([[["episode"]], [["another"]]], None)) == [["episode"], ["another"]]
    assert players_data(own) is own


def test_there_is_no_such_opponent():
    with pytest.raises(ConfigError, match="'random' or 'self', got 'best'"):
        battle(spaces.MultiDiscrete([2, 2]), opponent="best")
