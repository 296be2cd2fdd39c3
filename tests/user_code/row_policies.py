"""Policies as users write them: by environment id and row by row, with the library's helpers."""

import copy
from typing import Any

import torch

from ding.model import model_wrap
from ding.policy import Policy
from ding.policy.common_utils import default_preprocess_learn
from ding.rl_utils import (
    get_gae_with_default_last_value,
    get_nstep_return_data,
    get_train_sample,
    ppo_data,
    ppo_error,
    q_nstep_td_data,
    q_nstep_td_error,
)
from ding.torch_utils import Adam, to_device
from ding.utils import POLICY_REGISTRY, split_data_generator
from ding.utils.data import default_collate, default_decollate, timestep_collate


def _act(policy, model, data, **kwargs):
    data_id = list(data.keys())
    batch = default_collate(list(data.values()))
    if policy._cuda:
        batch = to_device(batch, policy._device)
    model.eval()
    with torch.no_grad():
        output = model.forward(batch, **kwargs)
    if policy._cuda:
        output = to_device(output, "cpu")
    output = default_decollate(output)
    return {i: d for i, d in zip(data_id, output)}  # noqa: C416


@POLICY_REGISTRY.register("user_q")
class UserQ(Policy):
    config = dict(
        type="user_q",
        cuda=False,
        on_policy=False,
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.97,
        nstep=3,
        learn=dict(
            update_per_collect=2,
            batch_size=16,
            learning_rate=0.001,
            target_update_freq=10,
            ignore_done=False,
        ),
        collect=dict(n_sample=16, unroll_len=1),
        eval=dict(),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.1, decay=1000),
            replay_buffer=dict(replay_buffer_size=1000),
        ),
    )

    def default_model(self):
        return "dqn", ["ding.model.template.q_learning"]

    def _init_learn(self) -> None:
        self._priority = self._cfg.priority
        self._priority_IS_weight = self._cfg.priority_IS_weight
        self._optimizer = Adam(self._model.parameters(), lr=self._cfg.learn.learning_rate)
        self._gamma = self._cfg.discount_factor
        self._nstep = self._cfg.nstep
        self._target_model = copy.deepcopy(self._model)
        self._target_model = model_wrap(
            self._target_model,
            wrapper_name="target",
            update_type="assign",
            update_kwargs={"freq": self._cfg.learn.target_update_freq},
        )
        self._learn_model = model_wrap(self._model, wrapper_name="argmax_sample")
        self._learn_model.reset()
        self._target_model.reset()

    def _forward_learn(self, data: list) -> dict[str, Any]:
        data = default_preprocess_learn(
            data,
            use_priority=self._priority,
            use_priority_IS_weight=self._cfg.priority_IS_weight,
            ignore_done=self._cfg.learn.ignore_done,
            use_nstep=True,
        )
        if self._cuda:
            data = to_device(data, self._device)
        self._learn_model.train()
        self._target_model.train()
        q_value = self._learn_model.forward(data["obs"])["logit"]
        with torch.no_grad():
            target_q_value = self._target_model.forward(data["next_obs"])["logit"]
            target_q_action = self._learn_model.forward(data["next_obs"])["action"]
        data_n = q_nstep_td_data(
            q_value,
            target_q_value,
            data["action"],
            target_q_action,
            data["reward"],
            data["done"],
            data["weight"],
        )
        value_gamma = data.get("value_gamma")
        loss, td_error_per_sample = q_nstep_td_error(
            data_n, self._gamma, nstep=self._nstep, value_gamma=value_gamma
        )
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._target_model.update(self._learn_model.state_dict())
        return {
            "cur_lr": self._optimizer.defaults["lr"],
            "total_loss": loss.item(),
            "q_value": q_value.mean().item(),
            "priority": td_error_per_sample.abs().tolist(),
            "[histogram]action_distribution": data["action"],
        }

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "q_value"]

    def _state_dict_learn(self) -> dict[str, Any]:
        return {
            "model": self._learn_model.state_dict(),
            "target_model": self._target_model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }

    def _load_state_dict_learn(self, state_dict: dict[str, Any]) -> None:
        self._learn_model.load_state_dict(state_dict["model"])
        self._target_model.load_state_dict(state_dict["target_model"])
        self._optimizer.load_state_dict(state_dict["optimizer"])

    def _init_collect(self) -> None:
        self._unroll_len = self._cfg.collect.unroll_len
        self._gamma = self._cfg.discount_factor
        self._nstep = self._cfg.nstep
        self._collect_model = model_wrap(self._model, wrapper_name="eps_greedy_sample")
        self._collect_model.reset()

    def _forward_collect(self, data: dict[int, Any], eps: float) -> dict[int, Any]:
        return _act(self, self._collect_model, data, eps=eps)

    def _get_train_sample(self, data: list) -> list:
        data = get_nstep_return_data(data, self._nstep, gamma=self._gamma)
        return get_train_sample(data, self._unroll_len)

    def _process_transition(self, obs, model_output, timestep) -> dict:
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            "action": model_output["action"],
            "reward": timestep.reward,
            "done": timestep.done,
        }

    def _init_eval(self) -> None:
        self._eval_model = model_wrap(self._model, wrapper_name="argmax_sample")
        self._eval_model.reset()

    def _forward_eval(self, data: dict[int, Any]) -> dict[int, Any]:
        return _act(self, self._eval_model, data)


