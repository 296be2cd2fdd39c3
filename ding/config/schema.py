"""The config keys, a row each; checks and the docs are made from them.

A class's own keys, with their defaults, are in its ``config``. A row adds what that cannot say:
the meaning, the range, another place or older names of the same setting, and keys that configs may
hold although no class has a default for them.
"""

from typing import Any

from ding.config._policy_keys import POLICY
from ding.config.key import (
    AT_LEAST_ONE,
    FRACTION,
    POSITIVE,
    Key,
    count,
    own,
    own_count,
    part,
    section,
)

_OTHERS = (
    *section(
        "",
        exp_name=Key("Folder of the run.", ""),
        env=Key("The environments."),
        policy=Key("The policy, and all that trains it."),
        seed=Key("Seed of everything random; that of the call counts."),
        create_config=Key("Types by component; in compiled configs."),
        trackers=Key("What takes the run's figures: names, or options by name."),
        callbacks=Key("What is called during the run: classes, names, or arguments by name."),
    ),
    *section(
        "dataset",
        data_dir_prefix=Key("Older place of policy.collect.data_path."),
        rtg_scale=Key("Older place of policy.rtg_scale.", 0.0),
        context_len=Key("Not read: policy.model.context_len counts."),
        env_type=Key("Kind of the environments; written, and not read.", ""),
    ),
    *part("env", "environments"),
    *section(
        "env",
        env_id=Key("Id of gymnasium's registry.", ""),
        collector_env_num=count(
            "Environments that collect.", 0, may_be_none=True, twins=("policy.collect.env_num",)
        ),
        evaluator_env_num=count(
            "Environments that evaluate.", 0, may_be_none=True, twins=("policy.eval.env_num",)
        ),
        n_evaluator_episode=count(
            "Episodes of an evaluation.",
            0,
            may_be_none=True,
            twins=("policy.eval.evaluator.n_episode",),
        ),
        stop_value=Key(
            "Mean return of an evaluation that ends the run as converged; in battles one each.",
            twins=("policy.eval.evaluator.stop_value",),
        ),
        replay_path=Key("Folder for videos of episodes."),
        max_episode_steps=Key("Steps after which an episode is cut.", unit="steps"),
        collector_episode_num=Key(
            "Episodes of each environment in a collector's task.",
            0,
            unit="episodes",
            range=AT_LEAST_ONE,
            whole=True,
        ),
        evaluator_episode_num=Key(
            "Episodes of each environment in an evaluation task.", 0, unit="episodes", whole=True
        ),
        player_num=Key("Players of a battle.", 0, whole=True),
        env_wrapper=Key("Name of a preset of wrappers, or a list of wrappers."),
        act_scale="Whether actions come in [-1, 1] and are mapped to the environment's bounds.",
        use_act_scale="Older name of act_scale.",
        clip_action="Whether actions beyond the bounds are clipped.",
        action_clip="Older name of clip_action.",
        action_bins_per_branch="Choices that each number of a continuous action is replaced by.",
        frame_stack="Observations that are stacked into one.",
        fram_stack="Older name of frame_stack.",
        rew_clip="Whether collectors' rewards below -10 become -10.",
        clip_rewards="Whether collectors' rewards are clipped to their signs.",
        delay_reward_step="Steps whose rewards come at once.",
        obs_plus_prev_action_reward="Whether observations hold the previous action and reward.",
        is_train="Whether the environment shapes rewards for training.",
        kwargs="Further arguments of gymnasium.make.",
        max_step="Older name of max_episode_steps.",
        save_replay_path="Older name of replay_path.",
        continuous="Whether actions are continuous, where an environment has both forms.",
        flat_obs="Whether MiniGrid's observations are flat vectors.",
        is_slippery="Whether moves on the frozen lake may slip.",
        desc="Map of the frozen lake, as rows of letters.",
        map_name="Name of the frozen lake's map.",
        num_actuators="Actuators of gym_hybrid's moving task.",
        n_bits="Bits of bitflip.",
        size="Width of the game's field.",
        goal="Coins that win a coin race.",
        eval_opponent="Opponent of evaluations: 'random' or 'RULE_BASED'.",
        game="Which matrix game: 'two_step' or one of one step.",
        payoff="Table of the matrix game's rewards.",
        agent_num="Agents of a team.",
        n_agent="Agents of a particle task.",
        n_landmark="Landmarks of a particle task.",
        n_landmarks="Older name of n_landmark.",
        max_cycles="Steps of an episode of PettingZoo.",
        continuous_actions="Whether PettingZoo's actions are continuous.",
        env_family="Family of PettingZoo's tasks.",
        agent_obs_only="Whether a team's observation is that of its agents alone.",
        agent_specific_global_state="Whether each agent has a global state that names it.",
    ),
    *part("env.manager", "env manager"),
    *section(
        "env.manager",
        # What some manager reads: configs keep these keys when they change its type.
        shared_memory=Key("Whether observations come through shared memory.", False),
        copy_on_get=Key("Accepted for old configs: always copies.", False),
        context=Key("How processes start: 'fork', 'spawn' or 'forkserver'.", ""),
        wait_num=Key("Environments to wait for at each step."),
        step_wait_timeout=Key("Longest wait for slower environments.", unit="s"),
        connect_timeout=Key("Longest wait for an environment's process.", 0.0, unit="s"),
        reset_inplace=Key("Whether a failed environment is reset in place.", False),
        max_retry=own("Tries of a reset or step before it fails.", whole=True),
        auto_reset="Whether an environment begins its next episode at once.",
        batch_size="Environments that EnvPool answers at a time.",
        env_id="Id of the vector environment.",
        env_num="Environments of EnvPool.",
        envs_per_worker="Environments of each process; None for a number that fits the cores.",
        episode_num="Episodes after which an environment is done for good.",
        kwargs="Further arguments of the vector environment.",
        native="Whether an environment's own vector version is used.",
        retry_type="What a failed reset or step is tried with: 'reset' or 'renew'.",
        reset_timeout=own("Longest time of a reset.", unit="s"),
        step_timeout=own("Longest time of a step.", unit="s"),
        retry_waiting_time=own("Pause between two tries.", unit="s"),
    ),
    *section(
        "env.norm_obs", use_norm="Whether observations are normalised by what the run has seen."
    ),
    *section(
        "env.norm_obs.offline_stats",
        use_offline_stats="Whether observations are normalised by given figures.",
        mean="Mean of the observations.",
        std="Standard deviation of the observations.",
    ),
    *section(
        "env.norm_reward",
        use_norm="Whether collectors' rewards are normalised.",
        reward_discount=own(
            "Discount of the returns that rewards are normalised by.", range=FRACTION
        ),
    ),
    *part("reward_model", "reward model"),
    *section(
        "reward_model",
        batch_size=own_count("Transitions of an update."),
        learning_rate=own("Step size of the optimiser.", range=POSITIVE),
        update_per_collect=own("Updates after each collection.", unit="updates", whole=True),
        clear_buffer_per_iters=own(
            "Time after which the transitions that it trains on are dropped.",
            unit="updates of the policy",
            whole=True,
        ),
        buffer_size=own_count("Most transitions that it trains on."),
        extrinsic_reward_norm_max=own(
            "What the environments' rewards are divided by.", range=POSITIVE
        ),
        obs_shape="Shape of an observation; by default that of the environments.",
        action_shape="Choices or length of an action; by default those of the environments.",
        hidden_size_list="Widths of the encoder.",
        intrinsic_reward_type="Bonus: 'add' to rewards, 'assign' replaces them, 'new': own column.",
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
        expert_model_path="Expert's checkpoint, its run's folder or zoo:NAME.",
        data_path="File of the expert's transitions.",
        offline_data_path="Older place of data_path.",
        collect_count="Steps that the expert plays.",
        input_size="Not read: it follows from the shapes.",
        reward_model_path="Not read: the model is part of the run's state.",
        hidden_size="Width of the discriminator's layers.",
        continuous="Not read: the environments' actions count.",
        log_every_n_train="Not read.",
        store_model_every_n_train="Not read.",
        min_snippet_length="Steps of the shortest snippet.",
        max_snippet_length="Steps of the longest snippet.",
        num_snippets="Pairs of snippets in a pass.",
        checkpoint_min="Updates of the first checkpoint that plays.",
        checkpoint_max="Updates of the last one; None if there is one checkpoint.",
        checkpoint_step="Updates between two of them.",
        eps_list="Shares of random actions of an expert of one checkpoint.",
        alpha="Scale of PWIL's rewards.",
        beta="Steepness of PWIL's rewards.",
        subsample="PWIL uses each subsample-th step of a demonstration.",
        episode_length="Steps of an episode; by default those of the longest demonstration.",
        exp_name="Not read.",
        num_trajs="Not read: collect_count counts.",
        num_trajs_per_bin="Not read: collect_count counts.",
        bc_path="Not read: the expert itself is disturbed.",
        bc_iterations="Not read: the expert itself is disturbed.",
    ),
    *section(
        "bco", alpha=Key("Own steps of a round, as a share of those before the first one.", 0.0)
    ),
    *section(
        "bco.learn",
        idm_batch_size=Key("Steps of an update of the inverse dynamics.", 0),
        idm_learning_rate=Key("Step size of its optimiser.", 0.0),
        idm_weight_decay=Key("Weight decay of its optimiser.", 0.0),
        idm_train_epoch=Key("Passes over all own steps after each collection.", 0),
    ),
    *section(
        "bco.model",
        idm_encoder_hidden_size_list=Key("Widths of its layers.", [0]),
        action_space=Key("Not read: the environments' actions count."),
    ),
    *section(
        "system_config",
        max_restart=own("Restarts of a worker before it is given up.", whole=True),
        learner_gpu_num=own("GPUs of a learner.", whole=True),
    ),
    *section(
        "system_config.engine",
        address="Ray's head: None for a Ray of the run's own, 'auto' or 'host:port'.",
        cfg_type="Name of the section's form; written, and not read.",
        modules="Modules that Ray's nodes are sent, in addition to those in import_names.",
        runtime_env="What else Ray sets up on its nodes.",
        object_store_memory=own("Size of a node's store.", unit="bytes"),
        head_tolerance=own(
            "How long the head of a Ray cluster may be unreachable before the run ends.",
            unit="seconds",
        ),
        driver_tolerance=own(
            "How long workers on a Ray cluster wait for another driver when theirs has died.",
            unit="seconds",
        ),
    ),
    *section(
        "system_config.engine.collector",
        num_cpus="CPUs that a collector asks of a node.",
        num_gpus="GPUs that a collector asks of a node.",
        resources="Other resources that a collector asks of a node, by name.",
    ),
    *section(
        "system_config.engine.learner",
        num_cpus="CPUs that a learner asks of a node.",
        num_gpus="GPUs that a learner asks of a node.",
        resources="Other resources that a learner asks of a node, by name.",
    ),
)

