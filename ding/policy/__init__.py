"""Policies: what acts, and what learns from how it went."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "base_policy": ["CommandModePolicy", "Policy", "create_policy", "get_policy_cls"],
        "command_mode_policy_instance": [
            "DQNCommandModePolicy",
            "DummyCommandModePolicy",
            "EpsCommandModePolicy",
            "PPOCommandModePolicy",
        ],
        "common_utils": [
            "default_preprocess_learn",
            "set_noise_mode",
            "single_env_forward_wrapper",
        ],
        "dqn": ["DQNPolicy"],
        "modes": ["BatchedCollect", "BatchedEval"],
        "policy_factory": ["PolicyFactory", "get_random_policy"],
        "ppo": ["PPOPolicy"],
        "train_columns": ["as_train_columns", "flatten_numbers"],
    },
)
