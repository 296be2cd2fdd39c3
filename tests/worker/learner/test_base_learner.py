"""The learner around a policy that does nothing but answer."""

import os
import threading

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.utils import read_file
from ding.utils.errors import ConfigError, DataError
from ding.worker import BaseLearner, create_learner
from ding.worker.learner import LearnerHook
from ding.worker.learner.monitor import MonitorFeed


class Policy:
    """Returns the given answers one after the other, then repeats the last one."""

    def __init__(self, *answers, names=("cur_lr", "total_loss")):
        self.answers = list(answers) or [{"cur_lr": 0.1, "total_loss": 1.0}]
        self.names, self.seen, self.weight = list(names), [], torch.zeros(2)

    def forward(self, data, **kwargs):
        self.seen.append((data, kwargs))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def monitor_vars(self):
        return self.names

    def info(self):
        return "a policy"

    def get_attribute(self, name):
        return {"batch_size": 2, "device": "cpu"}[name]

    def state_dict(self):
        return {"weight": self.weight}

    def load_state_dict(self, state):
        self.weight = state["weight"]


class Writer:
    def __init__(self):
        self.rows = {}

    def __getattr__(self, name):
        if not name.startswith("add_"):
            raise AttributeError(name)
        return lambda tag, value, step: self.rows.setdefault(tag, []).append((step, value, name))


def make(*answers, hook=None, names=("cur_lr", "total_loss"), writer=None, **cfg):
    config = BaseLearner.default_config()
    config.hook = EasyDict(hook or dict(save_ckpt_after_run=True, log_show_after_iter=2))
    config.update(cfg)
    writer = writer or Writer()
    return BaseLearner(config, Policy(*answers, names=names), tb_logger=writer, exp_name="exp")


def rows(count=3):
    return [
        {"replay_buffer_idx": i, "replay_unique_id": f"buffer_{i}", "x": i} for i in range(count)
    ]


class TestTrain:
    def test_counts_iterations_and_steps(self):
        learner = make()
        learner.train(rows(), 7, policy_kwargs={"a": 1})
        learner.train(rows())
        assert learner.train_iter == learner.last_iter.val == 2
        assert learner.collector_envstep == 7
        assert learner.policy.seen[0] == (rows(), {"a": 1})

    @pytest.mark.parametrize("columnar", [True, False])
    def test_priority_goes_to_priority_info(self, columnar):
        priority = torch.tensor([1.0, 2.0, 3.0])
        data = rows()
        if columnar:
            columns = {"replay_buffer_idx": np.arange(3), "replay_unique_id": np.arange(3) * 10}
            data = Columns({**columns, "x": torch.zeros(3)})
        learner = make({"total_loss": 1.0, "priority": priority}, {"total_loss": 1.0})
        learner.train(data)
        info = learner.priority_info
        assert info["priority"] is priority
        assert list(info["replay_buffer_idx"]) == [0, 1, 2]
        expected = [0, 10, 20] if columnar else ["buffer_0", "buffer_1", "buffer_2"]
        assert list(info["replay_unique_id"]) == expected
        assert learner.learn_info == {
            "learner_step": 1,
            "priority_info": info,
            "learner_done": False,
        }
        learner.train(data)
        assert learner.priority_info == {}  # the old ones are not this batch's

    @pytest.mark.parametrize("columnar", [True, False])
    def test_a_policy_that_changes_the_rows_leaves_their_ids(self, columnar):
        class Popping(Policy):
            def forward(self, data, **kwargs):
                for row in data:
                    row.pop("replay_unique_id")
                return super().forward(data, **kwargs)

        learner = make()
        learner.policy = Popping({"total_loss": 1.0, "priority": torch.ones(3)})
        learner.train(
            Columns.from_rows([{"replay_unique_id": i} for i in range(3)]) if columnar else rows()
        )
        ids = list(learner.priority_info["replay_unique_id"])
        assert ids == ([0, 1, 2] if columnar else ["buffer_0", "buffer_1", "buffer_2"])

    def test_returns_the_logs_of_its_updates(self):
        answers = [{"total_loss": 1.0, "priority": [1.0]}, {"total_loss": 3.0}]
        learner = make(answers)
        assert learner.train(rows(1)) == [{"total_loss": 1.0}, {"total_loss": 3.0}]
        assert learner.train_iter == 2
        assert learner.monitor.avg["total_loss"]() == 2.0
        assert answers[0] == {"total_loss": 1.0, "priority": [1.0]}  # left alone
        assert make({"total_loss": 1.0}).train(rows(1)) == [{"total_loss": 1.0}]

    def test_data_of_other_kinds_is_passed_on(self):
        learner = make({"total_loss": 1.0, "priority": [1.0]})
        learner.train({"a": 1})
        learner.train(["no", "rows"])
        assert learner.priority_info == {"priority": [1.0]}

    @pytest.mark.parametrize("loss", [float("nan"), torch.tensor(float("nan"))])
    def test_nan_loss_is_an_error(self, loss):
        learner = make({"total_loss": loss})
        with pytest.raises(DataError, match="total_loss = NaN at iteration 0"):
            learner.train(rows())
        make({"explained_variance": loss, "loss_parts": np.ones(3)}).train(rows())

    def test_needs_a_policy(self):
        learner = BaseLearner(BaseLearner.default_config(), tb_logger=Writer(), exp_name="exp")
        with pytest.raises(ConfigError, match="has no policy"):
            learner.train(rows())
        learner.policy = Policy()
        learner.train(rows())
        assert learner.train_iter == 1


