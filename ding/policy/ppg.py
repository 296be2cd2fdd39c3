"""Phasic policy gradient (Cobbe et al. 2020): a separate policy and value network.

In policy phases each network learns only its own task, as in PPO. In the less frequent auxiliary
phases the policy network also learns values, to improve its features, while its policy is kept
close to the previous one.
"""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import torch
from easydict import EasyDict

from ding.data import Columns, tree_join, tree_map, tree_take
from ding.data.tree import tree_leaves
from ding.model.wrapper.sample import legal
from ding.policy._types import Arrays, Log, Network, Obs, Output, Rollout, Samples
from ding.policy.acting import one_action
from ding.policy.advantage_actor_critic import AdvantageActorCritic, CountedSteps
from ding.policy.checks import check_loss, floats
from ding.policy.networks import stochastic_actor
from ding.policy.ppo import Clipped
from ding.rl_utils import ppo_value_data, ppo_value_error
from ding.rl_utils.log_prob_utils import kl, split_like
from ding.torch_utils import Adam
from ding.utils import POLICY_REGISTRY
from ding.utils.types import State, Tree


class PhasicPolicyGradient(Clipped, AdvantageActorCritic):
    """Base of PPG: both phases; subclasses choose their data.

    ``value`` in samples is that of the value network.
    """

    paper = "Cobbe et al. 2020"
    actions = ("discrete", "multi-discrete", "continuous")
    networks = stochastic_actor("discrete", "continuous")
    network_parts: tuple[str, ...] = ("actor_critic", "aux_critic")
    config = dict(
        learn=dict(
            clip_ratio=0.2,
            # Passes of an auxiliary phase over all data of the preceding policy phases, and the
            # weight of its behaviour cloning loss, which keeps the policy.
            aux_train_epoch=6,
            aux_bc_weight=1,
            grad_clip_type="clip_norm",
            grad_clip_value=10,
        ),
    )
    _action_spaces = AdvantageActorCritic._action_spaces
    _learn_options = {"mode": "compute_actor"}
    _learned = {
        "optimizer_ac": "_optimizer",
        "optimizer_aux_critic": "_optimizer_aux_critic",
        "value_norm": "_running_mean_std",
        "next_step_id": "_next_step_id",
        "auxiliary": "_memory",
    }
    _model: Network

    _network = "ppg"
    _logged: tuple[str, ...] = (
        *("value_cur_lr", "actor_loss", "aux_value_loss", "clone_loss", "aux_critic_loss"),
    )
    _log_names = {
        "cur_lr": "policy_cur_lr",
        "adv_abs_max": "policy_adv_abs_max",
        "aux_value_loss": "auxiliary_loss",
        "clone_loss": "behavioral_cloning_loss",
        "aux_critic_loss": "aux_value_loss",
    }

    _refused = {"priority": "remove the key", "multi_agent": "use ppo"}

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        options = {
            "lr": cfg.learning_rate,
            "grad_clip_type": cfg.grad_clip_type,
            "clip_value": cfg.grad_clip_value,
        }
        self._optimizer = Adam(self._model.actor_critic.parameters(), **options)
        self._optimizer_aux_critic = Adam(self._model.aux_critic.parameters(), **options)
        self._memory = AuxiliaryMemory()
        self._init_returns()

    def _update_actor(self, batch: Rollout) -> Log:
        log = self._update(batch)
        log["actor_loss"] = log.pop("total_loss")
        return log

    def _update_critic(self, batch: Rollout) -> Log:
        value = self._model(batch["obs"], mode="compute_critic")["value"]
        data = ppo_value_data(value, batch["value"], batch["return"], batch.get("weight"))
        loss = ppo_value_error(data, self._cfg.learn.clip_ratio)
        facts = {"value_loss": loss, "value_mean": value.mean(), "value_max": value.max()}
        total_loss = self._cfg.learn.value_weight * loss
        self._descend(total_loss, batch, self._optimizer_aux_critic, self._model.aux_critic)
        lr = self._optimizer_aux_critic.param_groups[0]["lr"]
        return {"value_cur_lr": lr, **floats(facts)}

    def _total(self, log: Log) -> Log:
        value_loss = self._cfg.learn.value_weight * log.get("value_loss", 0.0)
        return {**log, "total_loss": log.get("actor_loss", 0.0) + value_loss}

    def _batch(self, data: Samples) -> Rollout:
        batch = super()._batch(data)
        columnar = isinstance(data, Columns) and data.is_columnar
        # In the original dtype: bytes need a quarter of the memory.
        return {**batch, "seen": data.columns["obs"] if columnar else batch["obs"]}

    def _remember(self, batch: Rollout) -> dict[str, float]:
        """Store a policy phase's data; every ``aux_freq``-th time, run an auxiliary phase on it."""
        self._memory.add(batch["seen"], batch["return"] * self._value_std)
        if self._memory.phases < self._cfg.learn.aux_freq:
            return {}
        return self._auxiliary_phase(*self._memory.take())

    def _auxiliary_phase(self, obs: Obs, returns: torch.Tensor) -> dict[str, float]:
        cfg = self._cfg.learn
        target = (returns / self._value_std).to(self._device)
        chunks = torch.arange(len(target)).split(cfg.batch_size)
        with self._as_acting():
            inputs = (self._model_input(tree_take(obs, index)) for index in chunks)
            outputs = (legal(self._model(part, mode="compute_actor"), part) for part in inputs)
            old = tree_join(torch.cat, [one_action(output)["logit"] for output in outputs])
        logs = []
        for _ in range(_renamed(cfg, "epochs_aux", "aux_train_epoch")):
            for place in self._shuffled_parts(len(target)):
                part = tree_take(obs, place.cpu())
                logs.append(self._update_both(part, tree_take(old, place), target[place]))
        means = torch.tensor([list(log.values()) for log in logs]).mean(0).tolist()
        return dict(zip(logs[0], means))

    def _update_both(self, obs: Obs, old: Tree, target: torch.Tensor) -> dict[str, float]:
        """One step of each network; returns their losses."""
        obs = self._model_input(obs)
        output = legal(self._model(obs, mode="compute_actor_critic"), obs)
        value_loss = 0.5 * (output["value"] - target).pow(2).mean()
        clone_loss = kl(split_like(old, output["logit"]), output["logit"]).mean()
        weight = _renamed(self._cfg.learn, "beta_weight", "aux_bc_weight")
        own_value = self._model(obs, mode="compute_critic")["value"]
        critic_loss = 0.5 * (own_value - target).pow(2).mean()
        losses = {"aux_value_loss": value_loss, "clone_loss": clone_loss}
        log = floats({**losses, "aux_critic_loss": critic_loss})
        batch = {"obs": obs, "return": target}
        check_loss(self, sum(log.values()), batch)  # before either network is updated
        actor_critic = self._model.actor_critic
        self._descend(value_loss + weight * clone_loss, batch, self._optimizer, actor_critic)
        self._descend(critic_loss, batch, self._optimizer_aux_critic, self._model.aux_critic)
        return log

    def _forward_collect_batch(self, obs: Obs) -> Output:
        return {**super()._forward_collect_batch(obs), "value": self._values(obs)}


