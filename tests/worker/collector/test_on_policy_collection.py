"""On-policy collection: no step is lost or repeated, and advantages are right at cuts."""

import itertools
import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from easydict import EasyDict
from gymnasium import spaces

from ding.data import tree_rows
from ding.envs import BaseEnv, BaseEnvTimestep, DingEnvWrapper, create_env_manager
from ding.policy import (
    A2CPolicy,
    ACERPolicy,
    IMPALAPolicy,
    PGPolicy,
    PPGPolicy,
    PPOOffPolicy,
    PPOPGPolicy,
    PPOPolicy,
)
from ding.policy.sequences import sequence_columns, sequence_counts
from ding.rl_utils import ppo_policy_error
from ding.worker import BattleSampleSerialCollector, EpisodeSerialCollector, SampleSerialCollector
from tests.envs.env_manager import fake_envpool
from tests.fakes import DuelLineEnv, RowPolicy, StepPolicy, Writer, line_manager
from tests.policy.attributes import model_of

POLICIES = pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])


class CountingEnv(BaseEnv):
    """Shows ``[env number, episode, step]``; episodes end and are truncated at random.

    Config: ``number`` of the environment, ``longest`` episode, ``abnormal`` share of its steps.
    """

    def __init__(self, cfg):
        self._cfg = EasyDict({"number": 0, "longest": 30, "abnormal": 0.0, **cfg})
        self._random = np.random.default_rng(self._cfg.number)
        self._episode = -1
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.reward_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def _obs(self):
        return np.array([self._cfg.number, self._episode, self._t], np.float32)

    def reset(self):
        self._episode += 1
        self._t, self._return = 0, 0.0
        self._length = self._random.integers(1, self._cfg.longest, endpoint=True)
        self._truncates = bool(self._random.integers(2))
        return self._obs()

    def step(self, action):
        self._t += 1
        if self._random.random() < self._cfg.abnormal:
            info = {"abnormal": True}
            return BaseEnvTimestep(self._obs(), np.zeros(1, np.float32), False, info)
        reward = np.float32(self._random.normal())
        self._return += float(reward)
        done, info = self._t >= self._length, {}
        if done:
            info = {"eval_episode_return": self._return, "truncated": self._truncates}
        return BaseEnvTimestep(self._obs(), np.array([reward]), done, info)

    def seed(self, seed, dynamic_seed=True):
        pass

    def close(self):
        pass


def counting(env_num, kind="base", **cfg):
    envs = [lambda i=i: CountingEnv({"number": i, **cfg}) for i in range(env_num)]
    return create_env_manager(EasyDict(type=kind), envs)


@pytest.fixture
def build():
    made = []

    def make(policy, env, cls=SampleSerialCollector, **cfg):
        modes = [p.collect_mode for p in policy] if isinstance(policy, list) else None
        config = EasyDict({**cls.default_config(), **cfg})
        collector = cls(config, env, modes or policy.collect_mode, Writer())
        made.append(collector)
        return collector

    yield make
    for collector in made:
        collector.close()


def keys(rows):
    """(environment, episode, step) of each row."""
    return [tuple(int(x) for x in row["obs"]) for row in rows]


def assert_gapless(seen):
    """Each step of each environment came once, in its order."""
    by_env = {}
    for env_id, episode, step in seen:
        by_env.setdefault(env_id, []).append((episode, step))
    for stream in by_env.values():
        assert stream[0] == (0, 0)
        for (episode, step), following in itertools.pairwise(stream):
            assert following in ((episode, step + 1), (episode + 1, 0))


