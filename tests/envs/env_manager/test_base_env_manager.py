import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import (
    AsyncSubprocessEnvManager,
    BaseEnvManager,
    BaseEnvManagerV2,
    BaseEnvTimestep,
    DingEnvWrapper,
    SyncSubprocessEnvManager,
    create_env_manager,
    get_env_manager_cls,
)
from ding.envs.env_manager.base_env_manager import timeout_wrapper
from ding.utils.errors import (
    ActionError,
    ConfigError,
    DataError,
    EnvError,
    EnvTimeoutError,
    UnknownTypeError,
)
from tests.envs.env_manager import env_fakes
from tests.envs.env_manager.env_fakes import (
    BoxActionEnv,
    CountEnv,
    ShortEnv,
    TupleObsEnv,
    TwoPlayerEnv,
    env_fns,
    one_faulty,
    zeros,
)

BOTH = pytest.mark.parametrize("cls", [BaseEnvManager, SyncSubprocessEnvManager])


def recorded(fns, made):
    """`fns`, which also put what they make into a list."""
    return [lambda fn=fn: made.append(fn()) or made[-1] for fn in fns]


def test_dict_api_hands_out_copies(launch):
    manager = launch(env_fns(CountEnv))
    obs = manager.ready_obs
    assert list(obs) == [0, 1, 2, 3]
    np.testing.assert_array_equal(obs[2], [2, 1, 0, 0])
    timesteps = manager.step(zeros(manager))
    np.testing.assert_array_equal(obs[2], [2, 1, 0, 0])
    first = timesteps[1].obs
    manager.step(zeros(manager))
    np.testing.assert_array_equal(first, [1, 1, 1, 0])
    assert timesteps[1].reward.shape == (1,)
    assert timesteps[1].done is False


def test_an_episode_ends_with_its_last_observation_and_the_next_starts(launch):
    manager = launch(env_fns(CountEnv, length=2))
    manager.step(zeros(manager))
    timesteps = manager.step(zeros(manager))
    assert timesteps[0].done
    np.testing.assert_array_equal(timesteps[0].obs, [0, 1, 2, 0])
    assert timesteps[0].info["eval_episode_return"] == 3.0
    np.testing.assert_array_equal(manager.ready_obs[0], [0, 2, 0, 0])


def test_columns_agree_with_dicts(launch):
    rows, columns = launch(env_fns(CountEnv)), launch(env_fns(CountEnv))
    assert columns.supports_columns
    for _ in range(7):
        ids, obs = columns.ready_columns()
        np.testing.assert_array_equal(obs, np.stack(list(rows.ready_obs.values())))
        before = obs.copy()
        timesteps = rows.step(zeros(rows))
        step = columns.step_columns(np.zeros(4, np.int64), ids)
        np.testing.assert_array_equal(obs, before)  # still holds after the step
        for i in range(4):
            np.testing.assert_array_equal(step.obs[i], timesteps[i].obs)
            assert step.reward[i] == timesteps[i].reward
            assert step.done[i] == timesteps[i].done
        assert step.reward.dtype == np.float32
        assert step.reward.shape == (4,)
        assert set(step.infos) == {i for i in range(4) if timesteps[i].done}
        assert step.abnormal is None


def test_truncated_episodes_are_distinguished(launch):
    manager = launch(
        env_fns(CountEnv, count=1, length=1) + env_fns(CountEnv, 1, length=1, truncate=1)
    )
    step = manager.step_columns(np.zeros(2, int), np.arange(2))
    assert step.done.tolist() == [True, True]
    assert step.truncated.tolist() == [False, True]


def test_episode_num_and_done(launch):
    manager = launch(env_fns(CountEnv, 1, length=1) + env_fns(CountEnv, 1, length=2), episode_num=2)
    manager.step(zeros(manager))
    manager.step(zeros(manager))
    assert manager.env_state_done(0)
    assert manager.ready_obs_id == [1]
    assert not manager.done
    ids, obs = manager.ready_columns()
    step = manager.step_columns(np.zeros(1, int), ids)
    assert step.env_ids.tolist() == [1]
    np.testing.assert_array_equal(obs, [[0, 2, 0, 0]])
    np.testing.assert_array_equal(step.obs, [[0, 2, 1, 0]])
    manager.step({1: 0})
    assert manager.done
    assert manager.ready_obs == {}
    with pytest.raises(EnvError, match=r"env 0 does not wait.*DONE"):
        manager.step({0: 0})
    manager.reset()
    assert manager.ready_obs_id == [0, 1]


