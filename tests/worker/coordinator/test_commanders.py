import json
import math

import pytest
import torch
from easydict import EasyDict

from ding.policy import DQNPolicy
from ding.policy.base_policy import warn_of_no_gpu
from ding.utils import deep_merge_dicts
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.worker import (
    BaseCommander,
    NaiveCommander,
    SoloCommander,
    create_parallel_commander,
    get_parallel_commander_cls,
)
from tests.fakes import Writer

INTERVAL = 5


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def config(commander=None, env=None, **policy):
    """What a compiled main config of DQN holds."""
    cfg = dict(
        exp_name="some/run",
        seed=3,
        env=dict(
            collector_env_num=8,
            collector_episode_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=5,
            stop_value=195,
            manager=dict(type="base", episode_num=math.inf),
        )
        | (env or {}),
        policy=dict(
            type="dqn_command",
            learn=dict(learner=dict(train_iterations=100, send_policy_freq=2)),
            collect=dict(n_sample=16, collector=dict(type="zergling", update_policy_second=1)),
            other=dict(
                replay_buffer=dict(type="advanced", replay_buffer_size=50),
                commander=dict(
                    type="solo",
                    collector_task_space=2,
                    learner_task_space=1,
                    eval_interval=INTERVAL,
                    eval_share=0.0,
                    greedy_share=0.0,
                )
                | (commander or {}),
            ),
            **policy,
        ),
    )
    cfg["policy"] = deep_merge_dicts(DQNPolicy.default_config(), cfg["policy"])
    return EasyDict(cfg)


def made(first_eval=False, **kwargs):
    """A commander; by default without its first evaluation, which is tested separately."""
    commander = create_parallel_commander(config(**kwargs))
    commander.clock = Clock()
    if not first_eval:
        commander._begins_with_eval = False
    return commander


@pytest.fixture
def commander():
    return made()


def evaluation(commander):
    """The next evaluation."""
    commander.clock.now += INTERVAL
    task = commander.get_collector_task()
    assert task["collector_cfg"]["eval_flag"]
    return task


def counts(commander):
    """Updates and env steps of the policy that is trained."""
    trainee = commander.state_dict()["trainees"][-1]
    return trainee["learner_step"], trainee["envstep"]


def finish_evaluation(commander, reward_mean, **info):
    task = evaluation(commander)
    info = {"eval_flag": True, "reward_mean": reward_mean, "policy_iter": 1, **info}
    return commander.finish_collector_task(task["task_id"], info)


# Types


def test_commanders_are_found_by_their_type():
    assert get_parallel_commander_cls(config()) is SoloCommander
    assert get_parallel_commander_cls(EasyDict(type="naive")) is NaiveCommander
    flat = EasyDict(parallel_commander_type="naive", import_names=["json"])
    assert isinstance(create_parallel_commander(flat), NaiveCommander)
    with pytest.raises(UnknownTypeError, match="did you mean 'solo'"):
        create_parallel_commander(config(commander={"type": "sol"}))
    with pytest.raises(ConfigError, match=r"policy.other.commander.type, for instance 'solo'"):
        create_parallel_commander(EasyDict(collector_task_space=1))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_missing_is_reported_by_the_coordinator_too(caplog):
    warn_of_no_gpu.cache_clear()
    made(cuda=True)
    assert [line for line in caplog.messages if "no CUDA device" in line]


@pytest.mark.parametrize("value", [-1, "2", True, None])
def test_spaces_are_numbers(value):
    with pytest.raises(ConfigError, match="collector_task_space is"):
        NaiveCommander(EasyDict(collector_task_space=value))


def test_a_commander_of_ones_own_needs_to_make_collector_tasks_only():
    class OneTask(BaseCommander):
        config = dict(color="red")

        def get_collector_task(self):
            return {"task_id": "it"}

    assert OneTask.default_config() == {"color": "red", "cfg_type": "OneTaskDict"}
    commander = OneTask()
    assert commander.judge_collector_finish("it", {"collector_done": True}) is True
    assert commander.judge_collector_finish("it", {"cur_step": 3}) is False
    assert commander.judge_learner_finish("it", {"learner_done": True}) is True
    assert commander.judge_learner_finish("it", {}) is False
    commander.update_collect_progress("it", {})
    commander.load_state_dict(commander.state_dict())
    assert commander.weights_files() == []


