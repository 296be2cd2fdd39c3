"""Importance weighted actor-learner architecture (Espeholt et al. 2018)."""

from ding.model.wrapper.sample import legal
from ding.policy._types import Log, Sequences
from ding.policy.checks import floats
from ding.policy.learning import weighted_sum
from ding.policy.networks import stochastic_actor
from ding.policy.policy_gradient import BEST, DRAWN, PolicyGradient
from ding.policy.unrolled import UnrolledPolicy, flat_steps, piece_priority, with_last_values
from ding.rl_utils import (
    vtrace_data,
    vtrace_error_discrete_action,
)
from ding.rl_utils.log_prob_utils import split_like
from ding.torch_utils import Adam, RMSprop
from ding.torch_utils.data_helper import map_leaves
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import check_one_of

_OPTIMIZERS = {"adam": Adam, "rmsprop": RMSprop}


@POLICY_REGISTRY.register("impala")
class IMPALAPolicy(UnrolledPolicy):
    """IMPALA (Espeholt et al. 2018): an off-policy actor-critic with V-trace corrections.

    If ``model.action_shape`` is a list of K sizes, an action consists of K independent choices.
    ``model.impala_cnn_encoder=True`` selects the paper's residual encoder for images.
    """

    paper = "Espeholt et al. 2018"
    actions = ("discrete", "multi-discrete", "continuous")
    networks = stochastic_actor(
        *("discrete", "continuous"), modes=("compute_actor", "compute_actor_critic")
    )
    config = dict(
        type="impala",
        # 'discrete' or 'continuous'.
        action_space="discrete",
        learn=dict(
            learning_rate=5e-4,
            discount_factor=0.99,
            # Upper bounds of the importance weights: of the errors (determines the fixed point), of
            # the traces (determines the speed of convergence), and of the policy gradient.
            rho_clip_ratio=1.0,
            c_clip_ratio=1.0,
            rho_pg_clip_ratio=1.0,
            clip_value=0.5,
            # 'adam' or 'rmsprop'.
            optim="adam",
        ),
    )

    _silent_keys = (
        *("collect.discount_factor", "collect.gae_lambda"),
        "other.replay_buffer.sliced",
    )

    _network = "vac"
    _action_spaces = PolicyGradient._action_spaces
    _logged: tuple[str, ...] = (
        *("cur_lr", "total_loss", "policy_loss", "value_loss", "entropy_loss", "value_mean"),
    )

    def _init_learn(self) -> None:
        cfg = self._cfg.learn
        self._use_priority()
        check_one_of("policy.learn.optim", cfg.optim, _OPTIMIZERS)
        self._optimizer = _OPTIMIZERS[cfg.optim](
            self._model.parameters(),
            lr=cfg.learning_rate,
            grad_clip_type=cfg.grad_clip_type,
            clip_value=cfg.clip_value,
        )

    def _learn(self, batch: Sequences) -> Log:
        """One update; the ``priority`` of an unroll is its mean one-step error."""
        cfg, shape = self._cfg.learn, batch["discount"].shape
        obs = flat_steps(batch["obs"])
        output = legal(self._model(obs, mode="compute_actor_critic"), obs)
        steps = shape[0] + 1, shape[1]
        value = with_last_values(output["value"].unflatten(0, steps), batch["mask"])
        # The output for the last observation is not needed.
        logit = map_leaves(lambda part: part.unflatten(0, steps)[:-1], output["logit"])
        behaviour = split_like(batch["logit"], logit)
        loss = vtrace_error_discrete_action(
            vtrace_data(logit, behaviour, batch["action"], value, batch["reward"], batch["weight"]),
            batch["discount"],
            cfg.lambda_,
            cfg.rho_clip_ratio,
            cfg.c_clip_ratio,
            cfg.rho_pg_clip_ratio,
        )
        loss_value = self._descend(weighted_sum(loss._asdict(), cfg), batch, self._optimizer)
        log = {
            "cur_lr": self._optimizer.param_groups[0]["lr"],
            "total_loss": loss_value,
            **floats({**loss._asdict(), "value_mean": value.mean()}),
        }
        if self._priority:
            log["priority"] = piece_priority(batch, value.detach())
        return log

    @property
    def _explorer(self) -> str:  # type: ignore[override]
        return DRAWN[self._cfg.action_space]

    @property
    def _chooser(self) -> str:  # type: ignore[override]
        return BEST[self._cfg.action_space]
