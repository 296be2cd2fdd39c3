import contextlib
import sys

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.envs import BaseEnvManager, PoolEnvManager
from ding.utils.errors import ConfigError, DataError, EnvError
from ding.worker import (
    BattleInteractionSerialEvaluator,
    IMetric,
    InteractionSerialEvaluator,
    MetricSerialEvaluator,
    VectorEvalMonitor,
    create_serial_evaluator,
)
from ding.worker.collector.rollout import Rollout
from ding.worker.collector.steps import Player, Tally
from tests.envs.env_manager import fake_envpool
from tests.fakes import DuelLineEnv, LineEnv, RowPolicy, StepPolicy, Writer, line_manager

POLICIES = pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])


@pytest.fixture
def make():
    """Builds an evaluator that is closed at the test's end."""
    with contextlib.ExitStack() as stack:

        def build(cls=InteractionSerialEvaluator, policy=None, env=None, writer=None, **cfg):
            config = cls.default_config()
            config.update({"n_episode": 4, "stop_value": 20, **cfg})
            policy = policy if policy is not None else StepPolicy().eval_mode
            evaluator = cls(config, env or line_manager(), policy, writer or Writer())
            stack.callback(evaluator.close)
            return evaluator

        yield build


class TestVectorEvalMonitor:
    def test_shares(self):
        monitor = VectorEvalMonitor(5, 12)
        for _ in range(10):
            monitor.update_reward(0, 1.0)
        assert monitor.get_current_episode() == 3
        for env_id, share in enumerate([3, 3, 2, 2, 2]):
            for k in range(share):
                monitor.update_info(env_id, {"x": k})
                monitor.update_reward(env_id, torch.tensor([float(env_id)]))
        assert monitor.is_finished()
        assert monitor.get_episode_return() == [1, 1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4]
        assert monitor.get_latest_reward(4) == 4
        assert len(monitor.get_episode_info()["x"]) == 12
        assert monitor.get_means() == {"x_mean": pytest.approx(9 / 12)}

    def test_means_are_of_numbers_only(self):
        monitor = VectorEvalMonitor(1, 2)
        for k in range(2):
            info = {"won": k == 1, "score": np.array([2.0 * k]), "name": "a", "path": [1, 2]}
            monitor.update_info(0, {**info, "none": None, "t": torch.tensor(k)})
        assert monitor.get_means() == {"won_mean": 0.5, "score_mean": 1.0, "t_mean": 0.5}

    def test_video_of_worst_median_and_best(self):
        monitor = VectorEvalMonitor(3, 3)
        for length in range(1, 4):
            for env_id in range(length - 1, 3):
                monitor.update_video({env_id: np.full((2, 2, 3), env_id, np.uint8)})
        for env_id, value in enumerate([5.0, 1.0, 3.0]):
            monitor.update_reward(env_id, value)
        video = monitor.get_video()
        assert video.shape == (3, 3, 3, 2, 2)
        assert video[:, 0, 0, 0, 0].tolist() == [1, 2, 0]

    def test_too_few_episodes(self):
        with pytest.raises(ConfigError, match="n_evaluator_episode=2"):
            VectorEvalMonitor(3, 2)