# Naive


def test_naive_keeps_as_many_tasks_open_as_there_is_space():
    commander = NaiveCommander(EasyDict(collector_task_space=2, learner_task_space=1))
    tasks = [commander.get_collector_task() for _ in range(3)]
    assert tasks[2] is None
    assert tasks[0].task_id != tasks[1].task_id
    learner_task = commander.get_learner_task()
    assert commander.get_learner_task() is None
    assert learner_task.buffer_id == tasks[0].buffer_id
    assert learner_task.policy_id == tasks[0].collector_cfg.policy_update_path

    commander.finish_collector_task(tasks[0]["task_id"], {})
    assert commander.collector_task_finish_count == 1
    again = commander.get_collector_task()
    assert again.task_id not in {task.task_id for task in tasks[:2]}
    assert commander.get_collector_task() is None
    commander.increase_collector_task_space()
    assert commander.get_collector_task()
    commander.decrease_collector_task_space()
    assert commander.collector_task_count == 3
    buffer_id = learner_task["buffer_id"]
    assert commander.finish_learner_task(learner_task["task_id"], {}) == buffer_id
    assert (commander.learner_task_finish_count, commander.learner_task_count) == (1, 0)
    assert commander.get_learner_task()


def test_naive_sets_how_much_to_explore():
    commander = create_parallel_commander(config(commander={"type": "naive"}))
    first = commander.get_collector_task()
    assert first.collector_cfg.collect_setting == {"eps": pytest.approx(0.95)}
    for steps in (1000, 4000, 3000):
        commander.update_collect_progress(first.task_id, {"cur_step": steps})
    setting = commander.get_collector_task().collector_cfg.collect_setting
    assert setting.eps == pytest.approx(0.1 + 0.85 * math.exp(-0.4))
    other = create_parallel_commander(config(commander={"type": "naive"}))
    other.load_state_dict(json.loads(json.dumps(commander.state_dict())))
    assert other.get_collector_task().collector_cfg.collect_setting == setting


@pytest.mark.parametrize(("episodes", "closed"), [(None, True), (2, False)])
def test_naive_gives_endless_tasks_new_settings_now_and_then(episodes, closed):
    commander = made(commander={"type": "naive"}, env={"collector_episode_num": episodes})
    task = commander.get_collector_task()
    commander.clock.now += INTERVAL - 1
    assert not commander.judge_collector_finish(task.task_id, {})
    commander.clock.now += 1
    assert commander.judge_collector_finish(task.task_id, {}) is closed
    assert commander.judge_collector_finish(task.task_id, {"collector_done": True})
    assert not commander.judge_collector_finish("unknown", {})


@pytest.mark.parametrize(("episodes", "closed"), [(None, True), (2, False)])
def test_endless_tasks_do_not_explore_much_longer_than_they_should(episodes, closed):
    commander = made(env={"collector_episode_num": episodes})
    commander.get_learner_task()
    task = commander.get_collector_task()
    assert task.collector_cfg.collect_setting.eps == 0.95
    commander.update_collect_progress(task.task_id, {"cur_step": 1000})  # 0.87 now
    assert not commander.judge_collector_finish(task.task_id, {})
    commander.update_collect_progress(task.task_id, {"cur_step": 1500})  # 0.84 now
    assert commander.judge_collector_finish(task.task_id, {}) is closed
    assert commander.get_collector_task().collector_cfg.collect_setting.eps < 0.85


def test_naive_goes_on_from_its_state():
    first, second = NaiveCommander(EasyDict()), NaiveCommander(EasyDict())
    first.finish_collector_task(first.get_collector_task()["task_id"], {})
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert second.collector_task_finish_count == 1
    assert second.get_collector_task()
    assert second.get_learner_task()


# Solo: learners


def test_a_learner_task_says_what_to_train_and_with_what(commander):
    assert commander.get_collector_task() is None  # no learner to collect for
    task = commander.get_learner_task()
    assert commander.get_learner_task() is None
    cfg = config()
    assert task["learner_cfg"] == {**cfg.policy.learn.learner, "exp_name": "some/run"}
    assert task["replay_buffer_cfg"] == cfg.policy.other.replay_buffer
    assert task["policy"] == cfg.policy
    json.dumps(task)
    assert task.policy.learn.learner.train_iterations == 100  # attribute dicts
    task["policy"]["learn"]["learner"].clear()
    assert commander.weights_files() == [task["policy_id"]]