def test_without_auto_reset_the_caller_resets(launch):
    manager = launch(env_fns(CountEnv, 2, length=1), auto_reset=False)
    manager.step(zeros(manager))
    assert manager.ready_obs_id == []
    assert not manager.done
    manager.reset({0: {"level": 3}})
    assert manager.ready_obs_id == [0]
    assert manager.reset_kwargs[0] == {"level": 3}


def test_subset_of_environments(launch):
    manager = launch(env_fns(CountEnv))
    step = manager.step_columns(np.array([1, 2]), np.array([3, 1]))
    np.testing.assert_array_equal(step.obs[:, 0], [3, 1])
    _, obs = manager.ready_columns()
    np.testing.assert_array_equal(obs[:, 2], [0, 1, 0, 1])
    with pytest.raises(EnvError, match="twice"):
        manager.step_columns(np.array([1, 2]), np.array([1, 1]))
    with pytest.raises(DataError, match="3 actions came for 2"):
        manager.step_columns(np.zeros(3, int), np.array([1, 2]))


def test_observations_that_are_no_columns(launch):
    manager = launch(env_fns(TupleObsEnv))
    assert not manager.supports_columns
    obs = manager.ready_obs[1]
    timestep = manager.step(zeros(manager))[1]
    np.testing.assert_array_equal(obs[0], [1, 1, 0, 0])
    assert timestep.obs[1] == "text"
    manager.step(zeros(manager))
    last = manager.step(zeros(manager))[1]
    assert last.done
    np.testing.assert_array_equal(last.obs[0], [1, 1, 3, 0])
    np.testing.assert_array_equal(manager.ready_obs[1][0], [1, 2, 0, 0])
    with pytest.raises(DataError, match="use ready_obs"):
        manager.ready_columns()


def test_a_shape_that_changes_in_dicts(launch):
    manager = launch(one_faulty(fault="shape"))
    manager.step(zeros(manager))
    assert manager.step(zeros(manager))[1].obs.shape == (5,)
    assert not manager.supports_columns


@BOTH
def test_pictures_of_wider_numbers_become_bytes(launch, cls):
    class Pictures(ShortEnv):
        observation_space = spaces.Box(0, 255, (2, 2), np.uint8)

        def reset(self, **kwargs):
            return np.full((2, 2), 200), super().reset(**kwargs)[1]

        def step(self, action):
            return np.full((2, 2), 201), *super().step(action)[1:]

    manager = launch([lambda: DingEnvWrapper(Pictures())] * 2, cls)
    step = manager.step_columns(np.zeros(2, int), np.arange(2))
    assert [step.obs.dtype, step.obs[0, 0, 0]] == [np.uint8, 201]
    assert manager.ready_columns()[1].dtype == np.uint8


@BOTH
def test_a_shape_that_changes_in_columns(launch, cls):
    manager = launch(one_faulty(fault="shape"), cls)
    manager.step_columns(np.zeros(4, int), np.arange(4))
    with pytest.raises(DataError, match=r"env 1 gave as observation .*\(5,\)"):
        manager.step_columns(np.zeros(4, int), np.arange(4))


def test_players_have_rewards_each(launch):
    manager = launch(env_fns(TwoPlayerEnv))
    step = manager.step_columns(np.zeros(4, int), np.arange(4))
    assert step.reward.tolist() == [[1, -1]] * 4


@pytest.mark.parametrize("action", [3, -1])
def test_discrete_actions_are_checked(launch, action):
    manager = launch(env_fns(CountEnv))
    with pytest.raises(ActionError, match="env 2 cannot take action") as caught:
        manager.step_columns(np.array([0, 0, action, 0]), np.arange(4))
    assert caught.value.env_id == 2
    with pytest.raises(ActionError, match="env 2"):
        manager.step({0: 0, 1: 0, 2: action, 3: 0})
    with pytest.raises(ActionError, match="float64"):
        manager.step_columns(np.zeros(4), np.arange(4))
    for no_number in (np.zeros(0, int), [], None, {"action": 1}):
        with pytest.raises(ActionError, match=r"env 1 .*expected whole numbers"):
            manager.step({0: 0, 1: no_number})
    assert manager.ready_obs[0][2] == 0  # nothing was stepped


