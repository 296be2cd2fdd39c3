"""Types of configs, for editors and type checkers: keys with their types and meanings.

Made from the schema and the defaults of the registered classes by ``docs/config_stub.py``. Old
names of keys, and keys without an effect, are left out. Keys of custom classes are those of a
subclass, which is accepted where the base class is::

    class WalkConfig(EnvConfig, total=False):
        length: int

    main_config: MainConfig = {"env": WalkConfig(length=9, stop_value=10)}
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

class MainConfig(TypedDict, total=False):
    """Keys of ``main_config``."""

    policy: PolicyConfig
    """The policy, and all that trains it."""
    dataset: DatasetConfig
    env: EnvConfig
    """The environments."""
    reward_model: RewardModelConfig
    bco: BcoConfig
    exp_name: str
    """Folder of the run."""
    seed: Any
    """Seed of everything random; that of the call counts."""
    create_config: Any
    """Types by component; in compiled configs."""
    trackers: Any
    """What takes the run's figures: names, or options by name."""
    callbacks: Any
    """What is called during the run: classes, names, or arguments by name."""

class EnvConfig(TypedDict, total=False):
    """Keys of ``env``."""

    manager: ManagerConfig
    norm_obs: NormObsConfig
    norm_reward: NormRewardConfig
    type: str
    """Registered type of the environments."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    env_id: str | None
    """Id of gymnasium's registry."""
    collector_env_num: int | None
    """Environments that collect. Greater than 0."""
    evaluator_env_num: int | None
    """Environments that evaluate. Greater than 0."""
    n_evaluator_episode: int | None
    """Episodes of an evaluation. Greater than 0."""
    stop_value: Any
    """Mean return of an evaluation that ends the run as converged; in battles one each."""
    replay_path: Any
    """Folder for videos of episodes."""
    max_episode_steps: Any
    """Steps after which an episode is cut. Greater than 0. Unit: steps."""
    collector_episode_num: int
    """Episodes of each environment in a collector's task. At least 1. Unit: episodes."""
    evaluator_episode_num: int
    """Episodes of each environment in an evaluation task. Unit: episodes."""
    player_num: int
    """Players of a battle."""
    env_wrapper: Any
    """Name of a preset of wrappers, or a list of wrappers."""
    act_scale: bool
    """Whether actions come in [-1, 1] and are mapped to the environment's bounds."""
    clip_action: bool
    """Whether actions beyond the bounds are clipped."""
    first_action: Any
    """Number of the environment's first action if it is not 0, or one for each choice; set by
    runs."""
    action_bins_per_branch: Any
    """Choices that each number of a continuous action is replaced by."""
    frame_stack: float | None
    """Observations that are stacked into one. 0 or more."""
    rew_clip: bool
    """Whether collectors' rewards below -10 become -10."""
    clip_rewards: bool
    """Whether collectors' rewards are clipped to their signs."""
    delay_reward_step: float
    """Steps whose rewards come at once."""
    obs_plus_prev_action_reward: bool
    """Whether observations hold the previous action and reward."""
    is_train: bool
    """Whether the environment shapes rewards for training."""
    kwargs: Mapping[str, Any] | None
    """Further arguments of gymnasium.make."""
    continuous: bool | None
    """Whether actions are continuous, where an environment has both forms."""
    flat_obs: bool
    """Whether MiniGrid's observations are flat vectors."""
    is_slippery: Any
    """Whether moves on the frozen lake may slip."""
    desc: Any
    """Map of the frozen lake, as rows of letters."""
    map_name: Any
    """Name of the frozen lake's map."""
    num_actuators: float
    """Actuators of gym_hybrid's moving task."""
    n_bits: float
    """Bits of bitflip."""
    size: float
    """Width of the game's field."""
    goal: float
    """Coins that win a coin race."""
    eval_opponent: Any
    """Opponent of evaluations: 'random' or 'RULE_BASED'."""
    game: str
    """Which matrix game: 'two_step' or one of one step."""
    payoff: Any
    """Table of the matrix game's rewards."""
    agent_num: float | None
    """Agents of a team."""
    n_agent: Any
    """Agents of a particle task."""
    n_landmark: Any
    """Landmarks of a particle task."""
    max_cycles: float
    """Steps of an episode of PettingZoo."""
    continuous_actions: bool
    """Whether PettingZoo's actions are continuous."""
    env_family: str
    """Family of PettingZoo's tasks."""
    agent_obs_only: bool
    """Whether a team's observation is that of its agents alone."""
    agent_specific_global_state: bool
    """Whether each agent has a global state that names it."""

