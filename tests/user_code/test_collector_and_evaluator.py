"""A collector, an evaluator, a buffer and a hook of users' own, by the documented interfaces."""

import numpy as np
import pytest
from easydict import EasyDict

from ding.entry import serial_pipeline
from ding.torch_utils import to_ndarray, to_tensor
from ding.utils import (
    BUFFER_REGISTRY,
    SERIAL_COLLECTOR_REGISTRY,
    SERIAL_EVALUATOR_REGISTRY,
    EasyTimer,
    build_logger,
)
from ding.worker import ISerialCollector, ISerialEvaluator, VectorEvalMonitor
from ding.worker.collector.base_serial_collector import (
    INF,
    CachePool,
    TrajBuffer,
    to_tensor_transitions,
)
from ding.worker.learner import LearnerHook, register_learner_hook
from ding.worker.replay_buffer import IBuffer


@SERIAL_COLLECTOR_REGISTRY.register("user_sample")
class UserCollector(ISerialCollector):
    """Row by row, as users copied it from the manual."""

    config = dict(deepcopy_obs=False, transform_obs=False, collect_print_freq=100)

    def __init__(
        self,
        cfg,
        env=None,
        policy=None,
        tb_logger=None,
        exp_name="default_experiment",
        instance_name="collector",
    ):
        self._instance_name, self._exp_name = instance_name, exp_name
        self._timer = EasyTimer()
        self._end_flag = False
        if tb_logger is not None:
            path = f"./{self._exp_name}/log/{self._instance_name}"
            self._logger, _ = build_logger(path, self._instance_name, need_tb=False)
            self._tb_logger = tb_logger
        self.reset(policy, env)

    def reset_env(self, _env=None):
        if _env is not None:
            self._env = _env
            self._env.launch()
            self._env_num = self._env.env_num
        else:
            self._env.reset()

    def reset_policy(self, _policy=None):
        if _policy is not None:
            self._policy = _policy
            self._default_n_sample = _policy.get_attribute("n_sample")
            self._traj_len_inf = _policy.get_attribute("cfg").get("traj_len_inf", False)
            self._unroll_len = _policy.get_attribute("unroll_len")
            self._on_policy = _policy.get_attribute("on_policy")
        self._policy.reset()

    def reset(self, _policy=None, _env=None):
        if _env is not None:
            self.reset_env(_env)
        if _policy is not None:
            self.reset_policy(_policy)
        self._obs_pool = CachePool("obs", self._env_num, deepcopy=False)
        self._policy_output_pool = CachePool("policy_output", self._env_num)
        self._traj_buffer = {i: TrajBuffer(maxlen=self._unroll_len) for i in range(self._env_num)}
        self._total_envstep_count = 0

    @property
    def envstep(self):
        return self._total_envstep_count

    @envstep.setter
    def envstep(self, value):
        self._total_envstep_count = value

    def close(self):
        if self._end_flag:
            return
        self._end_flag = True
        self._env.close()
        self._tb_logger.flush()

    def collect(self, n_sample=None, train_iter=0, drop_extra=True, policy_kwargs=None, **_):
        n_sample = n_sample or self._default_n_sample
        return_data, policy_kwargs = [], policy_kwargs or {}
        traj_len = INF if self._traj_len_inf else max(self._unroll_len, n_sample // self._env_num)
        for buffer in self._traj_buffer.values():
            assert len(buffer) == 0 or not self._on_policy
        traj = {i: TrajBuffer(maxlen=traj_len) for i in range(self._env_num)}
        while len(return_data) < n_sample:
            with self._timer:
                obs = self._env.ready_obs
                self._obs_pool.update(obs)
                policy_output = self._policy.forward(to_tensor(obs), **policy_kwargs)
                self._policy_output_pool.update(policy_output)
                actions = {env_id: output["action"] for env_id, output in policy_output.items()}
                timesteps = self._env.step(to_ndarray(actions))
            for env_id, timestep in timesteps.items():
                if timestep.info.get("abnormal", False):
                    traj[env_id].clear()
                    self._env.reset({env_id: None})
                    self._policy.reset([env_id])
                    continue
                transition = self._policy.process_transition(
                    self._obs_pool[env_id], self._policy_output_pool[env_id], timestep
                )
                transition["collect_iter"] = train_iter
                traj[env_id].append(transition)
                self._total_envstep_count += 1
                if timestep.done or len(traj[env_id]) == traj_len:
                    transitions = to_tensor_transitions(traj[env_id])
                    return_data.extend(self._policy.get_train_sample(transitions))
                    traj[env_id].clear()
                if timestep.done:
                    self._policy.reset([env_id])
                    self._obs_pool.reset(env_id)
                    self._policy_output_pool.reset(env_id)
        return return_data[:n_sample] if drop_extra else return_data


@SERIAL_EVALUATOR_REGISTRY.register("user_interaction")
class UserEvaluator(ISerialEvaluator):
    config = dict(eval_freq=10)

    def __init__(
        self, cfg, env=None, policy=None, tb_logger=None, exp_name="exp", instance_name="evaluator"
    ):
        self._cfg, self._end_flag, self._tb_logger = cfg, False, tb_logger
        self._default_n_episode, self._stop_value = cfg.n_episode, cfg.stop_value
        self._max = float("-inf")
        self.reset(policy, env)

    def reset_env(self, _env=None):
        if _env is not None:
            self._env = _env
            self._env.launch()
            self._env_num = self._env.env_num
        else:
            self._env.reset()

    def reset_policy(self, _policy=None):
        self._policy = _policy or self._policy
        self._policy.reset()

    def reset(self, _policy=None, _env=None):
        self.reset_env(_env)
        self.reset_policy(_policy)
        self._last = -1

    def close(self):
        if not self._end_flag:
            self._end_flag = True
            self._env.close()

    def should_eval(self, train_iter):
        if train_iter == self._last:
            return False
        due = train_iter == 0 or train_iter - self._last >= self._cfg.eval_freq
        self._last = train_iter if due else self._last
        return due

    def eval(self, save_ckpt_fn=None, train_iter=-1, envstep=-1, n_episode=None):
        monitor = VectorEvalMonitor(self._env.env_num, n_episode or self._default_n_episode)
        self._env.reset()
        self._policy.reset()
        while not monitor.is_finished():
            obs = to_tensor(self._env.ready_obs)
            output = self._policy.forward(obs)
            actions = to_ndarray({i: a["action"] for i, a in output.items()})
            for env_id, t in self._env.step(actions).items():
                if t.done:
                    self._policy.reset([env_id])
                    monitor.update_info(env_id, t.info)
                    monitor.update_reward(env_id, t.info["eval_episode_return"])
        returns = monitor.get_episode_return()
        result = np.mean([float(np.asarray(value).item()) for value in returns])
        self._tb_logger.add_scalar("user/result", result, train_iter)
        if result > self._max:
            self._max = result
            if save_ckpt_fn:
                save_ckpt_fn("ckpt_best.pth.tar")
        return result >= self._stop_value and train_iter > 0, {"eval_episode_return": returns}


@BUFFER_REGISTRY.register("user_list")
class UserBuffer(IBuffer):
    config = dict(type="user_list", replay_buffer_size=200)

    def __init__(self, cfg, tb_logger=None, exp_name="exp", instance_name="buffer"):
        self._cfg, self._data, self._rng = cfg, [], np.random.default_rng(0)

    def push(self, data, cur_collector_envstep):
        self._data.extend(data if isinstance(data, list) else [data])
        self._data = self._data[-self._cfg.replay_buffer_size :]

    def update(self, info):
        pass

    def sample(self, batch_size, cur_learner_iter):
        if len(self._data) < batch_size:
            return None
        return [self._data[i] for i in self._rng.choice(len(self._data), batch_size)]

    def clear(self):
        self._data = []

    def count(self):
        return len(self._data)

    def save_data(self, file_name):
        raise NotImplementedError

    def load_data(self, file_name):
        raise NotImplementedError

    def state_dict(self):
        return {"data": self._data}

    def load_state_dict(self, _state_dict):
        self._data = _state_dict["data"]

    def start(self):
        pass

    def close(self):
        pass


class UserHook(LearnerHook):
    seen: list = []

    def __init__(self, *args, ext_args=EasyDict(), **kwargs):
        super().__init__(*args, **kwargs)
        self._freq = ext_args.freq

    def __call__(self, engine):
        if engine.last_iter.val % self._freq == 0:
            loss = engine.log_buffer["scalar"]["total_loss"]
            self.seen.append((engine.last_iter.val, loss, engine.collector_envstep))


register_learner_hook("user_hook", UserHook)


def configs(**create):
    main = dict(
        exp_name="run",
        env=dict(
            env_id="CartPole-v1",
            max_episode_steps=40,
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=3,
            stop_value=1000,
        ),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
            nstep=1,
            learn=dict(
                batch_size=16,
                learner=dict(
                    hook=dict(
                        mine=dict(
                            name="mine",
                            type="user_hook",
                            priority=15,  # before what is logged is shown and forgotten
                            position="after_iter",
                            ext_args=dict(freq=5),
                        )
                    )
                ),
            ),
            collect=dict(n_sample=16),
        ),
    )
    base = dict(
        env=dict(type="gymnasium"),
        env_manager=dict(type="base"),
        policy=dict(type="dqn"),
    )
    return main, {**base, **create}


@pytest.mark.parametrize(
    "create",
    [
        dict(collector=dict(type="user_sample")),
        dict(evaluator=dict(type="user_interaction")),
        dict(replay_buffer=dict(type="user_list")),
        dict(
            collector=dict(type="user_sample"),
            evaluator=dict(type="user_interaction"),
            replay_buffer=dict(type="user_list"),
            env_manager=dict(type="subprocess"),
        ),
    ],
    ids=["collector", "evaluator", "buffer", "all"],
)
def test_parts_of_users_own_train(create):
    UserHook.seen = []
    serial_pipeline(configs(**create), seed=0, max_train_iter=20)
    iterations, losses, envsteps = zip(*UserHook.seen)
    assert iterations[:4] == (0, 5, 10, 15)
    assert all(loss == loss for loss in losses)
    assert envsteps[0] >= 16