def test_actions_of_several_agents_in_the_space_of_one(launch):
    class TwoAgents(CountEnv):
        def step(self, action):
            assert action.shape == (2,)
            return super().step(action[:1])

    manager = launch(env_fns(TwoAgents))
    manager.step_columns(np.zeros((4, 2), int), np.arange(4))
    manager.step({env_id: np.zeros(2, int) for env_id in range(4)})
    with pytest.raises(ActionError, match="env 1 cannot take action"):
        manager.step_columns(np.array([[0, 0], [0, 9], [0, 0], [0, 0]]), np.arange(4))
    with pytest.raises(ActionError, match="env 1 cannot take action"):
        manager.step({0: np.zeros(2, int), 1: np.array([0, 9])})


def test_continuous_actions_are_checked_and_not_changed(launch):
    manager = launch(env_fns(BoxActionEnv))
    actions = np.ones((4, 2), np.float32)
    manager.step_columns(actions, np.arange(4))
    assert actions.all()
    actions[3, 1] = np.nan
    with pytest.raises(ActionError, match=r"env 3.*NaN"):
        manager.step_columns(actions, np.arange(4))
    with pytest.raises(ActionError, match=r"\(4, 3\) came; \(4, 2\) was"):
        manager.step_columns(np.ones((4, 3), np.float32), np.arange(4))


@pytest.mark.parametrize("fault", ["nan_reward", "nan_obs"])
@pytest.mark.parametrize("columns", [True, False])
@BOTH
def test_nan_is_an_error(launch, fault, columns, cls):
    manager = launch(one_faulty(fault=fault), cls)
    with pytest.raises(DataError, match=r"env 1 gave .*[nN]a[nN].* step 2") as caught:
        for _ in range(3):
            if columns:
                manager.step_columns(np.zeros(4, int), manager.ready_columns()[0])
            else:
                manager.step(zeros(manager))
    assert isinstance(caught.value, EnvError)


def test_big_finite_rewards_pass(launch):
    class Rich(CountEnv):
        changes = dict(reward=1e30)

    manager = launch(env_fns(Rich))
    assert manager.step_columns(np.zeros(4, int), np.arange(4)).reward[0] == np.float32(1e30)


def test_a_failing_step_names_env_and_cause(launch):
    manager = launch(one_faulty(fault="raise"))
    manager.step(zeros(manager))
    with pytest.raises(EnvError, match=r"env 1 \(FaultyEnv.*the env's own words") as caught:
        manager.step(zeros(manager))
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.env_id == 1


@pytest.mark.parametrize("where", ["init", "reset"])
@BOTH
def test_launch_that_fails_closes_again(where, cls):
    manager = cls(one_faulty(fault="raise", where=where))
    with pytest.raises(EnvError, match=r"env 1 .*the env's own words") as caught:
        manager.launch()
    cause = caught.value.__cause__
    assert cls is BaseEnvManager or "in _fault" in str(cause and cause.__cause__)
    assert manager.closed
    manager.close()


@pytest.mark.parametrize("retry_type", ["reset", "renew"])
@pytest.mark.parametrize("columns", [True, False])
def test_a_failing_step_is_recovered_if_asked(launch, tmp_path, retry_type, columns):
    fns = one_faulty(fault="raise", once=str(tmp_path / "mark"))
    made: list = []
    fns = recorded(fns, made)
    manager = launch(fns, max_retry=2, retry_type=retry_type, retry_waiting_time=0)
    failed = made[1]
    manager.step(zeros(manager))
    if columns:
        step = manager.step_columns(np.zeros(4, int), np.arange(4))
        assert step.abnormal.tolist() == [False, True, False, False]
        obs, reward, done, info = step.obs[1], step.reward[1], step.done[1], step.infos[1]
    else:
        obs, reward, done, info = manager.step(zeros(manager))[1]
        assert reward.shape == (1,)
    assert info["abnormal"]
    assert reward == 0
    assert not done
    assert obs[2] == 0
    assert failed.closed == (retry_type == "renew")
    assert manager.step(zeros(manager))[1].obs[2] == 1