class TestShares:
    @POLICIES
    @pytest.mark.parametrize(
        ("env_num", "n_sample"), [(1, 5), (4, 64), (4, 6), (8, 3), (5, 1), (3, 10)]
    )
    def test_each_step_comes_once(self, policy_cls, env_num, n_sample, build):
        collector = build(policy_cls(on_policy=True), counting(env_num, longest=9))
        episodes, seen = [], []
        collector.on_episode = lambda *row: episodes.append(row)
        for train_iter in range(25):
            data = collector.collect(n_sample, train_iter)
            assert len(data) == n_sample
            assert {row["collect_iter"] for row in data} == {train_iter}
            new = keys(data)
            shares = np.bincount([env_id for env_id, _, _ in new], minlength=env_num)
            assert shares.max() - shares.min() <= 1
            seen += new
            assert collector.envstep == collector.sample_count == len(seen)
        totals = np.bincount([env_id for env_id, _, _ in seen], minlength=env_num)
        assert totals.max() - totals.min() <= 1
        assert_gapless(seen)
        assert collector.dropped_count == 0
        # Returns and lengths are those of whole episodes, however often they were cut.
        lengths = Counter((env_id, episode) for env_id, episode, _ in seen)
        counts = Counter(row[1] for row in episodes)
        for _, env_id, _, length, *_ in episodes:
            assert length in {n for (i, _), n in lengths.items() if i == env_id}
        for env_id, count in counts.items():
            ended = [row[3] for row in episodes if row[1] == env_id]
            assert ended == [lengths[env_id, episode] for episode in range(count)]

    @POLICIES
    @pytest.mark.parametrize("kind", ["base_v2", "subprocess", "async_subprocess", "gym_vector"])
    def test_all_env_managers(self, policy_cls, kind, build):
        collector = build(policy_cls(on_policy=True), counting(4, kind, longest=7))
        seen = []
        for n_sample in (10, 16, 3, 9, 2):
            data = collector.collect(n_sample)
            assert len(data) == n_sample
            seen += keys(data)
        assert_gapless(seen)
        assert collector.envstep == len(seen)
        totals = np.bincount([env_id for env_id, _, _ in seen])
        assert totals.tolist() == [10] * 4

    @pytest.mark.parametrize(
        "kind",
        [{"type": "gym_vector"}, {"type": "env_pool"}],
        ids=str,
    )
    def test_environments_that_all_step_lose_nothing_either(self, kind, build, monkeypatch):
        monkeypatch.setitem(sys.modules, "envpool", fake_envpool.module())
        cfg = {"env_id": "CartPole-v1", "env_num": 4, **kind}
        make = partial(DingEnvWrapper, cfg={"env_id": "CartPole-v1"})
        env = create_env_manager(EasyDict(cfg), [make] * 4)
        env.seed(3)
        config = ppo_config(obs_shape=4)
        collector = build(PPOPolicy(config, enable_field=["collect"]), env)
        rows = []
        for _ in range(20):
            data = collector.collect(10)
            assert 10 <= len(data) < 14
            rows += data
        assert collector.envstep == collector.sample_count == len(rows)
        acted = {tuple(row["obs"].tolist()) for row in rows}
        goes_on = {tuple(row["next_obs"].tolist()) for row in rows if not row["done"]}
        assert len(acted) == len(rows)
        # What was shown is acted on, in this call or the next, and else episodes begin.
        assert len(goes_on - acted) <= 4
        assert len(acted - goes_on) <= 4 + sum(row["done"] for row in rows)

    @POLICIES
    def test_abnormal_steps_are_replaced(self, policy_cls, build):
        collector = build(policy_cls(on_policy=True), counting(3, abnormal=0.05))
        seen = []
        for _ in range(30):
            data = collector.collect(12)
            assert sorted(Counter(i for i, _, _ in keys(data)).values()) == [4, 4, 4]
            seen += keys(data)
        assert len(set(seen)) == len(seen)
        assert collector.dropped_count > 0
        assert collector.envstep == len(seen) + collector.dropped_count

    @POLICIES
    def test_resets_in_between(self, policy_cls, build):
        env = counting(2, longest=50)
        collector = build(policy_cls(on_policy=True), env)
        lengths = []
        collector.on_episode = lambda *row: lengths.append(row[3])
        seen = keys(collector.collect(6))
        env.reset()
        new = keys(collector.collect(6))
        assert sorted(step for _, _, step in new) == [0, 0, 1, 1, 2, 2]
        seen += new
        collector.before_step = resets_at(env, 3)
        seen += keys(collector.collect(10))
        assert len(seen) == 22
        collector.before_step = None
        seen += keys(collector.collect(200))
        assert len(set(seen)) == len(seen)
        assert collector.envstep == len(seen) + collector.dropped_count
        whole = Counter((i, e) for i, e, _ in seen)
        assert set(lengths) <= set(whole.values())

    def test_a_reset_of_one_environment_leaves_the_others_alone(self, build):
        env = counting(2, longest=50)
        collector = build(StepPolicy(on_policy=True), env)
        lengths = []
        collector.on_episode = lambda *row: lengths.append((row[1], row[3]))
        seen = keys(collector.collect(6))
        env.reset({1: {}})
        collector.before_step = resets_at(env, 2, {1: {}})
        seen += keys(collector.collect(100))
        whole = Counter((i, e) for i, e, _ in seen)
        assert lengths
        assert all(length in {n for (j, _), n in whole.items() if j == i} for i, length in lengths)
        assert_gapless([key for key in seen if key[0] == 0])
        assert collector.dropped_count == 1

    @POLICIES
    def test_battles(self, policy_cls, build):
        env = line_manager(3, DuelLineEnv, length=4)
        collector = build([policy_cls(on_policy=True) for _ in range(2)], env, BATTLE)
        seen = [[], []]
        for _ in range(12):
            data, _ = collector.collect(7)
            assert [len(samples) for samples in data] == [7, 7]
            for own, samples in zip(seen, data):
                own += [tuple(int(x) for x in row["obs"]) for row in samples]
        assert seen[0] == seen[1]
        for env_id in range(3):
            assert [t for i, t in seen[0] if i == env_id] == [t % 4 for t in range(28)]

    def test_whose_turn_it_is_is_part_of_the_state(self, build):
        first, second = (build(StepPolicy(on_policy=True), counting(4)) for _ in range(2))
        first.collect(3)
        second.load_state_dict(first.state_dict())
        assert [env_id for env_id, _, _ in keys(second.collect(2))] == [0, 3]

    @POLICIES
    @pytest.mark.parametrize("drop_extra", [True, False])
    def test_there_is_nothing_extra(self, policy_cls, drop_extra, build):
        collector = build(policy_cls(on_policy=True), counting(4))
        assert len(collector.collect(10, drop_extra=drop_extra)) == 10
        assert collector.dropped_count == 0