def test_two_runs_share_no_names():
    first, second = made().get_learner_task(), made().get_learner_task()
    for key in ("task_id", "policy_id", "buffer_id"):
        assert first[key] != second[key]


def test_the_learner_after_a_failed_one_goes_on_with_its_policy_and_data(commander):
    failed = commander.get_learner_task()
    for _ in range(2):
        commander.notify_fail_learner_task(failed)
    task = commander.get_learner_task()
    assert commander.get_learner_task() is None
    assert task["task_id"] != failed["task_id"]
    for key in ("policy_id", "buffer_id"):
        assert task[key] == failed[key]
    commander.update_learner_info(failed["task_id"], {"learner_step": 50})
    assert counts(commander)[0] == 0  # of a task that failed
    commander.update_learner_info(task["task_id"], {"learner_step": 7})
    commander.update_learner_info(task["task_id"], {"learner_step": 5})
    assert counts(commander)[0] == 7


def test_a_learner_that_is_stopped_is_followed_by_a_new_policy(commander):
    first = commander.get_learner_task()
    assert (
        commander.finish_learner_task(first["task_id"], {"learner_step": 10}) == first["buffer_id"]
    )
    assert commander.get_collector_task() is None
    second = commander.get_learner_task()
    assert second["buffer_id"] != first["buffer_id"]
    assert commander.get_collector_task()["buffer_id"] == second["buffer_id"]


def test_an_unknown_learner_task_changes_nothing(commander):
    commander.notify_fail_learner_task({"task_id": "of before"})
    commander.notify_fail_learner_task({})
    assert commander.finish_learner_task("of before", {"buffer_id": "old"}) == "old"
    assert commander.get_learner_task()
    assert commander.get_learner_task() is None


# Solo: collectors


def test_a_collector_task_says_whom_to_collect_for_and_how(commander):
    learner_task = commander.get_learner_task()
    task = commander.get_collector_task()
    own = task["collector_cfg"]
    assert task["buffer_id"] == learner_task["buffer_id"]
    assert own["policy_update_path"] == learner_task["policy_id"]
    assert (own["type"], own["update_policy_second"]) == ("zergling", 1)
    assert own["eval_flag"] is False
    assert own["collect_setting"] == {"eps": pytest.approx(0.95)}
    assert own["env"]["manager"] == {"type": "base", "episode_num": 2}
    assert own["exp_name"] == "some/run"
    assert own["policy"]["collect"]["n_sample"] == 16
    json.dumps(task)
    other = commander.get_collector_task()
    # Environments of a task take consecutive seeds.
    assert abs(other["collector_cfg"]["seed"] - own["seed"]) >= 100
    assert commander.get_collector_task() is None


def collect(commander):
    """The next task of a collector, and the ε that it has."""
    task = commander.get_collector_task()
    assert not task["collector_cfg"]["eval_flag"]
    return task["task_id"], task["collector_cfg"]["collect_setting"]["eps"]


LEAST_EPS = 0.1


def test_a_share_of_the_collectors_explores_little():
    commander = made(commander=dict(greedy_share=0.5, collector_task_space=4))
    commander.get_learner_task()
    tasks = [collect(commander) for _ in range(4)]
    assert [eps for _, eps in tasks] == [pytest.approx(0.95), LEAST_EPS] * 2
    # A new task takes the place of a finished one.
    for task_id, eps in tasks:
        commander.finish_collector_task(task_id, {"step_count": 10, "real_episode_count": 1})
        assert collect(commander)[1] == pytest.approx(eps, rel=0.01)


def test_scalars_of_greedy_collectors_are_their_own():
    commander = made(commander=dict(greedy_share=0.5, collector_task_space=2))
    commander.tb_logger = writer = Writer()
    commander.get_learner_task()
    for eps in (0.9, 0.05):
        report = {"step_count": 10, "collect_setting": {"eps": eps}}
        commander.finish_collector_task(collect(commander)[0], report)
    assert writer.last["collector_step/eps"] == (0.9, 10)
    assert writer.last["collector_greedy_step/eps"] == (0.05, 20)


