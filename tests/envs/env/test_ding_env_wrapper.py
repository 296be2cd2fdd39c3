import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ding.envs import BaseEnvTimestep, DingEnvWrapper, GymToGymnasiumWrapper, is_truncated
from ding.utils.errors import ConfigError, EnvError
from tests.envs.small_envs import CountEnv, OldBox, OldDict, OldDiscrete, OldEnv, OldMultiDiscrete


def run_episode(env):
    """Observations and the last timestep of an episode of action 0."""
    trail = [np.array(env.reset())]
    while True:
        timestep = env.step(np.array(0))
        trail.append(np.array(timestep.obs))
        if timestep.done:
            return trail, timestep


class TestEpisodes:
    def test_types_and_values(self):
        env = DingEnvWrapper(CountEnv(length=2))
        obs = env.reset()
        assert obs.dtype == np.float32
        assert obs.tolist() == [0, 0]
        timestep = env.step(np.array(1))
        assert isinstance(timestep, BaseEnvTimestep)
        assert timestep.reward.dtype == np.float32
        assert timestep.reward.tolist() == [1.0]
        assert timestep.done is False
        timestep = env.step(1)
        assert timestep.done is True
        assert timestep.info["eval_episode_return"] == 3.0
        assert isinstance(timestep.info["eval_episode_return"], float)

    def test_termination_and_truncation(self):
        terminated = run_episode(DingEnvWrapper(CountEnv(length=3)))[1].info
        assert terminated["terminated"]
        assert not terminated["truncated"]
        assert not is_truncated(terminated)
        env = DingEnvWrapper(CountEnv(length=3), {"max_episode_steps": 2})
        trail, timestep = run_episode(env)
        assert len(trail) == 3
        assert timestep.info["truncated"]
        assert not timestep.info["terminated"]
        assert is_truncated(timestep.info)

    def test_terminating_on_the_last_allowed_step_is_no_truncation(self):
        env = DingEnvWrapper(CountEnv(length=3), {"max_episode_steps": 3})
        assert not is_truncated(run_episode(env)[1].info)

    def test_infos_of_the_env_are_not_written_to(self):
        class Shared(CountEnv):
            info = {}

            def step(self, action):
                return (*super().step(action)[:4], self.info)

        env = DingEnvWrapper(Shared(length=1))
        run_episode(env)
        assert Shared.info == {}

    def test_rewards_of_other_types(self):
        class Vector(CountEnv):
            def step(self, action):
                obs, _, *rest = super().step(action)
                return obs, np.array([1.0, -1.0]), *rest

        _, timestep = run_episode(DingEnvWrapper(Vector(length=2)))
        assert timestep.reward.tolist() == [1.0, -1.0]
        assert timestep.info["eval_episode_return"].tolist() == [2.0, -2.0]

    def test_step_before_reset(self):
        env = DingEnvWrapper(CountEnv())
        with pytest.raises(EnvError, match=r"CountEnv.*reset"):
            env.step(0)

    def test_neither_env_nor_id(self):
        with pytest.raises(ConfigError, match=r"env\.env_id"):
            DingEnvWrapper(cfg={})


class TestSpaces:
    def test_float64_becomes_float32(self):
        env = DingEnvWrapper(CountEnv(obs_dtype=np.float64))
        assert env.observation_space.dtype == np.float32
        assert env.reset().dtype == np.float32
        assert env.step(0).obs.dtype == np.float32

    def test_images_stay_uint8_and_are_not_copied(self):
        inner = CountEnv(obs_dtype=np.uint8)
        kept = np.zeros(2, np.uint8)
        inner.observe = lambda: kept
        env = DingEnvWrapper(inner)
        assert env.observation_space.dtype == np.uint8
        assert env.reset() is kept

    def test_discrete_and_nested_observations(self):
        class Nested(CountEnv):
            def observe(self):
                return {"room": 2, "seen": (np.zeros(3, np.int8), np.ones(2))}

        inner = Nested()
        inner.observation_space = spaces.Dict(
            room=spaces.Discrete(4),
            seen=spaces.Tuple([spaces.MultiBinary(3), spaces.Box(-1e300, 1e300, (2,), np.float64)]),
        )
        env = DingEnvWrapper(inner)
        obs = env.reset()
        assert obs["room"].tolist() == [2.0]
        assert env.observation_space.contains(obs)
        assert {a.dtype for a in (obs["room"], *obs["seen"])} == {np.dtype(np.float32)}

    def test_observation_of_a_wrong_shape(self):
        inner = CountEnv()
        inner.observe = lambda: np.zeros(3, np.float32)
        with pytest.raises(EnvError, match=r"CountEnv.*\(3,\).*\(2,\)"):
            DingEnvWrapper(inner).reset()


