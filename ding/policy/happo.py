"""Heterogeneous-agent proximal policy optimisation (Kuba et al. 2022)."""

import torch
from easydict import EasyDict
from torch import Tensor

from ding.data import tree_map
from ding.model import HAVAC
from ding.policy._types import Log, Losses, Network, Output, Rollout
from ding.policy.policy_gradient import PolicyGradient
from ding.policy.ppo import PPOPolicy, init_parameters
from ding.rl_utils.log_prob_utils import log_prob
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError


@POLICY_REGISTRY.register("happo")
class HAPPOPolicy(PPOPolicy):
    """Heterogeneous-Agent PPO (Kuba et al. 2022): agents without shared parameters.

    Agents are updated one after the other, in random order. The advantages of an agent are
    multiplied by the probability ratio of the agents updated before it, new policy to old, so that
    each agent improves on the current team (equation 11).
    """

    paper = "Kuba et al. 2022"
    actions = ("multi-agent",)
    networks = {}
    # The rest is PPO's.
    config = dict(
        type="happo",
        multi_agent=True,
        # None: take it from policy.model.
        agent_num=None,
        # None: the actors' learning rate.
        learn=dict(critic_learning_rate=None),
    )
    _action_spaces = PolicyGradient._action_spaces
    _refused = {**PPOPolicy._refused, "learn.kl_beta": "remove the key"}
    _minibatch_columns = (*PolicyGradient._minibatch_columns, "factor")
    _learned = {**PPOPolicy._learned, "rounds": "_rounds"}
    _model: Network
    #: The agent being updated, and the number of rounds of updates.
    _turn, _rounds = 0, 0

    _network = _team_network = "havac"

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        given, known = cfg.agent_num, (cfg.get("model") or {}).get("agent_num")
        if given is not None and model is None:
            if known not in (None, given):
                raise ConfigError(
                    f"policy.agent_num={given}, policy.model.agent_num={known}: they must be the "
                    "same"
                )
            cfg = EasyDict({**cfg, "model": {**cfg.model, "agent_num": given}})
        return super()._create_model(cfg, model)

    def _check_model(self, model: Network) -> None:
        if not isinstance(model, HAVAC):
            raise ConfigError(
                f"{type(self).__name__} needs a network of ding.model.HAVAC, got "
                f"{type(model).__name__}"
            )

    def _init_update(self) -> None:
        cfg = self._cfg.learn
        agents = list(self._model.agent_models)
        if cfg.ppo_param_init:
            for agent in agents:
                init_parameters(agent)
            if self._joint:
                self._broadcast_model(self._model)
        critic_lr = cfg.critic_learning_rate
        rates = {
            "actor": cfg.learning_rate,
            "critic": cfg.learning_rate if critic_lr is None else critic_lr,
        }
        self._optimizer = Adam(
            [
                {"params": list(getattr(agent, part).parameters()), "lr": rate}
                for agent in agents
                for part, rate in rates.items()
            ],
            lr=cfg.learning_rate,
            grad_clip_type=cfg.grad_clip_type,
            clip_value=cfg.grad_clip_value,
        )

    def _passes(self, batch: Rollout) -> list[Log]:
        """Update one agent after the other: ``learn.epoch_per_collect`` passes in minibatches."""
        factor = torch.ones(len(batch["done"]), device=self._device)
        logs = []
        for place, agent in enumerate(self._order()):
            self._turn = agent
            if place == 0 or self._recompute_adv:
                self._estimate_returns(batch, first=place == 0)
            own = self._of_agent(batch, agent)
            own["factor"] = factor
            for _ in range(self._cfg.learn.epoch_per_collect):
                updates = map(self._update, self._minibatches(own))
                logs += [_of_agent(agent, log) for log in updates]
            factor = factor * self._change(own)
        return logs

    def _order(self) -> list[int]:
        """The agents in random order; the same order on all ranks."""
        generator = torch.Generator().manual_seed(self._rounds)
        self._rounds += 1
        return torch.randperm(self._model.agent_num, generator=generator).tolist()

    def _of_agent(self, batch: Rollout, agent: int) -> Rollout:
        names = ("action", "logit", "value", "adv", "return")
        columns = {name: column for name, column in batch.items() if name in names}
        own: Rollout = tree_map(lambda leaf: leaf[:, agent], columns)
        own["obs"] = self._model.seen_by(agent, batch["obs"])
        return own

    def _change(self, own: Rollout) -> Tensor:
        """Probability ratio of an agent's actions, new policy to old, ``[N]``."""
        with self._as_acting():
            now = self._trained(own["obs"], mode="compute_actor")["logit"]
            ratio = log_prob(now, own["action"]) - log_prob(own["logit"], own["action"])
        return ratio.exp()

    @property
    def _trained(self) -> torch.nn.Module:
        return self._model.agent_models[self._turn]

    def _losses(self, batch: Rollout, output: Output, adv: Tensor) -> Losses:
        # After normalisation, so that the factor is not normalised away.
        return super()._losses(batch, output, adv * batch["factor"])

    def _monitor_vars_learn(self) -> list[str]:
        names = dict.fromkeys(super()._monitor_vars_learn())
        return [name for i in range(self._model.agent_num) for name in _of_agent(i, names)]


def _of_agent(agent: int, log: Log) -> Log:
    """A log with an agent's number in its names."""
    return {f"agent{agent}_{name}": value for name, value in log.items()}
