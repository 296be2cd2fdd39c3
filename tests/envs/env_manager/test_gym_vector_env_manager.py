import gymnasium
import gymnasium.vector
import numpy as np
import pytest

from ding.envs import DingEnvWrapper
from ding.envs.env_manager.gym_vector_env_manager import GymVectorEnvManager
from ding.utils.errors import EnvError
from tests.envs.env_manager.env_fakes import CountEnv, ShortEnv, env_fns

AutoresetMode = getattr(gymnasium.vector, "AutoresetMode", None)  # not in gymnasium 1.0


needs_modes = pytest.mark.skipif(AutoresetMode is None, reason="gymnasium 1.0 knows one mode")


@pytest.fixture
def launch(launch):
    return lambda fns, cls=GymVectorEnvManager, **cfg: launch(fns, cls, **cfg)


class NextStepVectorEnv(gymnasium.vector.VectorEnv):
    """Native: episode lengths 2, 3, ...; members reset themselves in the step after the end.

    What it hands out is the same memory in each step.
    """

    metadata: dict = {"autoreset_mode": getattr(AutoresetMode, "NEXT_STEP", None)}

    def __init__(self, num_envs=1, max_episode_steps=None, offset=2):
        self.num_envs = num_envs
        self.single_observation_space = ShortEnv.observation_space
        self.single_action_space = ShortEnv.action_space
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self.lengths = np.arange(num_envs) + offset
        self.memory: dict = {}

    def _obs(self):
        return self._reused("obs", np.stack([self.episode, self.count], axis=1), np.float32)

    def _reused(self, name, values, dtype):
        array = self.memory.setdefault(name, np.zeros(values.shape, dtype))
        array[:] = values
        return array

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.np_random.random()
        self.episode, self.count = np.ones(self.num_envs), np.zeros(self.num_envs)
        self.over = np.zeros(self.num_envs, bool)
        return self._obs(), {}

    def step(self, actions):
        was_over = self.over
        self.count = np.where(was_over, 0, self.count + 1)
        self.episode = self.episode + was_over
        self.over = self.count >= self.lengths
        reward = np.where(was_over, 0.0, 1.0)
        truncated = self.over & (np.arange(self.num_envs) % 2 == 1)
        trace = self._reused("trace", np.stack([self.count] * 2, axis=1), np.int64)
        extra = {"count": self.count.copy(), "_count": self.count > 0, "trace": trace, "level": 7}
        reward = self._reused("reward", reward, np.float32)
        terminated = self._reused("terminated", self.over & ~truncated, bool)
        truncated = self._reused("truncated", truncated, bool)
        return self._obs(), reward, terminated, truncated, extra


class SameStepVectorEnv(NextStepVectorEnv):
    """Declares that members reset themselves in the step that ends their episode."""

    metadata: dict = {"autoreset_mode": getattr(AutoresetMode, "SAME_STEP", None)}


@pytest.fixture(scope="module", autouse=True)
def _registered():
    kinds = (NextStepVectorEnv, SameStepVectorEnv)
    names = [kind.__name__.removesuffix("VectorEnv") for kind in kinds]
    for name, kind in zip(names, kinds):
        gymnasium.register(
            f"DingTest/{name}-v0", entry_point=lambda **_: ShortEnv(), vector_entry_point=kind
        )
    yield
    for name in names:
        del gymnasium.registry[f"DingTest/{name}-v0"]


def named(env_id, count, **cfg):
    return [lambda: DingEnvWrapper(cfg={"env_id": env_id, **cfg})] * count


def step_all(manager):
    ids, _ = manager.ready_columns()
    return manager.step_columns(np.zeros(len(ids), np.int64), ids)


@needs_modes
@pytest.mark.parametrize("wrapped", [False, True])
def test_single_environments(launch, wrapped):
    def make(**kwargs):
        env = ShortEnv(**kwargs)
        return DingEnvWrapper(env) if wrapped else env

    fns = [lambda: make(length=2), lambda: make(length=3, truncate=True)]
    manager = launch(fns)
    start = manager.ready_columns()[1].copy()
    assert step_all(manager).reward.tolist() == [1, 1]
    step = step_all(manager)
    assert step.env_ids.tolist() == [0, 1]
    assert step.done.tolist() == [True, False]
    assert step.obs[:, 1].tolist() == [2, 2]
    assert step.infos[0]["eval_episode_return"] == 3
    assert manager.ready_columns()[1][:, 1].tolist() == [0, 2]
    step = step_all(manager)
    assert step.done.tolist() == [False, True]
    assert step.truncated.tolist() == [False, True]
    assert step.obs[1, 0] == start[1, 0]


@needs_modes
def test_members_that_reset_themselves_at_once_are_stepped_one_by_one(launch):
    manager = launch(named("DingTest/SameStep-v0", 2))
    assert not manager.steps_all
    assert step_all(manager).reward.tolist() == [1, 1]