def test_a_single_collector_takes_turns_by_its_steps():
    commander = made(commander=dict(greedy_share=0.5, collector_task_space=1))
    commander.get_learner_task()
    steps, seen = {True: 0, False: 0}, []
    for _ in range(40):
        task_id, eps = collect(commander)
        is_greedy = eps == LEAST_EPS
        length = 150 if is_greedy else 20
        steps[is_greedy] += length
        seen.append(is_greedy)
        commander.finish_collector_task(task_id, {"step_count": length, "real_episode_count": 1})
    assert abs(steps[True] - steps[False]) <= 150
    assert seen[:3] == [False, True, False]
    other = made(commander=dict(greedy_share=0.5, collector_task_space=1))
    other.load_state_dict(json.loads(json.dumps(commander.state_dict())))
    other.get_learner_task()
    assert (collect(other)[1] == LEAST_EPS) == (steps[True] < steps[False])


def test_cheap_evaluations_come_sooner():
    commander = made(commander=dict(eval_share=0.1))
    commander.get_learner_task()
    task = evaluation(commander)
    commander.clock.now += 0.2  # of two collectors' time, a tenth in all
    commander.finish_collector_task(task["task_id"], {"reward_mean": 9.0, "policy_iter": 1})
    commander.clock.now += 0.79
    assert not commander.get_collector_task()["collector_cfg"]["eval_flag"]
    commander.clock.now += 0.02
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]


@pytest.mark.parametrize(
    ("took", "share", "goal"), [(0.2, 0.1, math.inf), (0.2, 0.0, 195), (2.0, 0.1, 195)]
)
def test_others_come_at_their_interval(took, share, goal):
    commander = made(commander=dict(eval_share=share), env=dict(stop_value=goal))
    commander.get_learner_task()
    task = evaluation(commander)
    commander.clock.now += took
    commander.finish_collector_task(task["task_id"], {"reward_mean": 9.0, "policy_iter": 1})
    commander.clock.now += INTERVAL - took - 0.1
    assert not commander.get_collector_task()["collector_cfg"]["eval_flag"]
    commander.clock.now += 0.2
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]


@pytest.mark.parametrize("interval", [0, INTERVAL])
def test_a_single_collector_collects_as_long_as_it_evaluates(interval):
    commander = made(commander=dict(collector_task_space=1, eval_interval=interval))
    commander.get_learner_task()
    for _ in range(2):
        task = evaluation(commander)
        commander.clock.now += 3 * INTERVAL
        commander.finish_collector_task(task["task_id"], {"reward_mean": 9.0, "policy_iter": 1})
        task = commander.get_collector_task()
        assert not task["collector_cfg"]["eval_flag"]
        commander.clock.now += 3 * INTERVAL - 1
        assert not commander.judge_collector_finish(task["task_id"], {})
        commander.clock.now += 2
        assert commander.judge_collector_finish(task["task_id"], {})
        commander.finish_collector_task(task["task_id"], {"step_count": 10})


def test_exploration_follows_the_steps_that_were_collected(commander):
    commander.get_learner_task()
    task = commander.get_collector_task()
    commander.update_collect_progress(task["task_id"], {"cur_step": 4000})
    commander.update_collect_progress(task["task_id"], {"cur_step": 3000})  # came late
    assert counts(commander)[1] == 4000
    eps = commander.get_collector_task()["collector_cfg"]["collect_setting"]["eps"]
    assert eps == pytest.approx(0.1 + 0.85 * math.exp(-0.4))
    info = {"step_count": 10000, "real_episode_count": 6}
    assert commander.finish_collector_task(task["task_id"], info) is False
    assert counts(commander) == (0, 10000)


def test_steps_of_a_failed_task_count(commander):
    commander.get_learner_task()
    task = commander.get_collector_task()
    commander.update_collect_progress(task["task_id"], {"cur_step": 100})
    commander.notify_fail_collector_task(task)
    commander.update_collect_progress(task["task_id"], {"cur_step": 300})
    assert counts(commander)[1] == 100