@POLICY_REGISTRY.register("user_ppo")
class UserPPO(Policy):
    config = dict(
        type="user_ppo",
        cuda=False,
        on_policy=True,
        priority=False,
        action_space="discrete",
        learn=dict(epoch_per_collect=2, batch_size=16, learning_rate=3e-4, clip_ratio=0.2),
        collect=dict(n_sample=32, unroll_len=1, discount_factor=0.99, gae_lambda=0.95),
        eval=dict(),
    )

    def default_model(self):
        return "vac", ["ding.model.template.vac"]

    def _init_learn(self) -> None:
        self._optimizer = Adam(
            self._model.parameters(), self._cfg.learn.learning_rate, grad_clip_type="clip_norm",
            clip_value=0.5,
        )  # fmt: skip
        self._learn_model = model_wrap(self._model, wrapper_name="base")
        self._learn_model.reset()

    def _forward_learn(self, data: list) -> list[dict[str, Any]]:
        data = default_preprocess_learn(data, ignore_done=False, use_nstep=False)
        self._learn_model.train()
        infos = []
        for _ in range(self._cfg.learn.epoch_per_collect):
            data["return_"] = data["adv"] + data["value"]
            for batch in split_data_generator(data, self._cfg.learn.batch_size, shuffle=True):
                output = self._learn_model.forward(batch["obs"], mode="compute_actor_critic")
                adv = (batch["adv"] - batch["adv"].mean()) / (batch["adv"].std() + 1e-8)
                loss, info = ppo_error(
                    ppo_data(
                        output["logit"],
                        batch["logit"],
                        batch["action"],
                        output["value"],
                        batch["value"],
                        adv,
                        batch["return_"],
                        batch["weight"],
                        None,
                    ),
                    self._cfg.learn.clip_ratio,
                )
                total = loss.policy_loss + 0.5 * loss.value_loss - 0.01 * loss.entropy_loss
                self._optimizer.zero_grad()
                total.backward()
                self._optimizer.step()
                infos.append(
                    {
                        "cur_lr": self._optimizer.defaults["lr"],
                        "total_loss": total.item(),
                        "approx_kl": info.approx_kl,
                    }
                )
        return infos

    def _monitor_vars_learn(self) -> list[str]:
        return [*super()._monitor_vars_learn(), "approx_kl"]

    def _init_collect(self) -> None:
        self._unroll_len = self._cfg.collect.unroll_len
        self._collect_model = model_wrap(self._model, wrapper_name="multinomial_sample")
        self._collect_model.reset()
        self._gamma = self._cfg.collect.discount_factor
        self._gae_lambda = self._cfg.collect.gae_lambda

    def _forward_collect(self, data: dict[int, Any]) -> dict[int, Any]:
        return _act(self, self._collect_model, data, mode="compute_actor_critic")

    def _process_transition(self, obs, model_output, timestep) -> dict:
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            "action": model_output["action"],
            "logit": model_output["logit"],
            "value": model_output["value"],
            "reward": timestep.reward,
            "done": timestep.done,
        }

    def _get_train_sample(self, data: list) -> list:
        data = get_gae_with_default_last_value(
            data, data[-1]["done"], gamma=self._gamma, gae_lambda=self._gae_lambda, cuda=False
        )
        return get_train_sample(data, self._unroll_len)

    def _init_eval(self) -> None:
        self._eval_model = model_wrap(self._model, wrapper_name="argmax_sample")
        self._eval_model.reset()

    def _forward_eval(self, data: dict[int, Any]) -> dict[int, Any]:
        return _act(self, self._eval_model, data, mode="compute_actor")


