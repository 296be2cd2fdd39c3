"""Training a decision transformer from a data set."""

import json

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.entry import eval as evaluate, serial_pipeline_dt
from ding.utils import save_file
from ding.utils.errors import DataError
from tests.entry.test_serial_dqfd import CREATE, ENV
from tests.policy.attributes import model_of


def rows(count=60, state=4, **changes):
    obs = np.random.default_rng(0).normal(size=(count + 1, state)).astype(np.float32)
    columns = {"obs": obs[:-1], "next_obs": obs[1:], "action": np.arange(count)[:, None] % 2}
    columns["reward"] = np.ones((count, 1), np.float32)
    columns["done"] = np.arange(count) % 20 == 19
    return list(Columns({**columns, **changes}))


def config(folder, data, **policy):
    path = str(folder.with_suffix(".pkl"))
    save_file(path, data)
    small = dict(
        model=dict(state_dim=4, act_dim=2, n_blocks=1, h_dim=8, context_len=5, n_heads=1),
        learn=dict(batch_size=8, train_epoch=2, **policy.pop("learn", {})),
        collect=dict(data_path=path),
    )
    main = EasyDict(exp_name=str(folder), env=ENV, policy={**small, **policy})
    return main, EasyDict(CREATE, policy=dict(type="dt"))


def test_trains_and_saves_what_it_found_in_the_data(tmp_path):
    serial_pipeline_dt(config(tmp_path / "run", rows()))
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert end["train_iter"] == 16
    assert "unknown_keys" not in end
    saved = str(tmp_path / "run" / "formatted_total_config.py")
    assert "'rtg_target': 20.0" in (tmp_path / "run" / "formatted_total_config.py").read_text()
    checkpoint = str(tmp_path / "run" / "ckpt" / "iteration_16.pth.tar")
    assert evaluate(saved, load_path=checkpoint) > 0


def test_shapes_are_taken_from_the_environment(tmp_path):
    main, create = config(tmp_path / "run", rows())
    del main.policy.model["state_dim"], main.policy.model["act_dim"]
    policy = serial_pipeline_dt((main, create), max_train_iter=1)
    assert policy.cfg.model.state_dim in (4, [4])
    assert policy.cfg.model.act_dim == 2


def test_older_configs_and_n_step_settings(tmp_path):
    """Keys outside the model, and ``nstep`` of the policies that share a config."""
    main, create = config(tmp_path / "run", rows(), nstep=3, batch_size=16, context_len=4)
    main.policy.update(
        env_name="CartPole-v1", max_eval_ep_len=1000, num_eval_ep=10, wt_decay=1e-4, n_blocks=2
    )
    main.dataset = dict(
        env_type="cartpole",
        rtg_scale=100,
        context_len=4,
        data_dir_prefix=main.policy.collect.pop("data_path"),
    )
    for section, name in (("learn", "batch_size"), ("model", "context_len"), ("model", "n_blocks")):
        del main.policy[section][name]
    policy = serial_pipeline_dt((main, create), max_train_iter=1)
    assert policy.cfg.rtg_scale == 100
    assert policy.cfg.learn.batch_size == 16
    assert model_of(policy).context_len == 4
    assert len(model_of(policy).blocks) == 2
    assert "unknown_keys" not in json.loads((tmp_path / "run" / "run.json").read_text())


def test_a_resumed_run_goes_on_in_the_same_way(tmp_path):
    whole = serial_pipeline_dt(config(tmp_path / "whole", rows()), max_train_iter=12)
    serial_pipeline_dt(config(tmp_path / "parts", rows()), max_train_iter=5)
    again = config(tmp_path / "parts", rows(), learn=dict(resume_training=True))
    parts = serial_pipeline_dt(again, max_train_iter=12)
    one, two = (model_of(each).state_dict() for each in (whole, parts))
    assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (rows(state=3), r"'obs' of .* has the shape \[3\]"),
        (rows(action=np.full((60, 1), 2)), "'action' of .* is no index of an action"),
        (rows(reward=np.full((60, 1), np.nan, np.float32)), "'reward' of .* has NaN"),
        ([{k: v for k, v in row.items() if k != "next_obs"} for row in rows()], "no 'next_obs'"),
    ],
)
def test_data_of_other_environments_is_refused(tmp_path, data, message):
    with pytest.raises(DataError, match=message):
        serial_pipeline_dt(config(tmp_path / "run", data))


def test_a_list_of_trajectories_is_read(tmp_path):
    """The form in which D4RL's data is prepared for decision transformers."""
    rng = np.random.default_rng(0)
    data = [
        {
            "observations": rng.normal(size=(n, 4)).astype(np.float32),
            "next_observations": rng.normal(size=(n, 4)).astype(np.float32),
            "actions": rng.integers(2, size=n),
            "rewards": np.ones(n, np.float32),
            "terminals": np.arange(n) == n - 1,
        }
        for n in (12, 9)
    ]
    main, create = config(tmp_path / "run", data)
    main.policy.collect.data_type = "d4rl_trajectory"
    policy = serial_pipeline_dt((main, create), max_train_iter=2)
    assert policy.cfg.rtg_target <= 12