@pytest.mark.parametrize("fails_until", [2, 3])
def test_a_step_is_tried_max_retry_times(launch, fails_until):
    class Failing(CountEnv):
        calls = 0

        def step(self, action):
            Failing.calls += 1
            if Failing.calls <= fails_until or Failing.calls == fails_until + 2:
                raise RuntimeError("the env's own words")
            return super().step(action)

    manager = launch([Failing], max_retry=3, retry_waiting_time=0)
    for _ in range(2):
        assert manager.step_columns(np.zeros(1, int), np.arange(1)).abnormal.all()
    if fails_until == 3:
        with pytest.raises(EnvError, match=r"env 0 .*the env's own words"):
            manager.step_columns(np.zeros(1, int), np.arange(1))
        return
    manager.reset()
    for abnormal in (None, [True], None):  # one that has succeeded in between has all its tries
        step = manager.step_columns(np.zeros(1, int), np.arange(1))
        assert step.abnormal is abnormal or step.abnormal.tolist() == abnormal


def test_a_failing_reset_is_tried_again(launch, tmp_path):
    fns = one_faulty(fault="raise", where="reset", once=str(tmp_path / "mark"))
    manager = launch(fns, max_retry=2, retry_waiting_time=0)
    assert manager.ready_obs_id == [0, 1, 2, 3]


def test_an_env_that_reports_an_abnormal_step(launch):
    manager = launch(one_faulty(fault="abnormal"))
    manager.step(zeros(manager))
    step = manager.step_columns(np.zeros(4, int), np.arange(4))
    assert step.abnormal.tolist() == [False, True, False, False]
    np.testing.assert_array_equal(step.obs[1], [1, 2, 0, 0])


@pytest.fixture
def released():
    """At the end, environments that hang go on."""
    yield
    env_fakes.RELEASE.set()
    for thread in threading.enumerate():
        if thread.name == "env-call":
            thread.join(10)
    env_fakes.RELEASE.clear()


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_hanging_step_times_out(in_thread, released):
    def run():
        manager = BaseEnvManager(one_faulty(fault="hang"), EasyDict(step_timeout=0.2))
        manager.launch()
        manager.step(zeros(manager))
        with pytest.raises(EnvTimeoutError, match=r"^env 1 \(Fau.*finish step\(\) .*=0\.2 s$"):
            manager.step(zeros(manager))
        manager.close()

    if in_thread:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(run).result()
    else:
        run()


def test_a_hanging_reset_times_out():
    manager = BaseEnvManager(one_faulty(fault="hang", where="reset"), {"reset_timeout": 0.2})
    with pytest.raises(EnvTimeoutError, match=r"reset_timeout=0\.2"):
        manager.launch()


def test_timeout_wrapper_leaves_quick_calls_alone():
    @timeout_wrapper(timeout=5)
    def quick(a, b=1):
        return a + b

    assert quick(1, b=2) == 3
    with pytest.raises(TimeoutError):
        timeout_wrapper(time.sleep, 0.05)(10)
    with pytest.raises(ZeroDivisionError):
        timeout_wrapper(lambda: 1 / 0, 5)()


@BOTH
def test_seeds(launch, cls):
    manager = cls(env_fns(CountEnv, 3))
    manager.seed([10, 11, 12], dynamic_seed=False)
    manager.launch()
    assert [obs[3] for obs in manager.ready_obs.values()] == [10, 11, 12]
    assert manager.dynamic_seed[0] is False
    manager.seed({1: 7})
    manager.reset()
    assert [obs[3] for obs in manager.ready_obs.values()] == [10, 7, 12]
    manager.seed([1, 2, 3])
    manager.reset({2: None})
    assert manager.ready_obs[2][3] == 3
    with pytest.raises(ConfigError, match="2 seeds came for 3"):
        manager.seed([1, 2])
    manager.close()


@BOTH
def test_state_goes_on_in_another_manager(launch, cls):
    first = launch(env_fns(CountEnv, length=2), cls)
    first.seed(5)
    first.reset()
    for _ in range(5):
        first.step(zeros(first))
    state = first.state_dict()
    first.reset(dict.fromkeys(range(4)))
    second = cls(env_fns(CountEnv, length=2))
    second.load_state_dict(state)
    second.launch()
    third = launch(env_fns(CountEnv, length=2), cls)
    third.load_state_dict(state)
    for i in range(4):
        np.testing.assert_array_equal(second.ready_obs[i], first.ready_obs[i])
        np.testing.assert_array_equal(third.ready_obs[i], first.ready_obs[i])
    second.close()
    with pytest.raises(DataError, match="of 4 environments, the manager has 2"):
        launch(env_fns(CountEnv, 2), cls).load_state_dict(state)