def test_a_place_is_given_back_once(commander):
    commander.get_learner_task()
    first, second = commander.get_collector_task(), commander.get_collector_task()
    for _ in range(3):
        commander.notify_fail_collector_task(first)
        commander.finish_collector_task(first["task_id"], {})
    assert commander.get_collector_task()
    assert commander.get_collector_task() is None
    commander.finish_collector_task(second["task_id"], {})
    assert commander.get_collector_task()
    assert commander.get_collector_task() is None


def test_space_grows_and_shrinks(commander):
    commander.get_learner_task()
    tasks = [commander.get_collector_task() for _ in range(2)]
    commander.increase_collector_task_space()
    tasks.append(commander.get_collector_task())
    assert tasks[2]
    for _ in range(5):
        commander.decrease_collector_task_space()
    for task in tasks:
        commander.finish_collector_task(task["task_id"], {})
    assert commander.get_collector_task() is None
    commander.increase_collector_task_space()
    assert commander.get_collector_task()
    assert commander.get_collector_task() is None


@pytest.mark.parametrize("value", [None, "many", -5, math.nan, math.inf, True])
def test_nonsense_from_workers_counts_nothing(commander, value):
    learner_task = commander.get_learner_task()
    commander.update_learner_info(learner_task["task_id"], {"learner_step": value})
    task = commander.get_collector_task()
    commander.update_collect_progress(task["task_id"], {"cur_step": value})
    info = {"step_count": value, "real_episode_count": value, "reward_mean": value}
    assert commander.finish_collector_task(task["task_id"], info) is False
    assert counts(commander) == (0, 0)


# Solo: evaluations


def test_the_first_task_of_a_collector_is_an_evaluation():
    commander = made(first_eval=True)
    commander.get_learner_task()
    first, second = commander.get_collector_task(), commander.get_collector_task()
    assert first.collector_cfg.eval_flag
    assert not second.collector_cfg.eval_flag
    info = {"eval_flag": True, "reward_mean": 500.0, "policy_iter": 0}
    assert commander.finish_collector_task(first.task_id, info) is False  # nothing was trained
    commander.clock.now += INTERVAL - 1
    assert not commander.get_collector_task().collector_cfg.eval_flag


def test_one_evaluation_per_interval(commander):
    commander.get_learner_task()
    commander.clock.now += INTERVAL - 1
    assert not commander.get_collector_task()["collector_cfg"]["eval_flag"]
    commander.clock.now += 1
    task = commander.get_collector_task()
    own = task["collector_cfg"]
    assert own["eval_flag"] is True
    assert own["collect_setting"] == {}
    # 5 episodes in 2 environments.
    assert own["env"]["n_evaluator_episode"] == 5
    assert own["env"]["manager"]["episode_num"] == 3
    commander.increase_collector_task_space()
    commander.clock.now += INTERVAL
    assert not commander.get_collector_task()["collector_cfg"]["eval_flag"]  # never two at once
    commander.finish_collector_task(task["task_id"], {"reward_mean": 10.0, "eval_flag": True})
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]


@pytest.mark.parametrize(
    ("env", "episodes", "total"),
    [
        (dict(evaluator_episode_num=4), 4, 5),
        (dict(evaluator_episode_num=4, n_evaluator_episode=None), 4, 8),
        (dict(n_evaluator_episode=None), 1, 2),
    ],
)
def test_how_long_evaluations_are(env, episodes, total):
    commander = made(env=env)
    commander.get_learner_task()
    env = evaluation(commander)["collector_cfg"]["env"]
    assert (env["manager"]["episode_num"], env["n_evaluator_episode"]) == (episodes, total)


def test_converges_when_an_evaluation_reaches_the_stop_value(commander):
    commander.get_learner_task()
    assert finish_evaluation(commander, 194.9) is False
    assert finish_evaluation(commander, 150.0) is False
    assert finish_evaluation(commander, 200.0) is True
    assert commander.converged_reason == "mean return 200 reached stop_value 195"
    assert commander.get_collector_task() is None
    assert commander.get_learner_task() is None