class TestLog:
    def test_averages_are_written_by_iteration_and_step(self):
        writer = Writer()
        answers = [{"total_loss": float(i), "cur_lr": 0.5} for i in range(4)]
        learner = make(*answers, writer=writer)
        for i in range(3):
            learner.train(rows(), envstep=10 * i)
        assert writer.rows["learner_iter/total_loss_avg"] == [
            (0, 0.0, "add_scalar"),
            (2, 1.0, "add_scalar"),
        ]
        assert [step for step, *_ in writer.rows["learner_step/cur_lr_avg"]] == [0, 20]
        assert "learner_iter/train_time_avg" in writer.rows

    def test_window_is_ten_iterations_and_the_one_before(self):
        learner = make(*({"total_loss": float(i)} for i in range(25)))
        for _ in range(25):
            learner.train(rows())
        assert learner.monitor.avg["total_loss"]() == np.mean(range(14, 25))
        assert learner.monitor.max["total_loss"]() == 24
        assert learner.monitor.min["total_loss"]() == 14
        assert learner.monitor.val["total_loss"]() == 24

    def test_scalars_and_histograms_have_their_own_log(self):
        writer = Writer()
        values = {"total_loss": 1.0, "[scalars]q": {"a": 1.0}, "[histogram]act": [1, 2, 2]}
        make(values, writer=writer).train(rows())
        assert writer.rows["learner_iter/q"] == [(0, {"a": 1.0}, "add_scalars")]
        assert writer.rows["learner_step/act"] == [(0, [1, 2, 2], "add_histogram")]

    @pytest.mark.parametrize(
        ("value", "mean"),
        [(1, 1), (np.float32(2.5), 2.5), (torch.tensor([1.0, 2.0]), 1.5), ([1, 3], 2), (None, 0)],
    )
    def test_numbers_of_all_kinds_are_averaged(self, value, mean):
        learner = make({"total_loss": value})
        learner.train(rows())
        assert learner.monitor.avg["total_loss"]() == mean

    def test_values_that_are_not_monitored_are_not_logged(self):
        writer = Writer()
        make({"total_loss": 1.0, "other": 2.0}, writer=writer).train(rows())
        assert not any("other" in tag for tag in writer.rows)

    def test_a_hook_that_registers_another_is_called_once(self):
        called = []

        class Registering(LearnerHook):
            def __call__(self, engine):
                called.append(self.name)
                if len(called) == 1:
                    engine.register_hook(Registering("second", 1, position="after_iter"))

        learner = make({"total_loss": 1.0})
        learner.register_hook(Registering("first", 2, position="after_iter"))
        learner.train(rows())
        learner.train(rows())
        assert called == ["first", "second", "first"]

    def test_log_buffer_holds_the_newest_values_for_hooks(self):
        seen = []

        class Spy(LearnerHook):
            def __call__(self, engine):
                seen.append({k: dict(v) for k, v in engine.log_buffer.items()})

        learner = make({"total_loss": torch.tensor(2.0), "[scalars]q": {"a": torch.ones(1)}})
        learner.register_hook(Spy("spy", 1, position="after_iter"))
        learner.train(rows())
        assert seen == [
            {"scalar": {"total_loss": 2.0}, "scalars": {"q": {"a": 1.0}}, "histogram": {}}
        ]
        assert not learner.log_buffer["scalar"]

    def test_makes_its_own_writer(self):
        learner = BaseLearner(BaseLearner.default_config(), Policy(), exp_name="exp")
        learner.train(rows())
        learner.close()
        learner.close()
        assert os.path.exists("exp/metrics.jsonl")

    def test_state_carries_counters_and_window(self):
        learner = make(*({"total_loss": float(i)} for i in range(25)))
        for i in range(13):
            learner.train(rows(), i)
        other = make(*({"total_loss": float(i)} for i in range(13, 25)))
        other.load_state_dict(learner.state_dict())
        assert (other.train_iter, other.collector_envstep) == (13, 12)
        for _ in range(4):
            learner.train(rows())
            other.train(rows())
            for kind in ("avg", "max", "min", "val"):
                mine, its = getattr(learner.monitor, kind), getattr(other.monitor, kind)
                assert mine["total_loss"]() == its["total_loss"]()