#: All rows, in the order in which messages name keys.
SCHEMA: tuple[Key, ...] = (*_OTHERS, *POLICY)

#: Numbers of things; other whole numbers may become fractions.
COUNTS = frozenset(key.path for key in SCHEMA if key.whole)
#: What configs hold and nothing reads.
SILENT = frozenset(key.path for key in SCHEMA if key.silent)
#: The same setting in two places.
TWINS = tuple((key.path, twin) for key in SCHEMA for twin in key.twins)
#: Older names, and the names of today.
OLD_NAMES = tuple((old, key.path) for key in SCHEMA for old in key.old)

#: Sections of ``create_config``; the last ones are those of parallel mode.
CREATE_SECTIONS = (
    *("env", "env_manager", "policy", "learner", "collector", "evaluator", "replay_buffer"),
    *("reward_model", "commander", "model", "comm_learner", "comm_collector", "league"),
)


def examples() -> dict[str, Any]:
    """The keys that every main config may hold, nested, each with an example of its value."""
    tree: dict[str, Any] = {}
    for key in SCHEMA:
        if not key.known:
            continue
        *way, last = key.path.split(".")
        section = tree
        for name in way:
            below = section.get(name)
            section[name] = section = below if isinstance(below, dict) else {}
        section[last] = dict(key.like) if isinstance(key.like, dict) else key.like
    return tree


def in_range(range_: str) -> list[Key]:
    """The keys whose numbers have this range."""
    return [key for key in SCHEMA if key.range == range_]
