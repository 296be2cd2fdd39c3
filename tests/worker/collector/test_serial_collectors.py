import contextlib
import itertools

import gymnasium as gym
import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.envs import BaseEnvTimestep, create_env_manager
from ding.policy import PPOPolicy
from ding.utils.errors import ConfigError
from ding.worker import (
    BattleEpisodeSerialCollector,
    BattleSampleSerialCollector,
    EpisodeSerialCollector,
    InteractionSerialEvaluator,
    SampleSerialCollector,
    create_serial_collector,
    get_serial_collector_cls,
)
from tests.fakes import DuelLineEnv, LineEnv, RowPolicy, StepPolicy, Writer, line_manager

POLICIES = pytest.mark.parametrize("policy_cls", [StepPolicy, RowPolicy])


class ArrayActionEnv(LineEnv):
    """Insists on an array for an action, as many environments do, and spoils it."""

    def step(self, action):
        assert isinstance(action, np.ndarray), type(action)
        assert int(action[0]) == (self._t % 2)
        action += 100
        return super().step(action)


class GymLine(gym.Env):
    """The same line as `LineEnv`, without an end."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self._t = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self._t += 1
        return np.array([0, self._t], np.float32), float(self._t), False, False, {}


@pytest.fixture
def make():
    """Builds a collector or evaluator that is closed at the test's end."""
    with contextlib.ExitStack() as stack:

        def build(cls, policy, env=None, writer=None, **cfg):
            config = cls.default_config()
            config.update(cfg)
            env = env if env is not None else line_manager()
            part = cls(config, env, policy, writer or Writer())
            stack.callback(part.close)
            return part

        yield build


def ppo_config():
    config = PPOPolicy.default_config()
    config.model = EasyDict(obs_shape=2, action_shape=2)
    return config


def steps(rows):
    """(environment, step) of each row's observation."""
    return [tuple(int(x) for x in row["obs"]) for row in rows]