class TestSeeds:
    @pytest.mark.parametrize("dynamic", [True, False])
    def test_same_seed_same_trajectories(self, dynamic):
        trails = []
        for _ in range(2):
            env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
            env.seed(7, dynamic_seed=dynamic)
            trails.append([run_episode(env)[0] for _ in range(3)])
            env.close()
        for one, other in zip(*trails):
            np.testing.assert_array_equal(one, other)
        assert np.array_equal(trails[0][0][0], trails[0][1][0]) is not dynamic

    def test_dynamic_seeds_differ_and_keep_their_distance(self):
        seeds = []
        for start in (3, 4):
            inner = CountEnv()
            env = DingEnvWrapper(inner)
            env.seed(start)
            for _ in range(50):
                env.reset()
            seeds.append(inner.seeds)
        assert len(set(seeds[0])) == 50
        assert not set(seeds[0]) & set(seeds[1])
        assert all(0 <= s < 2**31 for s in seeds[0])

    def test_static_seed_and_no_seed(self):
        inner = CountEnv()
        env = DingEnvWrapper(inner)
        env.reset()
        env.seed(5, dynamic_seed=False)
        env.reset()
        env.reset()
        assert inner.seeds == [None, 5, 5]

    def test_random_actions_follow_the_seed(self):
        drawn = []
        for _ in range(2):
            env = DingEnvWrapper(CountEnv(action_space=spaces.Box(-1, 1, (3,))))
            env.seed(1)
            drawn.append(np.stack([env.random_action() for _ in range(5)]))
        np.testing.assert_array_equal(*drawn)

    def test_state_goes_on_where_it_was(self):
        env = DingEnvWrapper(CountEnv())
        env.seed(11)
        env.reset()
        state = env.state_dict()
        inners = [CountEnv(), CountEnv()]
        for inner in inners:
            other = DingEnvWrapper(inner)
            other.load_state_dict(state)
            other.reset()
            other.reset()
        assert inners[0].seeds == inners[1].seeds
        env.reset()
        assert env.build().seeds[1] == inners[0].seeds[0]

    def test_a_stream_of_episodes_goes_on(self):
        def starts(env):
            return [env.reset().tolist() for _ in range(3)]

        env, twin = (DingEnvWrapper(cfg={"env_id": "CartPole-v1"}) for _ in range(2))
        for one in (env, twin):
            one.seed(11)
        before = starts(env)
        assert before == starts(twin)
        assert len({tuple(start) for start in before}) == 3
        state = env.state_dict()
        after = starts(env)
        twin.close()  # and is re-created, as for a video
        assert starts(twin) == after
        for other in (DingEnvWrapper(cfg={"env_id": "CartPole-v1"}), twin):
            other.load_state_dict(state)
            copied = other.state_dict()
            assert starts(other) == after
            other.load_state_dict(copied)
            assert starts(other) == after
        env.seed(11)
        assert starts(env) == before

    def test_a_state_of_a_former_version(self):
        env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        env.seed(11)
        first = env.reset()
        state = env.state_dict()
        del state["seed_is_due"], state["stream"]
        env.load_state_dict(state)
        assert not np.array_equal(env.reset(), first)


class TestRandomAction:
    def test_scaled_box(self):
        space = spaces.Box(10.0, 20.0, (2,))
        env = DingEnvWrapper(CountEnv(action_space=space), {"act_scale": True})
        env.reset()
        for _ in range(20):
            action = env.random_action()
            assert (action.dtype, action.shape) == (np.float32, (2,))
            assert np.abs(action).max() <= 1
            env.step(action)
            assert space.contains(env.build().actions[-1])