def test_native_members_reset_themselves(launch):
    manager = launch(named("DingTest/NextStep-v0", 3))
    assert manager.steps_all
    transitions = {0: [], 1: [], 2: []}
    episodes = {0: [], 1: [], 2: []}
    held = []
    for _ in range(60):
        ids, obs = manager.ready_columns()
        assert len(ids)
        step = manager.step_columns(np.zeros(len(ids), np.int64), ids)
        arrays = [obs, step.obs, step.reward, step.done, step.truncated, step.env_ids]
        arrays += [info["trace"] for info in step.infos.values()]
        held += [(array, array.copy()) for array in arrays]
        assert step.env_ids.tolist() == ids.tolist()
        for row, env_id in enumerate(ids.tolist()):
            assert step.obs[row, 0] == obs[row, 0]  # the same episode
            assert step.obs[row, 1] == obs[row, 1] + 1  # its next step
            assert step.reward[row] == 1
            transitions[env_id].append(step.obs[row])
            if step.done[row]:
                assert step.truncated[row] == (env_id == 1)
                episodes[env_id].append(step.infos[env_id]["eval_episode_return"])
                assert step.infos[env_id]["count"] == env_id + 2
                assert step.infos[env_id]["level"] == 7
    for env_id in range(3):
        assert set(episodes[env_id]) == {env_id + 2.0}
        assert len(episodes[env_id]) > 8
    for array, copied in held:
        np.testing.assert_array_equal(array, copied)


def test_all_sit_out_at_once(launch):
    manager = launch(named("DingTest/NextStep-v0", 1), episode_num=2)
    for _ in range(2):
        assert manager.ready_obs_id == [0]
        step_all(manager)
        assert step_all(manager).done.all()
    assert manager.done
    manager.reset()
    assert manager.ready_obs_id == [0]


def test_the_dict_api(launch):
    manager = launch(named("DingTest/NextStep-v0", 2))
    obs = manager.ready_obs
    timesteps = manager.step({0: np.int64(0), 1: 1})
    assert obs[0].tolist() == [1, 0]
    assert timesteps[0].obs.tolist() == [1, 1]
    assert timesteps[0].info["count"] == 1
    assert timesteps[0].reward.shape == (1,)
    timesteps = manager.step({0: 0, 1: 1})
    assert timesteps[0].done
    assert timesteps[0].info["eval_episode_return"] == 2
    assert list(manager.ready_obs) == [1]
    with pytest.raises(EnvError, match="does not wait for an action"):
        manager.step({0: 0, 1: 0})


def test_cartpole_is_native_through_the_wrapper(launch):
    manager = launch(named("CartPole-v1", 4, max_episode_steps=20))
    assert manager.steps_all
    ended = 0
    for _ in range(20):
        ids, obs = manager.ready_columns()
        ended += int(manager.step_columns((obs[:, 2] + obs[:, 3] > 0).astype(int), ids).done.sum())
    assert ended == 4  # by the time limit: this policy balances


@pytest.mark.parametrize("action", [0, 1])
def test_cartpole_moves_as_gymnasiums_own(launch, action):
    manager = GymVectorEnvManager(named("CartPole-v1", 4))
    manager.seed([7] * 4)
    manager.launch()
    theirs = gymnasium.make_vec("CartPole-v1", 4, "vector_entry_point")
    obs, _ = theirs.reset(seed=7)
    np.testing.assert_array_equal(manager.ready_columns()[1], obs)
    ended = np.zeros(4, bool)
    while not ended.any():
        actions = np.full(4, action)
        step = manager.step_columns(actions, np.arange(4))
        obs, reward, terminated, truncated, _ = theirs.step(actions)
        np.testing.assert_array_equal(step.obs, obs)
        np.testing.assert_array_equal(step.reward, reward)
        np.testing.assert_array_equal(step.done, terminated | truncated)
        ended = step.done
    manager.close()


@pytest.mark.parametrize("native", [True, False])
def test_seeds_and_state(launch, native):
    # With actions to be clipped, an environment is another than its native version.
    fns = named("CartPole-v1", 2, clip_action=not native)

    def run(manager, count):
        return np.concatenate([step_all(manager).obs.copy() for _ in range(count)])

    first, second = (GymVectorEnvManager(fns) for _ in range(2))
    for manager in (first, second):
        manager.seed(3)
        manager.launch()
    np.testing.assert_array_equal(run(first, 50), run(second, 50))
    state = first.state_dict()
    first.reset(dict.fromkeys(range(2)))
    second.close()
    second.load_state_dict(state)
    second.launch()
    np.testing.assert_array_equal(run(first, 50), run(second, 50))
    first.close()
    second.close()


@pytest.mark.parametrize("is_launched", [False, True])
def test_videos_are_of_single_environments(is_launched, tmp_path):
    manager = GymVectorEnvManager(named("CartPole-v1", 2))
    if is_launched:
        manager.launch()
        manager.enable_save_replay(str(tmp_path))
        manager.reset()
    else:
        manager.enable_save_replay(str(tmp_path))
        manager.launch()
    assert not manager.steps_all
    while not step_all(manager).done.any():
        pass
    assert list(tmp_path.glob("CartPole-v1_episode_0001_*.mp4"))
    manager.close()


@needs_modes
def test_requests(launch):
    manager = launch(env_fns(CountEnv))
    manager.reset({2: None})
    assert manager.ready_columns()[1][:, 1].tolist() == [1, 1, 2, 1]
    assert [cfg["id"] for cfg in manager.cfg] == [0, 1, 2, 3]
    assert set(manager.random_action()) == {0, 1, 2, 3}
    native = launch(named("DingTest/NextStep-v0", 2))
    with pytest.raises(EnvError, match="cannot be reset alone"):
        native.reset({0: None})
    assert GymVectorEnvManager.default_config().shared_memory is False