@pytest.mark.parametrize(
    ("info", "is_reached"),
    [
        ({"reward_mean": 500.0, "policy_iter": 0}, False),  # weights that were never trained
        ({"reward_mean": 500.0, "policy_iter": None}, False),
        ({"reward_mean": 195}, True),  # a foreign evaluation
    ],
)
def test_only_weights_that_were_trained_converge(commander, info, is_reached):
    commander.get_learner_task()
    task_id = evaluation(commander)["task_id"]
    assert commander.finish_collector_task(task_id, {"eval_flag": True, **info}) is is_reached
    assert (commander.converged_reason is not None) is is_reached


def test_a_good_collection_does_not_converge(commander):
    commander.get_learner_task()
    task = commander.get_collector_task()
    info = {"eval_flag": False, "reward_mean": 500.0, "policy_iter": 9}
    assert commander.finish_collector_task(task["task_id"], info) is False


@pytest.mark.parametrize("reward", ["failed", None, math.nan, "500", True])
def test_an_evaluation_without_a_return_is_repeated(commander, reward):
    commander.get_learner_task()
    if reward == "failed":
        commander.notify_fail_collector_task(evaluation(commander))
    else:
        assert finish_evaluation(commander, reward) is False
    assert not commander.get_collector_task()["collector_cfg"]["eval_flag"]
    commander.clock.now += 1
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]


def test_an_evaluation_gets_the_collector_that_works_longest():
    commander = made(env={"collector_episode_num": None})
    commander.get_learner_task()
    first = commander.get_collector_task()["task_id"]
    commander.clock.now += 1
    second = commander.get_collector_task()["task_id"]
    assert not commander.judge_collector_finish(first, {})
    commander.clock.now += INTERVAL - 1
    # One that is idle would have been asked at once.
    assert not commander.judge_collector_finish(second, {})
    commander.clock.now += 0.6
    assert not commander.judge_collector_finish(second, {})
    assert commander.judge_collector_finish(first, {})
    assert not commander.judge_collector_finish(second, {})
    assert commander.judge_collector_finish(first, {})  # repeated until it is confirmed
    commander.finish_collector_task(first, {})
    task = commander.get_collector_task()
    assert task["collector_cfg"]["eval_flag"]
    commander.clock.now += 10 * INTERVAL
    assert not commander.judge_collector_finish(task["task_id"], {"cur_step": 3})


def test_a_collector_that_is_wanted_back_first_ends_its_episodes():
    commander = made(env={"collector_episode_num": None, "collector_env_num": 2})
    commander.get_learner_task()
    first = commander.get_collector_task()["task_id"]
    commander.clock.now += 1
    second = commander.get_collector_task()["task_id"]
    commander.clock.now += INTERVAL
    assert not commander.judge_collector_finish(first, {"cur_episode": 1})
    assert commander.judge_collector_finish(second, {"cur_episode": 2})  # the evaluation's
    commander.finish_collector_task(second, {})
    assert commander.get_collector_task()["collector_cfg"]["eval_flag"]
    assert not commander.judge_collector_finish(first, {"cur_episode": 1})
    assert commander.judge_collector_finish(first, {"cur_episode": 2})  # its settings are old
    commander.finish_collector_task(first, {})
    endless = commander.get_collector_task()["task_id"]
    commander.clock.now += 10 * INTERVAL - 1
    assert not commander.judge_collector_finish(endless, {"cur_episode": 0})
    commander.clock.now += 1
    assert commander.judge_collector_finish(endless, {"cur_episode": 0})


# Solo: ends


def trained_out(commander):
    learner_task = commander.get_learner_task()
    collector_task = commander.get_collector_task()
    commander.finish_learner_task(learner_task["task_id"], {"learner_step": 100})
    return learner_task, collector_task


def test_one_last_evaluation_when_training_is_over(commander):
    learner_task, collector_task = trained_out(commander)
    assert commander.get_learner_task() is None
    assert commander.judge_collector_finish(collector_task["task_id"], {})
    commander.finish_collector_task(collector_task["task_id"], {})
    task = commander.get_collector_task()
    assert task["collector_cfg"]["eval_flag"]
    assert task["collector_cfg"]["policy_update_path"] == learner_task["policy_id"]
    assert commander.get_collector_task() is None
    assert commander.finished_reason is None
    info = {"eval_flag": True, "reward_mean": 12.0, "policy_iter": 100}
    assert commander.finish_collector_task(task["task_id"], info) is False
    assert commander.get_collector_task() is None
    assert commander.finished_reason == (
        "100 iterations were trained; the last evaluation's mean return was 12"
    )