class PolicyConfig(TypedDict, total=False):
    """Keys of ``policy``."""

    collect: CollectConfig
    eval: EvalConfig
    learn: LearnConfig
    other: OtherConfig
    model: ModelConfig
    """Arguments of the network."""
    context_len: Any
    """Steps of a sequence."""
    n_blocks: Any
    """Layers of a transformer."""
    embed_dim: Any
    """Width of its tokens."""
    h_dim: Any
    """Width of its tokens."""
    n_heads: Any
    """Heads of its attention."""
    dropout_p: Any
    """Share of dropout."""
    drop_p: Any
    """Share of dropout."""
    type: str
    """Registered type of the policy."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    cuda: bool
    """Whether to use a GPU."""
    on_policy: bool
    """Whether it learns from what it has just collected alone."""
    multi_gpu: bool
    """Whether several learners train one policy."""
    bp_update_sync: bool
    """No effect: learners average their gradients after the backward pass."""
    traj_len_inf: bool
    """Whether trajectories are whole episodes."""
    priority: bool
    """Whether samples are drawn by priority."""
    priority_IS_weight: bool
    """Whether their losses have importance weights."""
    load_path: Any
    """Checkpoint that is evaluated."""
    replay_path: Any
    """Folder for videos of episodes."""
    random_collect_size: int
    """Samples of random actions before training. Unit: samples."""
    expert_random_collect_size: int
    """Steps of an expert that SQIL imitates. Unit: steps."""
    transition_with_policy_data: bool
    """Whether samples have the policy's outputs."""
    multi_agent: bool
    """Whether it acts for a team."""
    action_space: str
    """Kind of the actions."""
    unroll_len: int | None
    """Steps of a sample that is a sequence. Greater than 0. Unit: steps."""
    nstep: int
    """Steps of a return. Greater than 0. Unit: steps."""
    discount_factor: float
    """Discount γ of returns. Between 0 and 1."""
    rtg_scale: float
    """Returns of a decision transformer are divided by it. Greater than 0."""
    rtg_target: Any
    """Return that a decision transformer acts for; None: the data set's highest."""
    state_mean: Any
    """Mean of the states; None: that of the data set."""
    state_std: Any
    """Their standard deviation; None: that of the data set."""
    warmup_steps: float
    """Updates in which the learning rate rises."""
    wt_decay: float
    """Weight decay of AdamW."""
    clip_grad_norm_p: float
    """Largest norm of the gradient."""
    action_shape: float
    """Choices of the actions (behaviour cloning)."""
    agent_num: Any
    """Agents of the team."""
    burnin_step: float
    """Steps that bring a recurrent state up to date before those learned from."""
    learn_unroll_len: float
    """Steps of a sequence that are learned from."""
    deterministic_eval: bool
    """Whether evaluations take the likeliest action, not draws."""
    entropy_tau: float
    """Temperature of the soft maximum (Munchausen)."""
    m_alpha: float
    """Weight of the log-policy that is added to rewards (Munchausen)."""
    loss_type: Any
    """Loss of behaviour cloning: 'l1_loss', 'mse_loss' or None for the likelihood."""
    noisy_net: bool
    """Whether linear layers have learned noise, in place of ε."""
    nstep_return: bool
    """Whether returns are of n steps."""
    priority_form: str
    """Priority of a TD error: 'absolute' or 'squared'."""
    recompute_adv: bool
    """Whether each epoch estimates advantages with the critic of now."""
    reward_batch_norm: bool
    """Whether the rewards of each batch are normalised."""

class ManagerConfig(TypedDict, total=False):
    """Keys of ``env.manager``."""

    type: str
    """Registered type of the env manager."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    shared_memory: bool
    """Whether observations come through shared memory."""
    copy_on_get: bool
    """Accepted for old configs: always copies."""
    context: str
    """How processes start: 'fork', 'spawn' or 'forkserver'."""
    wait_num: Any
    """Environments to wait for at each step."""
    step_wait_timeout: Any
    """Longest wait for slower environments. Unit: s."""
    connect_timeout: float
    """Longest wait for an environment's process. Unit: s."""
    reset_inplace: bool
    """Whether a failed environment is reset in place."""
    max_retry: int
    """Tries of a reset or step before it fails."""
    auto_reset: bool
    """Whether an environment begins its next episode at once."""
    batch_size: Any
    """Accepted for old configs: all answer at once."""
    env_id: Any
    """Task of EnvPool."""
    env_num: float
    """Environments of EnvPool."""
    envs_per_worker: Any
    """Environments of each process; None for a number that fits the cores."""
    episode_num: float
    """Episodes after which an environment is done for good."""
    kwargs: Mapping[str, Any]
    """Further arguments of envpool.make."""
    retry_type: str
    """What a failed reset or step is tried with: 'reset' or 'renew'. A process that died is
    renewed anyway."""
    reset_timeout: Any
    """Longest time of a reset. Greater than 0. Unit: s."""
    step_timeout: Any
    """Longest time of a step. Greater than 0. Unit: s."""
    retry_waiting_time: float
    """Pause between two tries. Unit: s."""

