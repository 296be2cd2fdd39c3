"""Config keys that reward models share."""

from ding.config.key import POSITIVE, own, part

REWARD_MODEL = (
    *part("reward_model", "reward model"),
    own("reward_model.batch_size", "Transitions of an update.", range=POSITIVE, whole=True),
    own("reward_model.learning_rate", "Step size of the optimiser.", range=POSITIVE),
    own(
        "reward_model.update_per_collect",
        "Updates after each collection.",
        unit="updates",
        whole=True,
    ),
)