@POLICY_REGISTRY.register("user_recurrent")
class UserRecurrent(UserQ):
    """Keeps a hidden state for each environment, and learns from sequences."""

    config = dict(
        UserQ.config,
        type="user_recurrent",
        priority=False,
        priority_IS_weight=False,
        nstep=1,
        collect=dict(n_sample=8, unroll_len=4, env_num=2),
        eval=dict(env_num=2),
    )

    def default_model(self):
        return "drqn", ["ding.model.template.q_learning"]

    def _init_learn(self) -> None:
        super()._init_learn()
        self._learn_model = model_wrap(self._learn_model, "hidden_state", state_num=16)
        self._learn_model.reset()

    def _forward_learn(self, data: list) -> dict[str, Any]:
        data = timestep_collate(data)
        self._learn_model.train()
        self._learn_model.reset(data_id=None, state=data["prev_state"][0])
        q_value = self._learn_model.forward({"obs": data["obs"], "enable_fast_timestep": True})
        q = q_value["logit"].gather(-1, data["action"].unsqueeze(-1)).squeeze(-1)
        loss = (q - data["reward"]).pow(2).mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self._target_model.update(self._model.state_dict())
        return {"total_loss": loss.item(), "cur_lr": 0.001, "q_value": q.mean().item()}

    def _reset_learn(self, data_id=None) -> None:
        self._learn_model.reset(data_id=data_id)

    def _init_collect(self) -> None:
        self._unroll_len = self._cfg.collect.unroll_len
        self._gamma, self._nstep = self._cfg.discount_factor, self._cfg.nstep
        model = model_wrap(
            self._model, "hidden_state", state_num=self._cfg.collect.env_num, save_prev_state=True
        )
        self._collect_model = model_wrap(model, wrapper_name="eps_greedy_sample")
        self._collect_model.reset()

    def _forward_collect(self, data: dict[int, Any], eps: float) -> dict[int, Any]:
        data_id = list(data.keys())
        obs = default_collate(list(data.values()))
        self._collect_model.eval()
        with torch.no_grad():
            output = self._collect_model.forward(
                {"obs": obs}, data_id=data_id, eps=eps, inference=True
            )
        return dict(zip(data_id, default_decollate(output)))

    def _reset_collect(self, data_id=None) -> None:
        self._collect_model.reset(data_id=data_id)

    def _process_transition(self, obs, model_output, timestep) -> dict:
        row = super()._process_transition(obs, model_output, timestep)
        return {**row, "prev_state": model_output["prev_state"]}

    def _init_eval(self) -> None:
        model = model_wrap(self._model, "hidden_state", state_num=self._cfg.eval.env_num)
        self._eval_model = model_wrap(model, wrapper_name="argmax_sample")
        self._eval_model.reset()

    def _forward_eval(self, data: dict[int, Any]) -> dict[int, Any]:
        data_id = list(data.keys())
        obs = default_collate(list(data.values()))
        self._eval_model.eval()
        with torch.no_grad():
            output = self._eval_model.forward({"obs": obs}, data_id=data_id, inference=True)
        return dict(zip(data_id, default_decollate(output)))

    def _reset_eval(self, data_id=None) -> None:
        self._eval_model.reset(data_id=data_id)