class LearnConfig(TypedDict, total=False):
    """Keys of ``policy.learn``."""

    learner: LearnerConfig
    noise_range: LearnNoiseRangeConfig
    multi_gpu: bool
    """Whether several learners train one policy."""
    unroll_len: int | None
    """Steps of a sample that is a sequence. Greater than 0. Unit: steps."""
    learning_rate_policy: float
    """Step size of the actor's optimiser."""
    learning_rate_q: float
    """Step size of the critic's optimiser."""
    resume_training: bool
    """Whether the run continues from its last state."""
    ignore_done: bool
    """Whether targets bootstrap at an episode's end."""
    train_epoch: Any
    """Epochs of training from a data set."""
    batch_size: int
    """Samples of an update. Greater than 0."""
    learning_rate: float
    """Step size of the optimiser. Greater than 0."""
    learning_rate_actor: float
    """Step size of the actor's optimiser."""
    learning_rate_critic: float
    """Step size of the critic's optimiser."""
    target_update_freq: int | None
    """Updates between two copies of the network into its target. Greater than 0. Unit: updates."""
    target_theta: float
    """Share of the network in its moving target. Between 0 and 1."""
    update_per_collect: int
    """Updates after each collection; on-policy policies count in epochs. Greater than 0. Unit:
    updates."""
    epoch_per_collect: int
    """Passes over each collection; off-policy policies count in updates. Greater than 0. Unit:
    epochs."""
    learning_rate_alpha: float
    """Step size of the temperature's optimiser."""
    learning_rate_cont: Any
    """Step size of the optimiser of continuous arguments."""
    learning_rate_dis: Any
    """Step size of the optimiser of choices."""
    learning_rate_fraction: float
    """Step size of the optimiser of quantile fractions."""
    learning_rate_quantile: float
    """Step size of the optimiser of quantile values."""
    learning_rate_vae: float
    """Step size of the optimiser of the generative model."""
    critic_learning_rate: Any
    """Step size of the critics' optimiser; None for that of the actors."""
    lr_scheduler: Any
    """Linear fall of the step size: dict(epoch_num, min_lr_lambda)."""
    lr_decay: bool
    """Whether the step size falls in steps, after a warm-up."""
    decay_epoch: float
    """Epochs between two falls of the step size."""
    decay_rate: float
    """Factor of each fall."""
    warmup_epoch: float
    """Epochs of the warm-up."""
    warmup_lr: float
    """Step size at its beginning."""
    optimizer: str
    """Optimiser: 'SGD', 'Adam' or 'AdamW'."""
    optim: str
    """Optimiser: 'adam' or 'rmsprop'."""
    momentum: float
    """Momentum of SGD."""
    weight_decay: float
    """Weight of the squared weights (L2) in the loss."""
    betas: Sequence[float]
    """Adam's two decay rates."""
    eps: float
    """Adam's ε."""
    init_w: float
    """Bound of the uniform weights of the last layers at the start; None keeps those of the
    network."""
    compile: Any
    """Mode of torch.compile for the networks; None does not compile."""
    mixed_precision: bool
    """Whether networks multiply in bfloat16; parameters, losses and targets stay float32."""
    grad_norm: float
    """Largest norm of the gradient; larger ones are scaled."""
    grad_clip_type: str | None
    """How gradients are clipped: None, 'clip_norm' or 'clip_value'."""
    grad_clip_value: float
    """Largest norm or value of gradients."""
    entropy_weight: float
    """Weight of the entropy in the loss."""
    value_weight: float
    """Weight of the value loss."""
    policy_weight: float
    """Weight of the policy loss."""
    value_norm: bool
    """Whether returns are normalised by their running deviation."""
    adv_norm: bool
    """Whether advantages are normalised in each batch."""
    reward_norm: Any
    """Whether rewards are normalised."""
    clip_ratio: float
    """Bound ε of PPO's ratio."""
    ppo_param_init: bool
    """Whether weights start orthogonal."""
    kl_type: str
    """Estimator of the divergence: 'k1', 'k2' or 'k3'."""
    kl_beta: float
    """Weight of the divergence from the pretrained policy."""
    pretrained_model_path: Any
    """Checkpoint of that policy."""
    actor_epoch_per_collect: float
    """Passes of the policy phase."""
    critic_epoch_per_collect: float
    """Passes of the critic in that phase."""
    aux_freq: float
    """Policy phases between two auxiliary ones."""
    aux_train_epoch: float
    """Passes of an auxiliary phase."""
    aux_bc_weight: float
    """Weight of keeping the policy in it."""
    lambda_: float
    """λ of corrections over several steps."""
    td_lambda: float
    """λ of the critic's targets."""
    rho_clip_ratio: float
    """Bound of V-trace's weights of TD errors."""
    c_clip_ratio: float
    """Bound of the weights that carry errors back (V-trace), or of ACER's ratios."""
    rho_pg_clip_ratio: float
    """Bound of V-trace's weights of the policy gradient."""
    trust_region: bool
    """Whether the policy keeps near its average."""
    trust_region_value: float
    """Largest divergence from that average."""
    actor_update_freq: float
    """Updates of the critics for each of the actor."""
    noise: bool
    """Whether targets act with noise (TD3)."""
    noise_sigma: float
    """Standard deviation of that noise."""
    auto_alpha: bool
    """Whether the temperature is learned."""
    alpha: float
    """Temperature; in TD3-BC the weight of the value, in WQMIX that of the others."""
    log_space: bool
    """Whether its logarithm is what is learned."""
    target_entropy: float | None
    """Entropy that a learned temperature aims at."""
    clip_value: float | None
    """Largest norm or value of gradients."""
    double_q: bool
    """Whether the online network chooses the action that targets take."""
    kappa: float
    """Where the Huber loss of quantiles becomes linear."""
    ent_coef: float
    """Weight of the entropy of quantile fractions."""
    value_rescale: bool
    """Whether values are learned in a compressed scale."""
    margin_function: float
    """Margin by which an expert's action has to be better."""
    lambda1: float
    """Weight of the n-step loss."""
    lambda2: float
    """Weight of the margin loss of an expert's steps."""
    lambda3: float
    """Weight of the squared weights (L2)."""
    lambda_one_step_td: float
    """Weight of the one-step loss."""
    per_train_iter_k: float
    """Updates from demonstrations before collecting."""
    expert_replay_buffer_size: float
    """Samples of demonstrations that are kept."""
    min_q_weight: float
    """Weight of CQL's conservative term."""
    num_actions: float
    """Actions drawn for that term."""
    with_lagrange: bool
    """Whether its weight is learned."""
    lagrange_thresh: float
    """Threshold that a learned weight holds the term to."""
    with_q_entropy: bool
    """Whether targets have the entropy."""
    eta: float
    """Weight of the diversity of the ensemble (EDAC)."""
    tau: float
    """Expectile of the value (IQL)."""
    beta: float
    """Inverse temperature of the advantages (IQL)."""
    lmbda: float
    """Weight of the minimum of two values (BCQ)."""
    update_circle: float
    """Updates between two of the continuous arguments."""
    td_weight: float
    """Weight of the TD loss (QTRAN)."""
    opt_weight: float
    """Weight of the loss of the best joint action (QTRAN)."""
    nopt_min_weight: float
    """Weight of the loss of the other joint actions (QTRAN)."""
    wqmix_ow: bool
    """Whether weights are optimistic (OW-QMIX) or central (CW-QMIX)."""
    collaq_loss_weight: float
    """Weight of CollaQ's regulariser."""
    ce_label_smooth: bool
    """Whether the labels of cross-entropy are smoothed."""
    show_accuracy: bool
    """Whether the share of equal actions is logged."""
    tanh_mask: bool
    """Whether actions at their bounds are left out of the loss."""
    discount_factor: float
    """Discount γ of returns. Between 0 and 1."""
    target_update_theta: float
    """Share of the network in its moving target. Between 0 and 1."""