@POLICY_REGISTRY.register("ppg")
class PPGPolicy(PhasicPolicyGradient):
    """Phasic Policy Gradient (Cobbe et al. 2020), on-policy: updates on each new collection."""

    config = dict(
        type="ppg",
        learn=dict(
            # Passes over the data in a policy phase.
            actor_epoch_per_collect=1,
            critic_epoch_per_collect=1,
            value_norm=False,
            # Policy phases per auxiliary phase.
            aux_freq=8,
        ),
    )

    def _learn(self, batch: Rollout) -> list[Log]:
        """A policy phase with one log per minibatch; then an auxiliary phase, if due."""
        cfg = self._cfg.learn
        self._estimate_returns(batch, first=True)
        actor = [
            self._update_actor(part)
            for _ in range(cfg.actor_epoch_per_collect)
            for part in self._minibatches(batch)
        ]
        critic = [
            self._update_critic(part)
            for _ in range(cfg.critic_epoch_per_collect)
            for part in self._minibatches(batch)
        ]
        none: Log = {}
        logs = [self._total({**a, **c}) for a, c in zip_longest(actor, critic, fillvalue=none)]
        logs[-1].update(self._remember(batch))
        return logs


@POLICY_REGISTRY.register("ppg_offpolicy")
class PPGOffPolicy(PhasicPolicyGradient):
    """Phasic Policy Gradient (Cobbe et al. 2020) on samples of two replay buffers.

    One buffer serves the policy phase, the other the value phase; their ``max_use`` is the number
    of times each sample is used. Advantages come from the value network at the time of collecting.
    """

    config = dict(
        type="ppg_offpolicy",
        on_policy=False,
        transition_with_policy_data=True,
        learn=dict(
            update_per_collect=5,
            # Updates per auxiliary phase.
            aux_freq=5,
            # Old names of `aux_train_epoch` and `aux_bc_weight`, used if set.
            epochs_aux=None,
            beta_weight=None,
        ),
        other=dict(
            replay_buffer=dict(
                # Separate buffers for policy and value phase; False: one for both.
                multi_buffer=True,
                policy=dict(replay_buffer_size=1000, max_use=float("inf")),
                value=dict(replay_buffer_size=1000, max_use=float("inf")),
            )
        ),
    )

    _learned = {**PhasicPolicyGradient._learned, "value_norm_counted": "_counted"}

    def _init_learn(self) -> None:
        super()._init_learn()
        buffer = self._cfg.other.replay_buffer
        parts = ("policy", "value") if buffer.get("multi_buffer", False) else ()
        sizes = [buffer[part].replay_buffer_size for part in parts]
        self._counted = CountedSteps(sum(sizes) or buffer.replay_buffer_size)

    def _get_batch_size(self) -> int | dict[str, int]:
        size = self._cfg.learn.batch_size
        multi = self._cfg.other.replay_buffer.get("multi_buffer", False)
        return {"policy": size, "value": size} if multi else size

    def _batch(self, data: Samples) -> dict[str, Rollout]:  # type: ignore[override]
        """Batches for both networks, from samples or ``{'policy': samples, 'value': samples}``."""
        if not (isinstance(data, Mapping) and set(data) == {"policy", "value"}):
            data = {"policy": data, "value": data}
        return {name: super(PPGOffPolicy, self)._batch(part) for name, part in data.items()}

    def _check_batch(self, batch: dict[str, Rollout]) -> None:
        for part in batch.values():
            super()._check_batch(part)

    def _learn(self, batch: dict[str, Rollout]) -> Log:  # type: ignore[override]
        """One update of each network, and an auxiliary phase if due."""
        for part in batch.values():
            new = self._counted.take_new(part.get("step_id")) if self._value_norm else None
            self._set_returns(part, new)
        log = {**self._update_actor(batch["policy"]), **self._update_critic(batch["value"])}
        return {**self._total(log), **self._remember(batch["value"])}