BATTLE = BattleSampleSerialCollector


def resets_at(env, number, param=None):
    """A hook that resets environments before a step."""
    numbers = itertools.count(1)

    def hook():
        if next(numbers) == number:
            env.reset(param)

    return hook


class Pieces(StepPolicy):
    """Samples are pieces of four steps."""

    config = dict(type="pieces", collect=dict(unroll_len=4))

    def _get_train_columns(self, columns, lengths):
        return sequence_columns(columns, lengths, 4)

    def _count_train_samples(self, lengths):
        return sequence_counts(lengths, 4)


class LeavesOut(RowPolicy):
    """The last step of what was cut only lends its value, as in many policies of users."""

    def _get_train_sample(self, transitions):
        return transitions if transitions[-1]["done"] else transitions[:-1]


class TestSamplesOfPolicies:
    @pytest.mark.parametrize("env_num", [1, 3])
    def test_pieces(self, env_num, build):
        collector = build(Pieces(on_policy=True), counting(env_num, longest=11))
        seen, whole = [], Counter()
        for _ in range(20):
            data = collector.collect(6)
            assert len(data) == 6
            for piece in tree_rows(data.columns):
                steps = piece["obs"][:-1][~piece["null"]]
                seen += [tuple(int(x) for x in obs) for obs in steps]
                whole[len(steps)] += 1
        assert_gapless_sets(seen)
        # A piece is short only where its episode has ended.
        assert collector.envstep == len(set(seen))

    def test_those_that_leave_out_steps_are_asked_for_more(self, build):
        collector = build(LeavesOut(on_policy=True), counting(4, longest=40))
        for n_sample in (4, 8, 30):
            assert n_sample <= len(collector.collect(n_sample)) <= n_sample + 4

    @POLICIES
    def test_whole_episodes_where_the_policy_wants_them(self, policy_cls, build):
        policy = policy_cls(on_policy=True, traj_len_inf=True)
        collector = build(policy, counting(3, longest=20))
        seen = []
        for _ in range(6):
            data = collector.collect(10)
            assert len(data) >= 10
            ends = [a for a, b in itertools.pairwise([*keys(data), (-1, 0, 0)]) if b[2] == 0]
            assert len(ends) >= 3
            seen += keys(data)
        assert_gapless(seen)
        assert collector.envstep == len(seen)

    @pytest.mark.parametrize("policy_cls", [PGPolicy, PPOPGPolicy])
    def test_returns_without_a_critic_are_of_whole_episodes(self, policy_cls, build):
        config = policy_cls.default_config()
        config.model = EasyDict(obs_shape=3, action_shape=2)
        collector = build(policy_cls(config, enable_field=["collect"]), counting(3))
        gamma = config.collect.discount_factor
        for _ in range(4):
            rows = list(collector.collect(20))
            value = 0.0
            for row, following in zip(rows[::-1], [None, *rows[::-1]]):
                is_last = following is None or int(following["obs"][2]) == 0
                value = float(row["reward"]) + gamma * (0.0 if is_last else value)
                assert float(row["return"]) == pytest.approx(value, abs=1e-4)