class TestSample:
    @POLICIES
    def test_rows_come_by_trajectory_and_are_right(self, policy_cls, make):
        collector = make(SampleSerialCollector, policy_cls().collect_mode)
        data = collector.collect(6, train_iter=9)
        assert len(data) == 6
        assert steps(data) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
        for row in data:
            step = int(row["obs"][1])
            assert int(row["next_obs"][1]) == step + 1
            assert float(row["reward"]) == step + 1
            assert int(row["action"]) == step % 2
            assert row["done"] is False
            assert row["collect_iter"] == 9

    @POLICIES
    def test_environments_get_separate_arrays(self, policy_cls, make):
        env = line_manager(env_cls=ArrayActionEnv)
        collector = make(SampleSerialCollector, policy_cls().collect_mode, env)
        assert [int(row["action"]) for row in collector.collect(6)] == [0, 1, 0] * 2

    def test_columns_where_both_sides_can(self, make):
        collector = make(SampleSerialCollector, StepPolicy().collect_mode)
        data = collector.collect(6)
        assert isinstance(data, Columns)
        assert data.is_columnar
        assert data.columns["reward"].shape == (6, 1)
        assert data.columns["obs"].dtype == torch.float32

    @pytest.mark.parametrize("truncate", [False, True])
    def test_own_transitions_make_the_samples_of_built_in_ones(self, truncate, make):
        class Own(StepPolicy):
            def _process_transition(self, obs, policy_output, timestep):
                own = super()._process_transition(obs, policy_output, timestep)
                return {**own, "obs": obs.astype(np.float64), "step": float(obs[1]), "name": None}

        env = line_manager(truncate=truncate)
        wanted = make(SampleSerialCollector, StepPolicy().collect_mode, env).collect(14)
        env = line_manager(truncate=truncate)
        data = make(SampleSerialCollector, Own().collect_mode, env).collect(14)
        assert isinstance(data, Columns)
        assert data.is_columnar
        assert data.columns["step"].tolist() == data.columns["obs"][:, 1].tolist()
        for name, column in wanted.columns.items():
            assert data.columns[name].dtype == column.dtype, name
            assert data.columns[name].tolist() == column.tolist(), name

    def test_own_transitions_may_differ_between_trajectories(self, make):
        class Own(StepPolicy):
            def _process_transition(self, obs, policy_output, timestep):
                own = super()._process_transition(obs, policy_output, timestep)
                return {**own, "first": True} if obs[0] == 0 else own

        data = make(SampleSerialCollector, Own().collect_mode).collect(14)
        assert steps(data) == steps(
            make(SampleSerialCollector, StepPolicy().collect_mode).collect(14)
        )
        assert all(("first" in row) == (row["obs"][0] == 0) for row in data)

    def test_a_replaced_function_is_called(self, make):
        mode = StepPolicy().collect_mode
        mode = type(mode)(lambda obs, **_: {i: {"action": torch.tensor(1)} for i in obs}, *mode[1:])
        collector = make(SampleSerialCollector, mode)
        assert {int(row["action"]) for row in collector.collect(6)} == {1}

    @POLICIES
    def test_the_true_last_observation_ends_an_episode(self, policy_cls, make):
        collector = make(SampleSerialCollector, policy_cls().collect_mode)
        data = collector.collect(14)
        last = [row for row in data if int(row["obs"][1]) == 4]
        assert len(last) == 2
        assert all(int(row["next_obs"][1]) == 5 and row["done"] for row in last)
        assert (0, 0) in steps(data[5:])  # the next episode begins at its reset observation

    def test_a_truncated_episode_is_not_done(self, make):
        collector = make(
            SampleSerialCollector, StepPolicy().collect_mode, line_manager(truncate=True)
        )
        data = collector.collect(12)
        assert not data.columns["done"].any()
        assert 5 in data.columns["next_obs"][:, 1]

    @POLICIES
    @pytest.mark.parametrize(
        ("env_num", "length", "sizes", "drop_extra"),
        [
            (3, 7, [4] * 40, False),
            (8, 7, [10] * 20, None),
            (2, 50, [3, 17, 4, 31, 10], None),  # larger ones later
        ],
    )
    def test_nothing_is_lost_between_calls(
        self, policy_cls, env_num, length, sizes, drop_extra, make
    ):
        env = line_manager(env_num, length=length)
        collector = make(SampleSerialCollector, policy_cls().collect_mode, env)
        seen = []
        for size in sizes:
            data = collector.collect(size, drop_extra=drop_extra)
            assert len(data) == size or drop_extra is False
            assert data[0]["obs"].shape == (2,)  # a row that was looked at changes nothing
            seen += steps(data)
        for number in range(env_num):
            own = [step for env_id, step in seen if env_id == number]
            assert own == [i % length for i in range(len(own))]
        assert collector.sample_count == len(seen)
        # What is missing waits in trajectories, or for the next call.
        assert collector.envstep - len(seen) < env_num * 2 or len(set(sizes)) > 1

    @POLICIES
    def test_extra_samples_are_returned_when_asked(self, policy_cls, make):
        collector = make(SampleSerialCollector, policy_cls().collect_mode, line_manager(3))
        assert len(collector.collect(4)) == 4
        assert len(collector.collect(4, drop_extra=False)) == 2 + 6
        assert len(collector.collect(4, drop_extra=False)) == 9  # episodes of 5 ended

    @POLICIES
    def test_extra_samples_are_dropped_and_counted(self, policy_cls, make):
        policy, writer = policy_cls(), Writer()
        env = line_manager(8, length=4)
        collector = make(
            *(SampleSerialCollector, policy.collect_mode, env, writer), collect_print_freq=1
        )
        for train_iter in range(1, 17):
            assert len(collector.collect(10, train_iter, drop_extra=True)) == 10
        dropped = writer.rows["collector_iter/total_dropped_sample_count"][-1][1]
        total = writer.rows["collector_iter/total_envstep_count"][-1][1]
        assert (dropped, total) == (16 * 6, 16 * 16)
        assert sum(v for _, v in writer.rows["collector_iter/dropped_sample_count"]) == dropped

    def test_a_cut_trajectory_of_ppo_ends_at_the_cut(self, make):
        policy = PPOPolicy(ppo_config())
        collector = make(SampleSerialCollector, policy.collect_mode, line_manager(3, length=100))
        for form in (lambda data: data, list):
            rows = form(collector.collect(7)) + form(collector.collect(7))
            for row, following in itertools.pairwise(rows):
                goes_on = (row["next_obs"] == following["obs"]).all()
                assert row["traj_flag"] is not bool(goes_on)

    def test_a_reset_by_another_caller_ends_what_ran(self, make):
        env = line_manager(2, length=50)
        collector = make(SampleSerialCollector, StepPolicy().collect_mode, env)
        collector.collect(3)  # two steps of each, of which one sample waits
        env.reset()
        collector.collect(1)
        rows = collector.collect(8)
        assert all(int(row["next_obs"][1]) == int(row["obs"][1]) + 1 for row in rows)

    def test_what_waits_is_part_of_the_state(self, make):
        first, second = (
            make(SampleSerialCollector, StepPolicy().collect_mode, line_manager(3))
            for _ in range(2)
        )
        first.collect(4)
        second.load_state_dict(first.state_dict())
        assert steps(second.collect(2)) == [(2, 0), (2, 1)]
        assert second.envstep == 6  # nothing was stepped for them

    @POLICIES
    def test_an_abnormal_step_drops_the_trajectory(self, policy_cls, make):
        env = line_manager(2, abnormal_at=[3, None], length=100)
        collector = make(SampleSerialCollector, policy_cls().collect_mode, env)
        data = collector.collect(8, drop_extra=False)
        own = [step for env_id, step in steps(data) if env_id == 0]
        assert 2 not in own[:1]
        assert not any(row["reward"].item() == 0 for row in data)
        assert collector.envstep % 2 == 1  # the failed step does not count

    def test_level_seeds_mark_samples(self, make):
        collector = make(SampleSerialCollector, StepPolicy().collect_mode)
        data = collector.collect(4, level_seeds=[70, 71])
        assert [int(row["seed"]) for row in data] == [70, 70, 71, 71]

    @POLICIES
    def test_transitions_begun_without_level_seeds_say_so(self, policy_cls, make):
        env = line_manager(2, length=[100, 3])
        collector = make(SampleSerialCollector, policy_cls().collect_mode, env)
        collector.collect(7)  # leaves a trajectory of environment 1 running
        data = collector.collect(20, level_seeds=[70, 71])
        data += collector.collect(8)
        seeds = {int(row["seed"]) for row in data if "seed" in row}
        assert seeds <= {-1, 70, 71}
        assert {70, 71} <= seeds
        by_step = [(int(row["obs"][0]), int(row.get("seed", -1))) for row in data]
        assert all(seed in (-1, 70 + env_id) for env_id, seed in by_step)

    def test_stateful_policies_are_reset_at_episode_ends(self, make):
        policy = RowPolicy()
        collector = make(SampleSerialCollector, policy.collect_mode)
        policy.resets.clear()
        collector.collect(10)
        assert policy.resets == [[0], [1]]

    def test_stateful_policies_are_reset_with_their_environment(self, make):
        env, policy = line_manager(2, length=50), RowPolicy()
        collector = make(SampleSerialCollector, policy.collect_mode, env)
        collector.collect(3)
        policy.resets.clear()
        env.reset({1: None})
        collector.collect(8)
        assert policy.resets == [[1]]

    def test_default_and_bad_n_sample(self, make):
        collector = make(SampleSerialCollector, StepPolicy().collect_mode)
        assert len(collector.collect()) == 4
        with pytest.raises(ConfigError, match=r"n_sample.*0"):
            collector.collect(0)

    @POLICIES
    def test_counters_and_logs(self, policy_cls, make):
        writer = Writer()
        collector = make(
            *(SampleSerialCollector, policy_cls().collect_mode),
            **dict(writer=writer, collect_print_freq=1),
        )
        episodes = []
        collector.on_episode = lambda *row: episodes.append(row)
        collector.collect(20, train_iter=1)
        assert collector.envstep == 20
        assert [row[:4] for row in episodes] == [
            *(("collector", 0, 15.0, 5), ("collector", 1, 15.0, 5)) * 2
        ]
        assert writer.rows["collector_iter/reward_mean"] == [(1, 15.0)]
        assert writer.rows["collector_step/reward_mean"] == [(20, 15.0)]
        expected = {
            *("episode_count", "envstep_count", "train_sample_count", "avg_envstep_per_episode"),
            *("avg_sample_per_episode", "avg_envstep_per_sec", "avg_train_sample_per_sec"),
            *("avg_episode_per_sec", "reward_mean", "reward_std", "reward_max", "reward_min"),
            *("total_envstep_count", "total_train_sample_count", "total_episode_count"),
        }
        assert {f"collector_iter/{name}" for name in expected} <= set(writer.rows)
        collector.envstep = 1000
        collector.collect(4)
        assert collector.envstep == 1004

    def test_close_twice_and_use_after(self, make):
        collector = make(SampleSerialCollector, StepPolicy().collect_mode)
        collector.close()
        collector.close()
        with pytest.raises(ConfigError, match="closed"):
            collector.collect(4)

    def test_missing_parts_are_named(self, make):
        collector = SampleSerialCollector(
            SampleSerialCollector.default_config(), tb_logger=Writer()
        )
        with pytest.raises(ConfigError, match="no env"):
            collector.collect(4)

    def test_reset_replaces_both(self, make):
        collector = make(SampleSerialCollector, StepPolicy().collect_mode)
        collector.collect(8)
        collector.reset(RowPolicy().collect_mode, line_manager(1))
        assert collector.envstep == 0
        assert steps(collector.collect(2)) == [(0, 0), (0, 1)]