class CollectConfig(TypedDict, total=False):
    """Keys of ``policy.collect``."""

    collector: CollectorConfig
    noise_range: NoiseRangeConfig
    env_num: Any
    """Copy of env.collector_env_num."""
    unroll_len: int
    """Steps of a sample that is a sequence. Greater than 0. Unit: steps."""
    n_sample: int | None
    """Samples of a collection. Greater than 0."""
    n_episode: int | None
    """Episodes of a collection, in place of samples. Greater than 0."""
    collect_data: bool
    """Whether a battle collects this player's samples."""
    save_path: Any
    """File that demonstrations are saved in."""
    data_path: Any
    """The data set: a file, a run's folder or an id."""
    data_type: str
    """Registered type of the data set."""
    allow_pickle: bool
    """Whether to trust pickled data sets."""
    normalize_states: bool
    """Whether observations are normalised."""
    discount_factor: float
    """Discount γ of collected returns. Between 0 and 1."""
    gae_lambda: float
    """λ of generalised advantage estimation. Between 0 and 1."""
    collector_logit: bool
    """Whether samples have the logit; policies decide."""
    model_path: Any
    """Expert's checkpoint, its run's folder or zoo:NAME."""
    noise: bool
    """Whether actions have noise."""
    noise_sigma: float
    """Standard deviation of the exploration noise."""
    pho: float
    """Share of demonstrations in a batch."""
    traj_len_inf: bool
    """Whether trajectories are whole episodes."""

class EvalConfig(TypedDict, total=False):
    """Keys of ``policy.eval``."""

    evaluator: EvaluatorConfig
    env_num: Any
    """Copy of env.evaluator_env_num."""