def assert_gapless_sets(seen):
    """Each step came, and pieces overlap at most at the end of an episode."""
    assert_gapless(sorted(set(seen)))


def ppo_config(cls=PPOPolicy, obs_shape=3, **collect):
    config = cls.default_config()
    config.model = EasyDict(obs_shape=obs_shape, action_shape=2)
    config.collect.update(collect)
    return config


class TestAdvantages:
    @pytest.mark.parametrize("policy_cls", [PPOPolicy, A2CPolicy, PPGPolicy])
    @pytest.mark.parametrize("rows", [False, True])
    @pytest.mark.parametrize(("env_num", "n_sample"), [(1, 7), (3, 20), (8, 5)])
    def test_they_are_those_of_the_uncut_stream(self, policy_cls, rows, env_num, n_sample, build):
        torch.manual_seed(env_num)
        config = ppo_config(policy_cls, discount_factor=0.9, gae_lambda=0.8)
        policy = policy_cls(config)
        options = {"deepcopy_obs": True} if rows else {}
        collector = build(policy, counting(env_num, longest=12), **options)
        for _ in range(6):
            streams = {}
            for row in collector.collect(n_sample):
                streams.setdefault(int(row["obs"][0]), []).append(row)
            for stream in streams.values():
                expected = brute_force_gae(policy, stream, 0.9, 0.8)
                got = [float(row["adv"]) for row in stream]
                assert got == pytest.approx(expected, abs=1e-4)

    @pytest.mark.parametrize("seed", range(3))
    def test_they_are_estimated_again_right_across_cuts(self, seed, build, monkeypatch):
        torch.manual_seed(seed)
        config = ppo_config(discount_factor=0.9, gae_lambda=0.8)
        config.learn.update(adv_norm=False, epoch_per_collect=1)
        policy = PPOPolicy(config)
        collector = build(policy, counting(3, longest=12))
        collector.collect(10)
        data = collector.collect(40)
        expected, seen = [], []
        for _, own in itertools.groupby(list(data), key=lambda row: int(row["obs"][0])):
            expected += brute_force_gae(policy, list(own), 0.9, 0.8)

        def watched(batch, *args, **kwargs):
            seen.append(batch.adv)
            return ppo_policy_error(batch, *args, **kwargs)

        monkeypatch.setattr("ding.policy.ppo.ppo_policy_error", watched)
        monkeypatch.setattr(torch, "randperm", torch.arange)
        policy.learn_mode.forward(data)
        assert seen[0].tolist() == pytest.approx(expected, abs=1e-4)