def test_the_last_evaluation_may_converge(commander):
    trained_out(commander)
    task = commander.get_collector_task()
    info = {"eval_flag": True, "reward_mean": 200.0, "policy_iter": 100}
    assert commander.finish_collector_task(task["task_id"], info) is True
    assert commander.finished_reason is None


def test_an_evaluation_of_before_is_not_the_last(commander):
    learner_task = commander.get_learner_task()
    task = evaluation(commander)
    commander.finish_learner_task(learner_task["task_id"], {"learner_step": 100})
    info = {"eval_flag": True, "reward_mean": 12.0, "policy_iter": 90}
    commander.finish_collector_task(task["task_id"], info)
    assert commander.finished_reason is None
    last = commander.get_collector_task()
    commander.finish_collector_task(last["task_id"], {**info, "policy_iter": 100})
    assert commander.finished_reason


def test_the_last_evaluation_is_tried_some_times(commander):
    trained_out(commander)
    for _ in range(3):
        assert commander.finished_reason is None
        commander.notify_fail_collector_task(commander.get_collector_task())
    assert commander.get_collector_task() is None
    assert "the last evaluation failed" in commander.finished_reason


def test_a_second_learner_is_in_reserve():
    commander = made(commander={"learner_task_space": 2})
    first = commander.get_learner_task()
    assert commander.get_learner_task() is None  # no collector would work for another policy
    commander.notify_fail_learner_task(first)
    second = commander.get_learner_task()
    assert (second["policy_id"], second["buffer_id"]) == (first["policy_id"], first["buffer_id"])
    commander.finish_learner_task(second["task_id"], {"learner_step": 100})
    assert evaluation(commander)["collector_cfg"]["policy_update_path"] == first["policy_id"]


# Solo: scalars, state


def test_scalars(commander):
    commander.tb_logger = writer = Writer()
    commander.get_learner_task()
    info = {
        "train_iter": 30,
        "step_count": 60,
        "real_episode_count": 3,
        "avg_step_per_episode": 20.0,
        "avg_time_per_episode": 0.5,
        "avg_time_per_step": 0.025,
        "duration": 1.5,
        "reward_mean": 20.0,
        "reward_std": math.nan,
        "reward_raw": [10.0, 30.0],
        "collect_setting": {"eps": 0.3},
    }
    commander.finish_collector_task(commander.get_collector_task()["task_id"], info)
    # The names are those of serial runs.
    assert writer.last["collector_iter/avg_envstep_per_episode"] == (20.0, 30)
    assert writer.last["collector_iter/avg_episode_per_sec"] == (2.0, 30)
    assert writer.last["collector_iter/avg_envstep_per_sec"] == (40.0, 30)
    assert writer.last["collector_step/reward_max"] == (30.0, 60)
    assert writer.last["collector_step/eps"] == (0.3, 60)
    assert writer.last["collector_step/reward_mean"] == (20.0, 60)
    assert writer.last["collector_step/episode_count"] == (3, 60)
    assert "collector_iter/reward_std" not in writer.last
    assert "collector_greedy_step/eps" not in writer.last
    commander.finish_collector_task(evaluation(commander)["task_id"], {**info, "reward_mean": 9})
    assert writer.last["evaluator_iter/reward_mean"] == (9, 30)
    assert writer.last["evaluator_step/reward_mean"] == (9, 60)
    assert writer.last["evaluator_step/evaluate_time"] == (1.5, 60)
    assert "evaluator_step/eps" not in writer.last


@pytest.mark.parametrize("info", [{"real_episode_count": 0}, {"collector_done": False}])
def test_without_all_its_episodes_an_evaluation_has_no_return(info):
    commander = made(env={"stop_value": -100})
    commander.tb_logger = writer = Writer()
    commander.get_learner_task()
    assert not finish_evaluation(commander, 0.0, **info)
    assert not [tag for tag in writer.last if "reward" in tag]
    assert finish_evaluation(commander, -60.0)