class OtherConfig(TypedDict, total=False):
    """Keys of ``policy.other``."""

    replay_buffer: ReplayBufferConfig
    """The buffer; on-policy policies have none."""
    commander: CommanderConfig
    eps: EpsConfig
    """Exploration; on-policy policies have none."""
    league: LeagueConfig
    """Older place of the league's settings."""

class ModelConfig(TypedDict, total=False):
    """Keys of ``policy.model``."""

    action_space: str
    """Kind of the actions."""
    state_dim: Any
    """Length of a state, or its shape."""
    act_dim: Any
    """Number of actions, or length of one."""
    max_timestep: float
    """Times of an episode that the network knows apart."""
    state_encoder: Any
    """Network that encodes states that are no vectors."""
    context_len: float
    """Steps of a sequence."""
    n_blocks: float
    """Layers of a transformer."""
    h_dim: float
    """Width of its tokens."""
    n_heads: float
    """Heads of its attention."""
    drop_p: float
    """Share of dropout."""
    continuous: bool
    """Whether actions are vectors."""
    head_layer_num: int
    """Layers of the head."""
    actor_head_hidden_size: Sequence[int] | int
    """Width of the actor's head."""
    actor_head_layer_num: int
    """Layers of the actor's head."""
    critic_head_hidden_size: Sequence[int] | int
    """Width of the critic's head."""
    critic_head_layer_num: int
    """Layers of the critic's head."""
    obs_shape: Any
    """Shape of an observation: [n], or [C, H, W] of images."""
    action_shape: Any
    """Choices, or the length of a continuous action."""
    agent_num: Any
    """Agents of the team."""
    agent_obs_shape: Any
    """Shape of an agent's observation."""
    global_obs_shape: Any
    """Shape of the state that a central network sees."""
    alone_obs_shape: Any
    """Shape of an agent's observation without its allies."""
    self_feature_range: Any
    """First and last feature of an agent itself."""
    ally_feature_range: Any
    """First and last feature of its allies."""
    activation: Any
    """Activation function: a module or its name."""
    norm_type: Any
    """Normalisation between layers: 'BN', 'LN' or None."""
    dropout: Any
    """Share of units that are dropped in training."""
    noise: bool
    """Whether linear layers have learned noise."""
    init_bias: Any
    """First bias of Q-values: where the values start."""
    encoder: Any
    """A custom network in place of the encoder."""
    encoder_hidden_size_list: Sequence[int] | None
    """Widths of the encoder's layers."""
    hidden_size_list: Any
    """Widths of the layers."""
    actor_hidden_size_list: Any
    """Widths of the actor's layers."""
    head_hidden_size: Any
    """Width of the head."""
    layer_num: float
    """Hidden layers of each branch."""
    a_layer_num: Any
    """Hidden layers of the advantage branch."""
    v_layer_num: Any
    """Hidden layers of the value branch."""
    strides: Any
    """Strides of the convolutions."""
    impala_cnn_encoder: bool
    """Whether images go through IMPALA's residual network."""
    share_encoder: bool
    """Whether actor and critic have one encoder."""
    dueling: bool
    """Whether the head has a value and an advantage branch."""
    twin_critic: bool
    """Whether there are two critics."""
    ensemble_num: float
    """Critics of the ensemble."""
    critic_head_type: str
    """Form of the critic's distribution: 'categorical'."""
    n_atom: float
    """Atoms of the distribution of returns."""
    v_min: float
    """Least return of the distribution."""
    v_max: float
    """Largest return of the distribution."""
    num_quantiles: float
    """Quantiles of the returns."""
    quantile_embedding_size: float
    """Width of a quantile's embedding."""
    sigma_type: str
    """Standard deviation: 'fixed', 'independent', 'conditioned' or 'happo'."""
    fixed_sigma_value: float
    """Standard deviation that is fixed."""
    bound_type: Any
    """Bound of the mean of actions: 'tanh' for (-1, 1), or None."""
    lstm_type: str
    """Recurrent layer: 'normal', 'pytorch' or 'gru'."""
    use_lstm: bool
    """Whether the network is recurrent."""
    res_link: bool
    """Whether the recurrent layer is bridged."""
    mixer: bool
    """Whether the agents' values are mixed into one."""
    embedding_size: Any
    """Width of the embedding of state and actions."""
    attention: bool
    """Whether allies are attended to."""
    attention_size: float
    """Width of that attention."""
    global_cooperation: bool
    """Whether the second network sees the global state."""
    num_branches: float
    """Dimensions of an action, each with separate choices."""
    action_bins_per_branch: float
    """Choices of each dimension."""
    multi_pass: bool
    """Whether a choice's value depends on its own arguments alone."""
    action_mask: Any
    """Arguments of each choice."""
    phi: float
    """Largest change of a proposed action (BCQ)."""
    vae_hidden_dims: Sequence[int]
    """Widths of the generative model."""
    type: str
    """Registered type of the network."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""

class BcoConfig(TypedDict, total=False):
    """Keys of ``bco``."""

    learn: BcoLearnConfig
    model: BcoModelConfig
    alpha: float
    """Own steps of a round, as a share of those before the first one."""

class DatasetConfig(TypedDict, total=False):
    """Keys of ``dataset``."""

    context_len: Any
    """Not read: policy.model.context_len counts."""
    env_type: str
    """Kind of the environments; written, and not read."""

class RewardModelConfig(TypedDict, total=False):
    """Keys of ``reward_model``."""

    type: str
    """Registered type of the reward model."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    batch_size: int
    """Transitions of an update. Greater than 0."""
    learning_rate: float
    """Step size of the optimiser. Greater than 0."""
    update_per_collect: int
    """Updates after each collection. Unit: updates."""
    clear_buffer_per_iters: int
    """Time after which the transitions that it trains on are dropped. Unit: updates of the
    policy."""
    buffer_size: int
    """Most transitions that it trains on. Greater than 0."""
    extrinsic_reward_norm_max: float
    """What the environments' rewards are divided by. Greater than 0."""
    obs_shape: Any
    """Shape of an observation; by default that of the environments."""
    action_shape: Any
    """Choices or length of an action; by default those of the environments."""
    hidden_size_list: Sequence[int]
    """Widths of the encoder."""
    intrinsic_reward_type: str
    """Bonus: 'add' to rewards, 'assign' replaces them, 'new': own column."""
    intrinsic_reward_weight: Any
    """Factor of normalised bonuses; 1 by default."""
    extrinsic_reward_norm: bool
    """Whether to divide the environments' rewards."""
    obs_norm: bool
    """Whether RND normalises observations."""
    obs_norm_clamp_min: float
    """Lower bound of normalised observations."""
    obs_norm_clamp_max: float
    """Upper bound of normalised observations."""
    reverse_scale: float
    """Weight of the loss of ICM's inverse model."""
    her_strategy: str
    """Choice of HER's goals: 'future', 'final' or 'episode'."""
    her_replay_k: float
    """Transitions that HER adds for each one."""
    achieved: Any
    """Place of what is achieved in an observation: [first, end)."""
    goal: Any
    """Place of the goal in an observation: [first, end)."""
    success_reward: float
    """Reward of a transition that HER adds and that achieves its goal."""
    failure_reward: float
    """Reward of another one."""
    tolerance: float
    """Largest distance of a success, in each number."""
    expert_model_path: Any
    """Expert's checkpoint, its run's folder or zoo:NAME."""
    data_path: Any
    """File of the expert's transitions."""
    collect_count: float
    """Steps that the expert plays."""
    input_size: Any
    """Not read: it follows from the shapes."""
    reward_model_path: Any
    """Not read: the model is part of the run's state."""
    hidden_size: float
    """Width of the discriminator's layers."""
    continuous: Any
    """Not read: the environments' actions count."""
    log_every_n_train: Any
    """Not read."""
    store_model_every_n_train: Any
    """Not read."""
    min_snippet_length: float
    """Steps of the shortest snippet."""
    max_snippet_length: float
    """Steps of the longest snippet."""
    num_snippets: float
    """Pairs of snippets in a pass."""
    checkpoint_min: float
    """Updates of the first checkpoint that plays."""
    checkpoint_max: Any
    """Updates of the last one; None if there is one checkpoint."""
    checkpoint_step: Any
    """Updates between two of them."""
    eps_list: Sequence[float]
    """Shares of random actions of an expert of one checkpoint."""
    alpha: float
    """Scale of PWIL's rewards."""
    beta: float
    """Steepness of PWIL's rewards."""
    subsample: float
    """PWIL uses each subsample-th step of a demonstration."""
    episode_length: Any
    """Steps of an episode; by default those of the longest demonstration."""
    exp_name: Any
    """Not read."""
    num_trajs: Any
    """Not read: collect_count counts."""
    num_trajs_per_bin: Any
    """Not read: collect_count counts."""
    bc_path: Any
    """Not read: the expert itself is disturbed."""
    bc_iterations: Any
    """Not read: the expert itself is disturbed."""