class TestInteraction:
    @POLICIES
    def test_short_episodes_do_not_count_more(self, policy_cls, make):
        env = line_manager(2, length=[2, 10])
        evaluator = make(policy=policy_cls().eval_mode, env=env)
        _, info = evaluator.eval(train_iter=3, envstep=7)
        assert sorted(info["eval_episode_return"]) == [3, 3, 55, 55]
        assert info["eval_episode_return_mean"] == 29

    @POLICIES
    def test_stop_best_and_log(self, policy_cls, make):
        writer, saved = Writer(), []
        evaluator = make(policy=policy_cls().eval_mode, stop_value=15, writer=writer)
        stop, _ = evaluator.eval(saved.append, train_iter=0, envstep=0)
        assert not stop  # not at iteration 0
        stop, _ = evaluator.eval(saved.append, train_iter=5, envstep=50)
        assert stop
        assert saved == ["ckpt_best.pth.tar"]  # the same mean is not better
        assert writer.rows["evaluator_iter/reward_mean"] == [(0, 15.0), (5, 15.0)]
        assert writer.rows["evaluator_step/episode_count"] == [(0, 4), (50, 4)]
        assert evaluator.best == evaluator.last == 15

    def test_should_eval(self, make):
        evaluator = make(eval_freq=10)
        due = [i for i in [0, 0, 5, 9, 10, 10, 12, 25, 34, 35] if evaluator.should_eval(i)]
        assert due == [0, 10, 25, 35]

    def test_minus_one_is_the_first_evaluation_alone(self, make):
        evaluator = make(eval_freq=-1)
        assert [i for i in [0, 0, 1, 9, 10**9] if evaluator.should_eval(i)] == [0]

    def test_state_keeps_the_best(self, make):
        first, second = make(), make()
        first.eval(train_iter=1)
        second.load_state_dict(first.state_dict())
        saved = []
        second.eval(saved.append, train_iter=2)
        assert saved == []
        assert not second.should_eval(0) or second.best == 15

    def test_an_abnormal_step_is_not_judged(self, make):
        evaluator = make(env=line_manager(2, abnormal_at=[3, None]))
        _, info = evaluator.eval(train_iter=1)
        assert len(info["eval_episode_return"]) == 4

    def test_episodes_given_for_one_call(self, make):
        evaluator = make()
        assert len(evaluator.eval(n_episode=6)[1]["eval_episode_return"]) == 6

    @POLICIES
    def test_more_episodes_than_members_that_reset_in_a_step(self, policy_cls, make, monkeypatch):
        # The last member with episodes left begins one while the other, which has none, is ready.
        monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())
        pool = PoolEnvManager(EasyDict(env_id="Count-v0", env_num=2))
        evaluator = make(policy=policy_cls().eval_mode, env=pool)
        for n_episode in (3, 5):
            returns = evaluator.eval(n_episode=n_episode)[1]["eval_episode_return"]
            assert returns == [3.0] * (n_episode // 2 + 1) + [6.0] * (n_episode // 2)

    @POLICIES
    def test_environments_that_are_done_for_good(self, policy_cls, make):
        env = BaseEnvManager([lambda: LineEnv({"number": 0})], EasyDict(episode_num=1))
        with pytest.raises(EnvError, match="all are done"):
            make(policy=policy_cls().eval_mode, env=env).eval()

    def test_render_logs_a_video(self, make):
        class Drawn(LineEnv):
            render_mode = "rgb_array"

            def render(self):
                return np.full((4, 4, 3), self._t, np.uint8)

        videos = []
        writer = Writer()
        writer.add_video = lambda tag, video, step: videos.append((tag, video.shape, step))
        evaluator = make(env=line_manager(2, Drawn), writer=writer)
        evaluator.eval(train_iter=3, envstep=30, force_render=True)
        assert videos == [("evaluator/worst_median_best", (3, 5, 3, 4, 4), 3)]

    def test_missing_episodes_and_closed(self, make):
        evaluator = make(n_episode=None)
        with pytest.raises(ConfigError, match="n_evaluator_episode"):
            evaluator.eval()
        evaluator.close()
        evaluator.close()
        with pytest.raises(ConfigError, match="closed"):
            evaluator.eval()

    def test_a_return_that_is_no_number_is_not_the_best(self, make):
        class Sometimes(LineEnv):
            def step(self, action):
                timestep = super().step(action)
                if "eval_episode_return" in timestep.info and broken:
                    timestep.info["eval_episode_return"] = np.nan
                return timestep

        broken, saved = [True], []
        evaluator = make(env=line_manager(2, Sometimes))
        assert not evaluator.eval(saved.append, train_iter=1)[0]
        assert (evaluator.best, saved) == (None, [])
        broken.clear()
        evaluator.eval(saved.append, train_iter=2)
        assert (evaluator.best, saved) == (15, ["ckpt_best.pth.tar"])


class TestBattle:
    @POLICIES
    def test_policy_0_is_judged(self, policy_cls, make):
        policies = [policy_cls().eval_mode for _ in range(3)]
        evaluator = make(
            *(BattleInteractionSerialEvaluator, policies),
            line_manager(2, DuelLineEnv, players=3),
            stop_value=15,
        )
        stop, infos = evaluator.eval(train_iter=1)
        assert stop
        returns = [[i["eval_episode_return"] for i in player] for player in infos]
        assert returns == [[15.0] * 4, [30.0] * 4, [45.0] * 4]


def test_each_player_gets_its_own_arguments():
    class Heard(RowPolicy):
        def _forward_eval(self, data, **kwargs):
            self.heard = kwargs
            return super()._forward_eval(data)

    policies = [Heard(), Heard()]
    env = line_manager(2, DuelLineEnv)
    env.launch()
    players = [Player(p.eval_mode, {"eps": eps}) for p, eps in zip(policies, (0.1, 0.2))]
    Rollout(env, players, battle=True, keeps=False).step(Tally())
    assert [policy.heard for policy in policies] == [{"eps": 0.1}, {"eps": 0.2}]


class Doubled(IMetric):
    def eval(self, inputs, label):
        return {"Acc": float((inputs == label).float().mean())}

    def reduce_mean(self, inputs):
        return {"Acc": float(np.mean([i["Acc"] for i in inputs]))}

    def gt(self, metric1, metric2):
        if metric2 is None:
            return True
        return metric1["Acc"] >= (metric2["Acc"] if isinstance(metric2, dict) else metric2)


class Twice:
    """A policy that doubles its inputs."""

    reset = staticmethod(lambda: None)
    forward = staticmethod(lambda x: 2 * x)
    get_attribute = staticmethod(lambda name: "cpu")


class TestMetric:
    @pytest.mark.parametrize("form", [lambda x: x, lambda x: {"y": x}, lambda x: [x, x]])
    @pytest.mark.parametrize("sizes", [(4, 4, 2), (4, 4, 4), (1, 6)])
    def test_each_item_counts_the_same(self, make, sizes, form):
        class Share(Doubled):
            def eval(self, inputs, label):
                label = label["y"] if isinstance(label, dict) else label
                return super().eval(inputs, label[0] if isinstance(label, list) else label)

        labels = [torch.zeros(size) for size in sizes]
        labels[-1] += 2  # right in the last batch alone
        loader = [(torch.ones(len(label)), form(label)) for label in labels]
        writer = Writer()
        evaluator = MetricSerialEvaluator(EasyDict(eval_freq=5), (loader, Share()), Twice, writer)
        _, result = evaluator.eval(train_iter=1)
        assert result["Acc"] == pytest.approx(sizes[-1] / sum(sizes))
        assert writer.rows["evaluator_iter/data_length"] == [(1, sum(sizes))]

    def test_no_data_is_an_error(self, make):
        evaluator = MetricSerialEvaluator(EasyDict(eval_freq=5), ([], Doubled()), Twice, Writer())
        with pytest.raises(DataError, match="no batch"):
            evaluator.eval(train_iter=1)

    def test_judges_on_data(self, make):
        loader = [(torch.ones(2), torch.full((2,), 2.0)), (torch.ones(2), torch.tensor([2.0, 0.0]))]
        cfg = EasyDict(eval_freq=50, stop_value=0.7)
        evaluator = MetricSerialEvaluator(cfg, (loader, Doubled()), Twice, Writer())
        saved = []
        assert evaluator.eval(saved.append, train_iter=1) == (True, {"Acc": 0.75})
        assert saved == ["ckpt_best.pth.tar"]


def test_types(make):
    for name in ("interaction", "battle_interaction", "metric"):
        evaluator = create_serial_evaluator(EasyDict(type=name, eval_freq=1))
        assert evaluator.should_eval(0)