class TestEpisode:
    @POLICIES
    def test_whole_episodes_and_no_more(self, policy_cls, make):
        env = line_manager(2, length=[3, 8])
        collector = make(EpisodeSerialCollector, policy_cls().collect_mode, env)
        episodes = collector.collect(3)
        assert len(episodes) == 3
        for episode in episodes:
            walked = [step for _, step in steps(episode)]
            assert walked == list(range(len(walked)))
            assert episode[-1]["done"]
        assert collector.envstep == sum(map(len, episodes))

    @POLICIES
    def test_fewer_episodes_than_environments(self, policy_cls, make):
        collector = make(EpisodeSerialCollector, policy_cls().collect_mode, line_manager(3))
        assert [len(episode) for episode in collector.collect(1)] == [5]
        assert collector.envstep == 5

    @POLICIES
    def test_train_samples(self, policy_cls, make):
        collector = make(EpisodeSerialCollector, policy_cls().collect_mode, get_train_sample=True)
        data = collector.collect(2)
        assert len(data) == 10
        assert set(data[0]) >= {"obs", "next_obs", "action", "reward", "done"}

    def test_reward_shaping(self, make):
        env = line_manager(1)

        def shape(env_id, transitions):
            return [{**row, "reward": row["reward"] * 10} for row in transitions]

        env.reward_shaping = shape
        collector = make(
            EpisodeSerialCollector, StepPolicy().collect_mode, env, reward_shaping=True
        )
        rewards = [float(row["reward"]) for row in collector.collect(1)[0]]
        assert rewards == [10, 20, 30, 40, 50]