class BcoLearnConfig(TypedDict, total=False):
    """Keys of ``bco.learn``."""

    idm_batch_size: float
    """Steps of an update of the inverse dynamics."""
    idm_learning_rate: float
    """Step size of its optimiser."""
    idm_weight_decay: float
    """Weight decay of its optimiser."""
    idm_train_epoch: float
    """Passes over all own steps after each collection."""

class BcoModelConfig(TypedDict, total=False):
    """Keys of ``bco.model``."""

    idm_encoder_hidden_size_list: Sequence[int]
    """Widths of its layers."""
    action_space: Any
    """Not read: the environments' actions count."""

class NormObsConfig(TypedDict, total=False):
    """Keys of ``env.norm_obs``."""

    offline_stats: OfflineStatsConfig
    use_norm: bool
    """Whether observations are normalised by what the run has seen."""

class NormRewardConfig(TypedDict, total=False):
    """Keys of ``env.norm_reward``."""

    use_norm: bool
    """Whether collectors' rewards are normalised."""
    reward_discount: float
    """Discount of the returns that rewards are normalised by. Between 0 and 1."""

class OfflineStatsConfig(TypedDict, total=False):
    """Keys of ``env.norm_obs.offline_stats``."""

    use_offline_stats: bool
    """Whether observations are normalised by given figures."""
    mean: Any
    """Mean of the observations."""
    std: Any
    """Standard deviation of the observations."""

