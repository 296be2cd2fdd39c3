"""Config keys that reward models share."""

from ding.config.key import POSITIVE, own, owns, part

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
    own(
        "reward_model.clear_buffer_per_iters",
        "Time after which the transitions that it trains on are dropped.",
        unit="updates of the policy",
        whole=True,
    ),
    own(
        "reward_model.buffer_size",
        "Most transitions that it trains on.",
        range=POSITIVE,
        whole=True,
    ),
    own(
        "reward_model.extrinsic_reward_norm_max",
        "What the environments' rewards are divided by.",
        range=POSITIVE,
    ),
    *owns(
        "reward_model",
        obs_shape="Shape of an observation; by default that of the environments.",
        action_shape="Choices or length of an action; by default those of the environments.",
        hidden_size_list="Widths of the encoder.",
        intrinsic_reward_type="Use of a bonus: 'add' to the reward, 'assign' in place of it, or "
        "'new' for a column of its own.",
        intrinsic_reward_weight="Factor of normalised bonuses; 1 by default.",
        extrinsic_reward_norm="Whether to divide the environments' rewards.",
        obs_norm="Whether RND normalises observations.",
        obs_norm_clamp_min="Lower bound of normalised observations.",
        obs_norm_clamp_max="Upper bound of normalised observations.",
        reverse_scale="Weight of the loss of ICM's inverse model.",
        her_strategy="Choice of HER's goals: 'future', 'final' or 'episode'.",
        her_replay_k="Transitions that HER adds for each one.",
        achieved="Place of what is achieved in an observation: [first, end).",
        goal="Place of the goal in an observation: [first, end).",
        success_reward="Reward of a transition that HER adds and that achieves its goal.",
        failure_reward="Reward of another one.",
        tolerance="Largest distance of a success, in each number.",
    ),
)
