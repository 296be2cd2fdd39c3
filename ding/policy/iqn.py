"""Distributional Q-learning on drawn quantiles (Dabney et al. 2018, IQN)."""

from ding.policy.qrdqn import QRDQNPolicy
from ding.utils import POLICY_REGISTRY


@POLICY_REGISTRY.register("iqn")
class IQNPolicy(QRDQNPolicy):
    """QR-DQN's loss at ``model.num_quantiles`` shares of probability that are drawn anew.

    As many are drawn of the prediction as of the target; acting takes their midpoints instead, so
    that the same observation gives the same values.
    """

    paper = "Dabney et al. 2018b"
    config = dict(type="iqn")

    _network = "iqn"