class CollectorConfig(TypedDict, total=False):
    """Keys of ``policy.collect.collector``."""

    type: str
    """Registered type of the collector."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    collector_num: int
    """Collectors of a parallel run. At least 1."""
    update_policy_second: float
    """Time between two looks for newer weights. Unit: s."""
    get_train_sample: bool
    """Whether an episode collector returns training samples, not whole episodes."""
    reward_shaping: bool
    """Whether environments shape rewards."""
    collect_print_freq: float
    """Collections between two lines of the log."""
    compressor: str
    """How a collector that packs its samples does so."""
    deepcopy_obs: bool
    """Whether observations are copied for a policy that acts row by row."""
    transform_obs: bool
    """Whether observations become tensors for a policy that acts row by row."""
    print_freq: float
    """Time between two lines of the log. Unit: s."""

class NoiseRangeConfig(TypedDict, total=False):
    """Keys of ``policy.collect.noise_range``."""

    min: float
    """Least noise."""
    max: float
    """Largest noise."""

class EvaluatorConfig(TypedDict, total=False):
    """Keys of ``policy.eval.evaluator``."""

    render: RenderConfig
    n_episode: int
    """Copy of env.n_evaluator_episode."""
    stop_value: Any
    """Copy of env.stop_value."""
    type: str
    """Registered type of the evaluator."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    opponent: str
    """Opponent in battles: 'random' or 'self'."""
    eval_freq: int
    """Updates between two evaluations; -1 for none between the first and the last. Greater than 0
    or -1. Unit: updates."""
    figure_path: Any
    """Folder for figures that an environment draws."""

class LearnerConfig(TypedDict, total=False):
    """Keys of ``policy.learn.learner``."""

    hook: HookConfig
    dataloader: DataloaderConfig
    type: str
    """Registered type of the learner."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    load_path: Any
    """Checkpoint; read by users' scripts."""
    learner_num: int
    """Learners of a parallel run. At least 1."""
    send_policy_freq: int
    """Updates between two publications of the weights. At least 1. Unit: updates."""
    iteration_timeout: float
    """Longest time of an update. Unit: s."""
    train_iterations: int
    """Updates of a learner's run."""
    is_multitask_pipeline: bool
    """Kept for configs; nothing here reads it."""
    log_policy: bool
    """Whether the network is printed at the start."""
    only_monitor_rank0: bool
    """Whether the first learner alone writes scalars."""

class LearnNoiseRangeConfig(TypedDict, total=False):
    """Keys of ``policy.learn.noise_range``."""

    min: float
    """Least noise."""
    max: float
    """Largest noise."""

class CommanderConfig(TypedDict, total=False):
    """Keys of ``policy.other.commander``."""

    type: str
    """Registered type of the commander."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    collector_task_space: int
    """Collection tasks at the same time; one for each collector if it is not given. 0 or more.
    Unit: tasks."""
    learner_task_space: int
    """Learner tasks at the same time. At least 1. Unit: tasks."""
    eval_interval: float
    """Time between two evaluations. Unit: s."""
    eval_share: float
    """Largest share of the collectors' time that evaluations take. Between 0 and 1."""
    greedy_share: float
    """Share of the env steps that are collected with as little exploration as at the end. Between
    0 and 1."""
    max_env_step: float
    """Environment steps after which a parallel run ends. Greater than 0. Unit: steps."""
    league: Mapping[str, Any]
    """Settings of the league."""
    path_policy: str
    """Folder of the players' weights."""

class EpsConfig(TypedDict, total=False):
    """Keys of ``policy.other.eps``."""

    start: float
    """ε at the beginning. Between 0 and 1."""
    end: float
    """ε at the end. Between 0 and 1."""
    decay: float
    """Length of ε's fall. Greater than 0. Unit: environment steps."""
    collect: float
    """ε of saved demonstrations."""
    type: str
    """Form of ε's fall. 'exp' or 'linear'."""