def test_a_task_without_an_episode_has_no_return(commander):
    commander.tb_logger = writer = Writer()
    commander.get_learner_task()
    info = {"real_episode_count": 0, "reward_mean": 0.0, "avg_step_per_episode": 9.0}
    task = commander.get_collector_task()
    commander.finish_collector_task(task["task_id"], {**info, "step_count": 9})
    assert set(writer.last) == {
        f"collector_{of}/{name}"
        for of in ("iter", "step")
        for name in ("episode_count", "envstep_count")
    }


def test_goes_on_from_its_state(commander):
    learner_task = commander.get_learner_task()
    commander.update_learner_info(learner_task["task_id"], {"learner_step": 40})
    open_task = commander.get_collector_task()
    commander.update_collect_progress(open_task["task_id"], {"cur_step": 500})
    finish_evaluation(commander, 50.0)
    commander.clock.now += 2
    state = json.loads(json.dumps(commander.state_dict()))

    other = made()
    other.load_state_dict(state)
    assert counts(other) == counts(commander)
    assert other.weights_files() == commander.weights_files()
    # Until a learner continues, collectors may work for the same policy.
    task = other.get_collector_task()
    assert task["task_id"] != open_task["task_id"]
    assert task["collector_cfg"]["seed"] != open_task["collector_cfg"]["seed"]
    assert task["buffer_id"] == learner_task["buffer_id"]
    again = other.get_learner_task()
    assert {**again, "task_id": ""} == {**learner_task, "task_id": ""}
    assert other.get_learner_task() is None
    other.clock.now += INTERVAL - 2.1
    assert not other.get_collector_task()["collector_cfg"]["eval_flag"]
    other.finish_collector_task(task["task_id"], {})
    other.clock.now += 0.2
    assert other.get_collector_task()["collector_cfg"]["eval_flag"]


@pytest.mark.parametrize("iterations", [100, 200])
def test_goes_on_with_the_last_evaluation_or_longer_training(commander, iterations):
    before, _ = trained_out(commander)
    cfg = config()
    cfg.policy.learn.learner.train_iterations = iterations
    other = create_parallel_commander(cfg)
    other.clock, other._begins_with_eval = Clock(), False
    other.load_state_dict(commander.state_dict())
    task = other.get_learner_task()  # its learner publishes what is evaluated
    assert task["policy_id"] == before["policy_id"]
    assert other.get_learner_task() is None
    assert not other.get_collector_task()["collector_cfg"]["eval_flag"]
    other.finish_learner_task(task["task_id"], {"learner_step": iterations})
    assert other.get_collector_task()["collector_cfg"]["eval_flag"]
    assert other.get_learner_task() is None


def test_a_commander_that_differs_in_one_decision():
    class PatientCommander(SoloCommander):
        _good = 0

        def finish_collector_task(self, task_id, finished_task):
            reached = super().finish_collector_task(task_id, finished_task)
            if finished_task.get("eval_flag"):
                self._good = self._good + 1 if reached else 0
            if reached and self._good < 2:
                self.converged_reason, reached = None, False
            return reached

    commander = PatientCommander(config())
    commander.clock = Clock()
    commander.get_learner_task()
    assert not finish_evaluation(commander, 200.0)
    assert commander.get_collector_task()
    assert not finish_evaluation(commander, 100.0)
    assert not finish_evaluation(commander, 200.0)
    assert finish_evaluation(commander, 200.0)


def test_enough_env_steps_end_the_run_after_a_last_evaluation():
    commander = made(commander={"max_env_step": 30})
    commander.get_learner_task()
    task = commander.get_collector_task()
    commander.update_collect_progress(task.task_id, {"cur_step": 29})
    assert not commander.judge_collector_finish(task.task_id, {"collector_done": False})
    commander.update_collect_progress(task.task_id, {"cur_step": 31})
    assert commander.judge_collector_finish(task.task_id, {"collector_done": False})
    commander.finish_collector_task(task.task_id, {"eval_flag": False, "step_count": 31})

    last = commander.get_collector_task()
    assert last.collector_cfg.eval_flag
    assert commander.get_collector_task() is None
    assert commander.finished_reason is None
    report = {"eval_flag": True, "reward_mean": 12.0, "real_episode_count": 2}
    commander.finish_collector_task(last.task_id, report)
    assert commander.finished_reason == (
        "reached max_env_step 30; the last evaluation's mean return was 12"
    )