def _renamed(cfg: EasyDict, old: str, new: str) -> Any:
    value = cfg.get(old)
    return cfg[new] if value is None else value


#: Maximum size of a memory in a checkpoint.
_MOST_BYTES = 1 << 26


class AuxiliaryMemory:
    """Observations in their original form and their returns ``[N]``, on the CPU."""

    def __init__(self) -> None:
        self._parts: list[Arrays] = []
        #: Number of policy phases since the last auxiliary phase.
        self.phases = 0

    def add(self, obs: Obs, returns: torch.Tensor) -> None:
        """Copy the observations and returns of a policy phase."""
        part = {"obs": obs, "return": returns}
        self._parts.append(tree_map(lambda leaf: torch.as_tensor(leaf).cpu().clone(), part))
        self.phases += 1

    def take(self) -> tuple[Obs, torch.Tensor]:
        """Remove and return all data."""
        parts, self._parts, self.phases = self._parts, [], 0
        joined: Arrays = tree_join(torch.cat, parts)
        return joined["obs"], joined["return"]

    def state_dict(self) -> State:
        """The memory; above 64 MiB it is left out, and a resumed run starts with an empty one."""
        leaves = [leaf for part in self._parts for leaf in tree_leaves(part)]
        small = sum(leaf.numel() * leaf.element_size() for leaf in leaves) <= _MOST_BYTES
        return {"phases": self.phases, "parts": self._parts if small else []}

    def load_state_dict(self, state: State) -> None:
        self.phases, self._parts = state["phases"], list(state["parts"])