class TestBattle:
    @POLICIES
    @pytest.mark.parametrize("players", [2, 3])
    def test_each_player_sees_its_own(self, policy_cls, players, make):
        env = line_manager(2, DuelLineEnv, players=players)
        policies = [policy_cls().collect_mode for _ in range(players)]
        collector = make(BattleSampleSerialCollector, policies, env)
        data, infos = collector.collect(10)
        assert len(data) == len(infos) == players
        for player in range(players):
            assert len(data[player]) == 10
            for row in data[player]:
                assert float(row["reward"]) == (player + 1) * (int(row["obs"][1]) + 1)
            assert [i["eval_episode_return"] for i in infos[player]] == [15.0 * (player + 1)] * 2

    @POLICIES
    def test_opponents_data_is_not_wanted(self, policy_cls, make):
        opponent = policy_cls()
        opponent._collect_data = False
        policies = [policy_cls().collect_mode, opponent.collect_mode]
        collector = make(BattleSampleSerialCollector, policies, line_manager(2, DuelLineEnv))
        data, _ = collector.collect(4)
        assert (len(data[0]), len(data[1])) == (4, 0)

    @POLICIES
    def test_episodes(self, policy_cls, make):
        policies = [policy_cls().collect_mode for _ in range(2)]
        collector = make(BattleEpisodeSerialCollector, policies, line_manager(2, DuelLineEnv))
        data, infos = collector.collect(3)
        assert [len(episodes) for episodes in data] == [3, 3]
        assert [len(episode) for episode in data[1]] == [5, 5, 5]
        assert len(infos[0]) == 3

    def test_drop_extra_cuts_samples_not_policies(self, make):
        policies = [StepPolicy().collect_mode for _ in range(3)]
        collector = make(
            BattleSampleSerialCollector, policies, line_manager(2, DuelLineEnv, players=3)
        )
        data, _ = collector.collect(1, drop_extra=True)
        assert [len(samples) for samples in data] == [1, 1, 1]


