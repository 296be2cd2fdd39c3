"""Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018)."""

from ding.policy.ddpg import DDPGPolicy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("td3")
class TD3Policy(DDPGPolicy):
    """DDPG with the lesser of two critics, smoothed targets and a slower actor."""

    paper = "Fujimoto et al. 2018"
    config = dict(
        type="td3",
        model=dict(twin_critic=True),
        learn=dict(actor_update_freq=2, noise=True),
    )