class TestOldGym:
    def test_episode(self):
        inner = OldEnv(length=2)
        env = DingEnvWrapper(inner)
        assert env.observation_space == spaces.Box(-10, 10, (2,), np.float32)
        assert env.action_space == spaces.Discrete(2)
        env.seed(3, dynamic_seed=False)
        obs = env.reset()
        assert obs.dtype == np.float32
        assert inner.seeds == [3]
        assert not env.step(np.array(1)).done
        timestep = env.step(np.array(1))
        assert timestep.done
        assert timestep.info["eval_episode_return"] == 3.0
        assert not is_truncated(timestep.info)

    def test_time_limit(self):
        env = DingEnvWrapper(OldEnv(length=9, time_limit=2))
        _, timestep = run_episode(env)
        assert is_truncated(timestep.info)
        env = DingEnvWrapper(OldEnv(length=2, time_limit=2))
        assert not is_truncated(run_episode(env)[1].info)

    def test_without_seed_api(self):
        inner = OldEnv()
        env = DingEnvWrapper(inner, seed_api=False)
        env.seed(3)
        env.reset()
        assert inner.seeds == []

    def test_nested_spaces(self):
        space = OldDict(kind=OldMultiDiscrete([2, 3]), where=OldBox(-1, 1, (2,)), n=OldDiscrete(2))
        env = DingEnvWrapper(OldEnv(action_space=space))
        assert env.action_space == spaces.Dict(
            kind=spaces.MultiDiscrete([2, 3]), where=spaces.Box(-1, 1, (2,)), n=spaces.Discrete(2)
        )

    def test_halfway_to_gymnasium(self):
        class Halfway(OldEnv):
            seed = None

            def reset(self, *, seed=None, **kwargs):
                self.seeds.append(seed)
                return super().reset(), {}

            def step(self, action):
                obs, reward, done, info = super().step(action)
                return obs, reward, False, done, info

        inner = Halfway(length=1)
        env = DingEnvWrapper(inner)
        env.seed(4, dynamic_seed=False)
        assert is_truncated(run_episode(env)[1].info)
        assert inner.seeds == [4]

    def test_gymnasium_class_with_the_old_api(self):
        class Mixed(CountEnv):
            def reset(self, **kwargs):
                return super().reset(**kwargs)[0]

        with pytest.raises(EnvError, match="GymToGymnasiumWrapper"):
            DingEnvWrapper(Mixed()).reset()
        assert DingEnvWrapper(GymToGymnasiumWrapper(Mixed())).reset().tolist() == [0, 0]

    def test_what_is_no_env(self):
        with pytest.raises(EnvError, match="reset, step"):
            DingEnvWrapper(object()).reset()


class TestLifeCycle:
    def test_close_twice_and_make_again(self):
        env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
        env.close()
        env.reset()
        env.close()
        env.close()
        with pytest.raises(EnvError, match="CartPole-v1"):
            env.step(0)
        assert env.reset().shape == (4,)
        env.close()

    def test_clone(self):
        class Losing(CountEnv):
            def step(self, action):
                obs, _, *rest = super().step(action)
                return obs, -20.0, *rest

        cfg = {"max_episode_steps": 2, "rew_clip": True}  # to -10 at least, for a collector alone
        env = DingEnvWrapper(Losing(length=3), cfg)
        assert run_episode(env)[1].reward == -10
        other = env.clone("evaluator")
        trail, timestep = run_episode(other)
        assert (len(trail), timestep.reward) == (3, -20)
        assert env.build() is not other.build()
        by_id = DingEnvWrapper(cfg={"env_id": "CartPole-v1"}).clone()
        assert by_id.reset().shape == (4,)
        by_id.close()

    def test_statistics_outlive_close(self):
        cfg = {"env_id": "CartPole-v1", "env_wrapper": ["obs_norm"]}
        env = DingEnvWrapper(cfg=cfg)
        env.seed(0)
        env.reset()
        env.step(0)
        mean = env.build().rms.mean
        env.close()
        other = DingEnvWrapper(cfg=cfg)
        other.load_state_dict(env.state_dict())
        for one in (env, other):
            np.testing.assert_array_equal(one.build().rms.mean, mean)
            one.close()

    def test_state_of_other_wrappers(self):
        state = DingEnvWrapper(CountEnv(), {"env_wrapper": ["obs_norm"]})
        state.reset()
        with pytest.raises(ConfigError, match=r"env\.env_wrapper"):
            env = DingEnvWrapper(CountEnv())
            env.load_state_dict(state.state_dict())
            env.reset()

    def test_names(self):
        assert str(DingEnvWrapper(gymnasium.make("CartPole-v1"))) == "DingEnvWrapper(CartPole-v1)"

    def test_wrappers_from_the_config(self):
        cfg = {
            "env_wrapper": [
                "eval_episode_return",
                {"type": "time_limit", "kwargs": {"max_limit": 2}},
                lambda env: gymnasium.wrappers.TransformReward(env, lambda r: 10 * r),
            ]
        }
        _, timestep = run_episode(DingEnvWrapper(CountEnv(), cfg))
        assert timestep.reward.tolist() == [20.0]
        assert timestep.info["eval_episode_return"] == 3.0

    @pytest.mark.parametrize("bad", [[3], [{"kwargs": {}}], "mujoco_defualt"])
    def test_bad_wrappers(self, bad):
        with pytest.raises(ConfigError, match=r"env\.env_wrapper"):
            DingEnvWrapper(CountEnv(), {"env_wrapper": bad}).reset()