@BOTH
def test_requests_reach_the_environments(launch, cls):
    manager = launch(env_fns(CountEnv), cls)
    assert manager.reward_shaping(1, [{"reward": 2}]) == [{"reward": 4}]
    assert manager.ready_imgs[3][0, 0, 0] == 3
    assert set(manager.random_action()) == {0, 1, 2, 3}
    assert [cfg["id"] for cfg in manager.cfg] == [0, 1, 2, 3]
    assert [obs[0] for obs in manager.ready_obs.values()] == [0, 1, 2, 3]
    with pytest.raises(AttributeError, match="no_such"):
        _ = manager.no_such
    assert manager.observation_space.shape == (4,)
    assert manager.reward_space.shape == (1,)
    assert manager.env_num == 4
    with pytest.raises(EnvError, match=r"env 1 .*enable_save_figure"):
        manager.enable_save_figure(1, "somewhere")
    assert manager.ready_obs_id == [0, 1, 2, 3]
    assert "step" in manager.method_name_list


def test_use_before_launch_and_after_close():
    made: list = []
    manager = BaseEnvManager(recorded(env_fns(CountEnv), made))
    assert manager.closed
    assert manager.action_space.n == 3
    for use in (lambda: manager.ready_obs, lambda: manager.step({0: 0}), manager.reset):
        with pytest.raises(EnvError, match=r"call launch\(\)"):
            use()
    manager.launch()
    with pytest.raises(EnvError, match="launched already"):
        manager.launch()
    manager.close()
    manager.close()
    assert len(made) >= 4
    assert all(env.closed for env in made)
    with pytest.raises(EnvError, match="closed"):
        manager.step_columns(np.zeros(4, int), np.arange(4))
    manager.launch()
    assert manager.ready_obs_id == [0, 1, 2, 3]
    manager.close()


@pytest.mark.parametrize("kind", ["base_v2", "subprocess_v2"])
def test_second_version(kind):
    manager = create_env_manager(EasyDict(type=kind, episode_num=2), env_fns(CountEnv, length=1))
    manager.launch()
    assert manager.supports_columns
    assert manager.ready_obs.shape == (4, 4)
    timesteps = manager.step([np.int64(0)] * 4)
    assert [t.env_id for t in timesteps] == [0, 1, 2, 3]
    assert timesteps[2].done
    manager.step(np.zeros(4, int))
    assert manager.done
    assert manager.ready_obs.shape == (0, 4)
    manager.close()


def test_second_version_hands_out_copies_of_observations_that_are_no_arrays(launch):
    class Listed(CountEnv):
        def reset(self, **kwargs):
            return super().reset(**kwargs).tolist()

    manager = launch(env_fns(Listed), BaseEnvManagerV2)
    first = manager.ready_obs
    assert [obs[0] for obs in first] == [0, 1, 2, 3]
    first[1][0] = 7
    assert manager.ready_obs[1][0] == 1


def test_a_subclass_that_changes_the_dict_api_has_no_columns(launch):
    class Doubled(BaseEnvManager):
        def step(self, actions):
            found = super().step(actions).items()
            return {i: BaseEnvTimestep(t.obs, t.reward * 2, t.done, t.info) for i, t in found}

    manager = launch(env_fns(CountEnv), Doubled)
    assert not manager.supports_columns
    assert manager.step(zeros(manager))[0].reward == 2

    class Named(BaseEnvManager):
        pass

    assert launch(env_fns(CountEnv), Named).supports_columns


def test_factory_and_config():
    cfg = BaseEnvManager.default_config()
    assert cfg.cfg_type == "BaseEnvManagerDict"
    assert get_env_manager_cls(EasyDict(type="base")) is BaseEnvManager
    with pytest.raises(UnknownTypeError):
        get_env_manager_cls(EasyDict(type="bass"))
    assert SyncSubprocessEnvManager.default_config().wait_num == float("inf")
    assert AsyncSubprocessEnvManager.default_config().wait_num == 2
    for key, wrong in (("retry_type", "again"), ("max_retry", 0), ("step_timeout", "long")):
        with pytest.raises(ConfigError, match=f"{key} is {wrong!r}"):
            BaseEnvManager(env_fns(CountEnv), {key: wrong})
    with pytest.raises(ConfigError, match="env_fn"):
        BaseEnvManager([], EasyDict())