class TestRegistry:
    @pytest.mark.parametrize(
        ("name", "cls"),
        [
            ("sample", SampleSerialCollector),
            ("episode", EpisodeSerialCollector),
            ("sample_1v1", BattleSampleSerialCollector),
            ("episode_1v1", BattleEpisodeSerialCollector),
        ],
    )
    def test_types(self, name, cls, make):
        cfg = EasyDict(type=name, **cls.config)
        assert get_serial_collector_cls(cfg) is cls
        assert cls.default_config().cfg_type == f"{cls.__name__}Dict"
        collector = create_serial_collector(cfg)
        assert isinstance(collector, cls)
        assert np.isscalar(collector.envstep)


class ReusedArray(LineEnv):
    """Writes all its observations into one array."""

    def observe(self):
        self._array = getattr(self, "_array", np.zeros(2, np.float32))
        self._array[:] = super().observe()
        return self._array


@POLICIES
@pytest.mark.parametrize("kind", ["base", "base_v2", "subprocess", "async_subprocess"])
@pytest.mark.parametrize("copy_on_get", [True, False])
def test_samples_do_not_change_with_the_environments(policy_cls, kind, copy_on_get, make):
    options = {} if kind.startswith("base") else {"copy_on_get": copy_on_get}
    envs = [lambda i=i: ReusedArray({"number": i, "length": 9}) for i in range(4)]
    manager = create_env_manager(EasyDict(type=kind, **options), envs)
    collector = make(SampleSerialCollector, policy_cls().collect_mode, manager)
    data = [row for _ in range(5) for row in collector.collect(16)]
    assert len(data) == 80
    for row in data:
        number, step = (int(x) for x in row["obs"])
        assert [int(x) for x in row["next_obs"]] == [number, step + 1]
        assert (int(row["action"]), float(row["reward"])) == (step % 2, step + 1)