class TestCheckpoints:
    def test_holds_policy_and_counters(self):
        learner = make()
        learner.policy.weight = torch.ones(2)
        learner.train(rows(), 30)
        learner.save_checkpoint()
        learner.save_checkpoint("ckpt_best.pth.tar")
        assert sorted(os.listdir("exp/ckpt")) == ["ckpt_best.pth.tar", "iteration_1.pth.tar"]
        state = read_file("exp/ckpt/ckpt_best.pth.tar")
        assert state["weight"].tolist() == [1, 1]
        assert (state["last_iter"], state["last_step"]) == (1, 30)
        assert learner.ckpt_name is None
        other = make(hook=dict(load_ckpt_before_run="exp/ckpt/ckpt_best.pth.tar"))
        other.call_hook("before_run")
        assert other.policy.weight.tolist() == [1, 1]
        assert (other.train_iter, other.collector_envstep) == (1, 30)

    def test_can_be_saved_with_the_hook_off(self):
        make(hook=dict(save_ckpt_after_run=False)).save_checkpoint("here.pth.tar")
        assert os.path.exists("exp/ckpt/here.pth.tar")

    def test_users_hook_of_that_name_is_used(self):
        calls = []

        class Own(LearnerHook):
            def __call__(self, engine):
                calls.append(engine.ckpt_name)

        learner = make(hook=dict(log_show_after_iter=2))
        learner.register_hook(Own("save_ckpt_after_run", 20, position="after_run"))
        learner.save_checkpoint("name")
        assert calls == ["name"]