def brute_force_gae(policy, stream, gamma, lambda_):
    """GAE step by step: 0 follows a termination; what was cut or truncated has its value."""

    def value(obs):
        obs = torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0)
        with torch.no_grad():
            return float(model_of(policy)(obs, mode="compute_critic")["value"])

    result, following = [], 0.0
    for index in reversed(range(len(stream))):
        row = stream[index]
        goes_on = index + 1 < len(stream) and (stream[index + 1]["obs"] == row["next_obs"]).all()
        next_value = 0.0 if row["done"] else value(row["next_obs"])
        error = float(row["reward"]) + gamma * next_value - value(row["obs"])
        following = error + (gamma * lambda_ * following if goes_on else 0.0)
        result.append(following)
    return result[::-1]


class TestEpisodes:
    @POLICIES
    @pytest.mark.parametrize("kind", ["base", "async_subprocess"])
    def test_whole_ones_and_no_step_lost(self, policy_cls, kind, build):
        policy = policy_cls(on_policy=True)
        collector = build(policy, counting(3, kind, longest=8), EpisodeSerialCollector)
        seen = []
        for n_episode in (3, 7, 4, 3):
            episodes = collector.collect(n_episode)
            assert len(episodes) == n_episode
            for episode in episodes:
                assert [step for _, _, step in keys(episode)] == list(range(len(episode)))
                seen += keys(episode)
        assert_gapless(seen)
        assert collector.envstep == len(seen)


class TestOffPolicy:
    """What learns from a buffer gets each step once, too, in this call or a later one."""

    @pytest.mark.parametrize("policy_cls", [IMPALAPolicy, ACERPolicy])
    @pytest.mark.parametrize("cls", [SampleSerialCollector, EpisodeSerialCollector])
    @pytest.mark.parametrize("rows", [False, True])
    def test_pieces_hold_each_step_once(self, policy_cls, cls, rows, build):
        config = ppo_config(policy_cls)
        config.unroll_len = config.collect.unroll_len = config.learn.unroll_len = 4
        policy = policy_cls(config, enable_field=["collect"])
        options = {"deepcopy_obs": True} if rows else {}
        collector = build(policy, counting(3, longest=13), cls, get_train_sample=True, **options)
        seen, ends = [], 0
        for _ in range(5):
            data = collector.collect(12)
            for piece in tree_rows(data.columns) if not rows else list(data):
                null = np.asarray(piece["null"])
                seen += [tuple(int(x) for x in obs) for obs in np.asarray(piece["obs"])[:-1][~null]]
                ends += int(np.asarray(piece["done"]).any())
        assert_gapless(seen)
        assert len(set(seen)) == len(seen)
        assert collector.dropped_count == 0
        assert ends > 3
        # What is missing waits in trajectories and for the next call.
        waiting = 0 if cls is EpisodeSerialCollector else 3 * 8 + 12 * 4
        assert 0 <= collector.envstep - len(seen) <= waiting

    def test_ppo_gets_each_step_once(self, build):
        collector = build(
            PPOOffPolicy(ppo_config(PPOOffPolicy), enable_field=["collect"]), counting(3)
        )
        seen = []
        for _ in range(20):
            seen += keys(collector.collect(10))
        assert_gapless(seen)
        assert collector.envstep - len(seen) <= 3 * 4
        assert collector.dropped_count == 0