class TestStackedManager:
    """Managers of the second version stack observations and list timesteps."""

    @POLICIES
    @pytest.mark.parametrize("kind", ["base_v2", "subprocess_v2"])
    def test_samples_episodes_and_evaluation(self, policy_cls, kind, make):
        envs = [lambda i=i: LineEnv({"number": i}) for i in range(2)]
        manager = create_env_manager(EasyDict(type=kind), envs)
        policy = policy_cls()
        collector = make(SampleSerialCollector, policy.collect_mode, manager)
        assert steps(collector.collect(6)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
        other = make(EpisodeSerialCollector, policy.collect_mode, manager)
        assert [len(episode) for episode in other.collect(3)] == [5, 5, 5]
        cfg = InteractionSerialEvaluator.default_config()
        evaluator = InteractionSerialEvaluator(cfg, manager, policy.eval_mode, Writer())
        assert evaluator.eval(n_episode=4)[1]["eval_episode_return"] == [15.0] * 4

    def test_dict_observations(self, make):
        class Named(LineEnv):
            def __init__(self, cfg):
                super().__init__(cfg)
                self.observation_space = gym.spaces.Dict({"at": self.observation_space})

            def observe(self):
                return {"at": super().observe()}

        class Policy(RowPolicy):
            def _forward_collect(self, data, **kwargs):
                return {i: {"action": int(obs["at"][1] % 2)} for i, obs in data.items()}

        envs = [lambda i=i: Named({"number": i}) for i in range(2)]
        manager = create_env_manager(EasyDict(type="base_v2"), envs)
        collector = make(SampleSerialCollector, Policy().collect_mode, manager)
        found = [tuple(int(x) for x in row["obs"]["at"]) for row in collector.collect(4)]
        assert found == [(0, 0), (0, 1), (1, 0), (1, 1)]


class MixedRewards(LineEnv):
    """Rewards as users' environments give them: sometimes a whole number, sometimes not."""

    def step(self, action):
        obs, _, done, info = super().step(action)
        return BaseEnvTimestep(obs, self._t if self._t % 2 else self._t + 0.5, done, info)


class BatchedRewards(StepPolicy):
    """Its rows go through the base class's batched core."""

    def _process_transition(self, obs, policy_output, timestep):
        row = super()._process_transition(obs, policy_output, timestep)
        return {**row, "reward": timestep.reward}


@pytest.mark.parametrize("policy_cls", [StepPolicy, BatchedRewards])
@pytest.mark.parametrize("options", [{}, {"deepcopy_obs": True}])
def test_rewards_that_mix_whole_and_real_numbers(policy_cls, options, make):
    env = line_manager(2, MixedRewards, length=4)
    collector = make(SampleSerialCollector, policy_cls().collect_mode, env, **options)
    data = collector.collect(8)
    assert [float(row["reward"]) for row in data] == [1.0, 2.5, 3.0, 4.5] * 2


class TestVectorManager:
    """All environments step, even those that are to wait for the others."""

    @POLICIES
    def test_episodes_and_evaluation(self, policy_cls, make):
        policy = policy_cls()
        lines = [lambda n=n: gym.wrappers.TimeLimit(GymLine(), n) for n in (3, 5)]
        env = create_env_manager(EasyDict(type="gym_vector"), lines)
        collector = make(EpisodeSerialCollector, policy.collect_mode, env)
        for _ in range(2):
            episodes = collector.collect(2)
            assert sorted(steps(e)[-1][1] + 1 for e in episodes) == [3, 5]
            assert [len(e) for e in sorted(episodes, key=len)] == [3, 5]
        cfg = InteractionSerialEvaluator.default_config()
        evaluator = InteractionSerialEvaluator(cfg, env, policy.eval_mode, Writer())
        returns = evaluator.eval(n_episode=4)[1]["eval_episode_return"]
        assert sorted(returns) == [6.0, 6.0, 15.0, 15.0]