class TestStart:
    def run(self, learner, iterations=3):
        asked = []

        def get_data(size):
            asked.append(size)
            return [lambda i=i: {"x": torch.tensor([float(i)])} for i in range(size)]

        learner.get_data = get_data
        learner.setup_dataloader()
        try:
            learner.start()
        finally:
            learner.close()
        return asked

    def test_trains_on_fetched_batches(self):
        learner = make(train_iterations=3)
        asked = self.run(learner)
        assert set(asked) == {2}
        assert learner.train_iter == 3
        assert len(learner.policy.seen[0][0]) == 2
        assert learner.learn_info["learner_done"]
        assert learner.monitor.avg["data_time"]() > 0
        assert os.listdir("exp/ckpt") == ["iteration_3.pth.tar"]

    def test_error_saves_a_checkpoint_first(self):
        learner = make({"total_loss": 1.0}, ValueError("own words"), train_iterations=3)
        with pytest.raises(ValueError, match="own words"):
            self.run(learner)
        assert os.listdir("exp/ckpt") == ["iteration_1.pth.tar"]
        assert not learner.learn_info["learner_done"]
        assert threading.active_count() < 20

    class Loader:
        """Yields a number of batches, then ends as if it had been closed."""

        def __init__(self, n):
            self.left, self.closed = n, False

        def __next__(self):
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            return rows()

        def close(self):
            self.closed = True

    def test_takes_batches_from_a_loader_that_it_is_given(self):
        learner, loader = make(train_iterations=3), self.Loader(5)
        learner.setup_dataloader(loader)
        learner.start()
        assert (learner.train_iter, loader.left) == (3, 2)
        learner.close()
        assert loader.closed

    def test_counts_on_from_a_state(self):
        first = make(train_iterations=5)
        first.setup_dataloader(self.Loader(2))
        first.start()  # the end of the data ends it undone
        assert first.train_iter == 2
        assert not first.learn_info["learner_done"]
        assert os.listdir("exp/ckpt") == ["iteration_2.pth.tar"]
        learner, loader = make(train_iterations=5), self.Loader(9)
        learner.load_state_dict(first.state_dict())
        learner.setup_dataloader(loader)
        learner.start()
        assert (learner.train_iter, loader.left) == (5, 6)
        assert learner.learn_info["learner_done"]

    @pytest.mark.parametrize("set_data", [True, False])
    def test_needs_data(self, set_data):
        learner = make(train_iterations=3)
        with pytest.raises(ConfigError, match="get_data"):
            learner.start() if set_data else learner.setup_dataloader()


def test_registered_type_is_built():
    config = EasyDict(type="base", **BaseLearner.default_config())
    learner = create_learner(config, policy=Policy(), tb_logger=Writer(), exp_name="exp")
    assert type(learner) is BaseLearner
    assert (learner.exp_name, learner.instance_name) == ("exp", "learner")
    assert (learner.rank, learner.world_size) == (0, 1)


def test_other_ranks_stay_quiet():
    config = BaseLearner.default_config()
    learner = BaseLearner(config, Policy(), tb_logger=Writer(), dist_info=(1, 2), exp_name="exp")
    learner.train(rows())
    learner.save_checkpoint("x")
    assert learner.monitor is None
    assert not os.path.exists("exp/ckpt")


# ---------------------------------------------------------------------- the monitor


def feed_of(*rows, **kwargs):
    feed = MonitorFeed(["cur_lr"], **kwargs)
    for row in rows:
        feed.add(row)
    return feed


def test_every_number():
    row = {"loss": 1.0, "tensor": torch.tensor(2.0), "array": np.float32(3.0), "flag": True}
    feed = feed_of(
        {**row, "text": "x", "nothing": None, "vector": torch.ones(2)}, every_number=True
    )
    assert feed.names() == ["loss", "tensor", "array"]


def test_means_of_numbers_beyond_the_usual_ones():
    rows = [{"cur_lr": 1.0, "own": float(number)} for number in range(20)]
    feed = feed_of(*rows, every_number=True)
    assert feed.means({"cur_lr"}) == {"own": 14.5}  # of 10 to 19
    assert feed.means({"cur_lr", "own"}) == {}
    assert feed_of(*rows).means({"cur_lr"}) == {}


def test_names_that_come_later_lose_nothing():
    feed = feed_of({"loss": 1.0}, {"loss": 3.0}, every_number=True)
    assert feed.monitor.avg["loss"]() == 2.0
    feed.add({"loss": 5.0, "actor_loss": 7.0})
    assert feed.names() == ["loss", "actor_loss"]
    assert feed.monitor.avg["loss"]() == 3.0
    assert feed.monitor.avg["actor_loss"]() == 7.0
    for _ in range(20):
        feed.add({"loss": 0.0})
        feed.monitor.avg["loss"]()
    assert feed.monitor.avg["loss"]() == 0.0


def test_a_monitor_that_is_kept_follows_later_iterations():
    feed = feed_of({"cur_lr": 1.0})
    kept = feed.monitor
    assert kept.cur_lr == kept.avg["cur_lr"]() == 1.0
    assert [value for _, value in kept.range_values["cur_lr"]()] == [1.0]
    feed.add({"cur_lr": 3.0})
    assert kept.avg["cur_lr"]() == 2.0
    assert kept.val["cur_lr"]() == 3.0