class LeagueConfig(TypedDict, total=False):
    """Keys of ``policy.other.league``."""

    active_players: Any
    """Players that learn, by kind."""
    import_names: Sequence[str]
    """Modules to import, which register the league."""
    league_type: Any
    """Registered type of the league."""
    metric: Any
    """Parameters of the ratings (TrueSkill)."""
    naive_sp_player: Any
    """Settings of players by self-play."""
    payoff: Any
    """Settings of the table of games: type, decay, min_win_rate_games."""
    player_category: Any
    """Categories of players."""
    pretrain_checkpoint_path: Any
    """Checkpoint to begin with, by category."""
    use_pretrain: Any
    """Whether players begin with a checkpoint."""
    use_pretrain_init_historical: Any
    """Whether that one is an opponent as well."""

class ReplayBufferConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer``."""

    thruput_controller: ThruputControllerConfig
    monitor: MonitorConfig
    priority: bool
    """Whether samples are drawn by priority."""
    priority_IS_weight: bool
    """Whether their losses have importance weights."""
    type: str
    """Registered type of the replay buffer."""
    import_names: Sequence[str]
    """Modules to import, which register the type."""
    replay_buffer_size: int
    """Samples that the buffer holds. Greater than 0."""
    periodic_thruput_seconds: float
    """Moved into `monitor`."""
    alpha: float
    """Exponent of priorities: 0 draws uniformly."""
    beta: float
    """Exponent of importance weights at the start."""
    anneal_step: float
    """Draws over which that exponent rises to 1."""
    priority_power_factor: float
    """Exponent of priorities."""
    IS_weight_power_factor: float
    """Exponent of importance weights at the start."""
    IS_weight_anneal_train_iter: float
    """Updates over which that exponent rises to 1."""
    deepcopy: bool
    """Whether rows are copied when they are drawn."""
    enable_track_used_data: bool
    """Whether files of dropped samples are removed."""
    max_staleness: float
    """Largest age of a sample, in updates."""
    max_use: float
    """Draws after which a sample is dropped."""
    memmap_path: Any
    """Folder for memory-mapped files, for data larger than the memory."""
    multi_buffer: bool
    """Whether actor and critic have a buffer each."""
    policy: ReplayBufferConfig
    value: ReplayBufferConfig

class RenderConfig(TypedDict, total=False):
    """Keys of ``policy.eval.evaluator.render``."""

    render_freq: float
    """Distance of recorded evaluations; -1: none."""
    mode: str
    """What it counts: 'train_iter' or 'envstep'."""

class DataloaderConfig(TypedDict, total=False):
    """Keys of ``policy.learn.learner.dataloader``."""

    num_workers: int
    """Processes that load data."""

class HookConfig(TypedDict, total=False):
    """Keys of ``policy.learn.learner.hook``."""

    load_ckpt_before_run: Any
    """Checkpoint to begin with."""
    log_show_after_iter: Any
    """Updates between two lines of the log. Unit: updates."""
    save_ckpt_after_iter: Any
    """Updates between two checkpoints. Unit: updates."""
    save_ckpt_after_run: Any
    """Whether to save one at the end."""
    log_reduce_after_iter: Any
    """Whether learners average their logs."""
    keep_ckpt: int
    """Checkpoints of updates that are kept; 0 for all."""

class MonitorConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer.monitor``."""

    periodic_thruput: PeriodicThruputConfig
    sampled_data_attr: SampledDataAttrConfig

class ThruputControllerConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer.thruput_controller``."""

    push_sample_rate_limit: PushSampleRateLimitConfig
    sample_min_limit_ratio: float
    """Batches that the buffer holds before it is drawn from."""
    window_seconds: float
    """Time over which the ratio is measured. Unit: s."""

class PeriodicThruputConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer.monitor.periodic_thruput``."""

    seconds: float
    """Time between two lines about throughput. Unit: s."""

class SampledDataAttrConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer.monitor.sampled_data_attr``."""

    average_range: float
    """Draws that logged figures are means of."""
    print_freq: float
    """Draws between two lines about them; 0 for none."""

class PushSampleRateLimitConfig(TypedDict, total=False):
    """Keys of ``policy.other.replay_buffer.thruput_controller.push_sample_rate_limit``."""

    max: float
    """Largest ratio of pushed to drawn samples."""
    min: float
    """Least ratio of pushed to drawn samples."""

class CreateConfig(TypedDict, total=False):
    """Keys of ``create_config``."""

    env: EnvConfig
    env_manager: ManagerConfig
    policy: PolicyConfig
    learner: LearnerConfig
    collector: CollectorConfig
    evaluator: EvaluatorConfig
    replay_buffer: ReplayBufferConfig
    reward_model: RewardModelConfig
    commander: CommanderConfig
    model: ModelConfig
    comm_learner: PartConfig
    comm_collector: PartConfig
    league: PartConfig

class PartConfig(TypedDict, total=False):
    """Keys of ``a section of create_config``."""

    type: str
    import_names: Sequence[str]
