"""Names that scripts, configs and environment modules import, by module."""

import importlib.util
import pkgutil
from collections.abc import Iterator

import ding

#: Beginnings of the modules that need an extra, and what it installs.
_EXTRAS = {"ding.entry.sweep": "optuna", "ding.worker.engines.ray_": "ray"}

THERE: dict[str, str] = {
    "ding.config": """
        compile_config compile_config_parallel parallel_transform read_config
        read_config_directly save_config
    """,
    "ding.config.utils": """
        parallel_test_create_config parallel_test_main_config parallel_test_system_config
    """,
    "ding.data": """
        DequeBuffer ShmBuffer ShmBufferContainer create_dataset
    """,
    "ding.data.model_loader": """
        FileModelLoader
    """,
    "ding.data.storage_loader": """
        FileStorageLoader
    """,
    "ding.entry": """
        collect_demo_data collect_episodic_demo_data episode_to_transitions
        episode_to_transitions_filter eval parallel_pipeline serial_pipeline
        serial_pipeline_offline serial_pipeline_onpolicy serial_pipeline_onpolicy_ppg
        serial_pipeline_reward_model_offpolicy serial_pipeline_reward_model_onpolicy
    """,
    "ding.entry.parallel_entry": """
        parallel_pipeline
    """,
    "ding.entry.utils": """
        random_collect
    """,
    "ding.envs": """
        ActionRepeatWrapper AllinObsWrapper AsyncSubprocessEnvManager BaseEnv BaseEnvManager
        BaseEnvTimestep ClipRewardWrapper DelayRewardWrapper DingEnvWrapper EpisodicLifeWrapper
        EvalEpisodeReturnWrapper FireResetWrapper FrameStackWrapper MaxAndSkipWrapper
        NoopResetWrapper ObsNormWrapper ObsPlusPrevActRewWrapper RamWrapper RewardNormWrapper
        ScaledFloatFrameWrapper StaticObsNormWrapper SubprocessEnvManagerV2
        SyncSubprocessEnvManager WarpFrameWrapper create_env_manager get_env_cls
        get_env_manager_cls get_vec_env_setting update_shape
    """,
    "ding.envs.common": """
        EnvElement EnvElementRunner affine_transform div_func div_one_hot save_frames_as_gif
    """,
    "ding.envs.common.common_function": """
        affine_transform
    """,
    "ding.envs.common.env_element": """
        EnvElement EnvElementInfo
    """,
    "ding.envs.env": """
        BaseEnv BaseEnvTimestep DingEnvWrapper check_all check_array_space
        check_different_memory demonstrate_correct_procedure
    """,
    "ding.envs.env.base_env": """
        BaseEnvTimestep
    """,
    "ding.envs.env_manager": """
        AsyncSubprocessEnvManager BaseEnvManager EnvSupervisor SyncSubprocessEnvManager
    """,
    "ding.envs.env_manager.base_env_manager": """
        BaseEnvManager EnvState
    """,
    "ding.envs.env_manager.envpool_env_manager": """
        PoolEnvManager
    """,
    "ding.envs.env_manager.gym_vector_env_manager": """
        GymVectorEnvManager
    """,
    "ding.envs.env_manager.subprocess_env_manager": """
        ShmBuffer
    """,
    "ding.envs.env_wrappers": """
        GymToGymnasiumWrapper create_env_wrapper
    """,
    "ding.envs.env_wrappers.env_wrappers": """
        AllinObsWrapper
    """,
    "ding.interaction": """
        Master Slave TaskFail
    """,
    "ding.interaction.base": """
        get_http_engine_class get_values_from_response
    """,
    "ding.interaction.master.task": """
        TaskStatus
    """,
    "ding.interaction.slave": """
        Slave TaskFail
    """,
    "ding.league": """
        ActivePlayer BaseLeague OneVsOneLeague create_league
    """,
    "ding.league.player": """
        ActivePlayer HistoricalPlayer Player create_player
    """,
    "ding.league.shared_payoff": """
        BattleRecordDict create_payoff
    """,
    "ding.league.starcraft_player": """
        LeagueExploiter MainExploiter MainPlayer
    """,
    "ding.model": """
        C51DQN ContinuousQAC DQN DRQN IQN VAC create_model model_wrap
    """,
    "ding.model.common": """
        FCEncoder ReparameterizationHead
    """,
    "ding.model.common.head": """
        DuelingHead
    """,
    "ding.model.template.q_learning": """
        DQN
    """,
    "ding.model.wrapper.model_wrappers": """
        ArgmaxSampleWrapper BaseModelWrapper EpsGreedySampleWrapper HiddenStateWrapper
        MultinomialSampleWrapper TargetNetworkWrapper
    """,
    "ding.policy": """
        C51Policy DDPGPolicy DQNPolicy IQNPolicy PPOOffPolicy PPOPolicy Policy RainbowDQNPolicy
        SACPolicy create_policy get_policy_cls single_env_forward_wrapper
    """,
    "ding.policy.common_utils": """
        default_preprocess_learn
    """,
    "ding.rl_utils": """
        a2c_data a2c_error a2c_error_continuous create_noise_generator dist_1step_td_data
        dist_1step_td_error dist_nstep_td_data dist_nstep_td_error gae gae_data
        get_epsilon_greedy_fn get_gae get_gae_with_default_last_value get_nstep_return_data
        get_train_sample ppo_data ppo_error ppo_error_continuous ppo_policy_data
        ppo_policy_error ppo_value_data ppo_value_error q_1step_td_data q_1step_td_error
        q_nstep_sql_td_error q_nstep_td_data q_nstep_td_error q_nstep_td_error_with_rescale
        qrdqn_nstep_td_data qrdqn_nstep_td_error td_lambda_data td_lambda_error v_1step_td_data
        v_1step_td_error v_nstep_td_data v_nstep_td_error vtrace_data
        vtrace_error_continuous_action vtrace_error_discrete_action
    """,
    "ding.rl_utils.ppo": """
        shape_fn_ppo
    """,
    "ding.rl_utils.value_rescale": """
        inv_symlog symlog value_inv_transform value_transform
    """,
    "ding.torch_utils": """
        CountVar CudaFetcher DataParallel ScatterConnection Transformer auto_checkpoint
        build_log_buffer get_tensor_data one_hot resnet18 same_shape tensor_to_list to_device
        to_dtype to_item to_list to_ndarray to_tensor
    """,
    "ding.torch_utils.checkpoint_helper": """
        CountVar auto_checkpoint build_checkpoint_helper
    """,
    "ding.torch_utils.math_helper": """
        cov
    """,
    "ding.torch_utils.model_helper": """
        get_num_params
    """,
    "ding.torch_utils.nn_test_helper": """
        is_differentiable
    """,
    "ding.torch_utils.optimizer_helper": """
        Adam PCGrad RMSprop calculate_grad_norm calculate_grad_norm_without_bias_two_norm
        configure_weight_decay
    """,
    "ding.torch_utils.reshape_helper": """
        fold_batch unfold_batch unsqueeze_repeat
    """,
    "ding.utils": """
        BUFFER_REGISTRY COMMANDER_REGISTRY COMM_COLLECTOR_REGISTRY COMM_LEARNER_REGISTRY
        CloudPickleWrapper DDPContext DEFAULT_K8S_COLLECTOR_PORT DEFAULT_K8S_COORDINATOR_PORT
        DEFAULT_K8S_LEARNER_PORT DistContext DistributedWriter ENV_MANAGER_REGISTRY ENV_REGISTRY
        ENV_WRAPPER_REGISTRY EasyTimer LEAGUE_REGISTRY LEARNER_REGISTRY LimitedSpaceContainer
        LockContext LockContextType MinSegmentTree PARALLEL_COLLECTOR_REGISTRY PLAYER_REGISTRY
        POLICY_REGISTRY PropagatingThread SERIAL_COLLECTOR_REGISTRY SERIAL_EVALUATOR_REGISTRY
        Scheduler SequenceType SingletonMetaclass SumSegmentTree WatchDog allreduce
        allreduce_data broadcast broadcast_object_list build_logger deep_merge_dicts
        dicts_to_lists dist_finalize dist_init exist_operator_server find_free_port
        find_free_port_slurm fps get_data_compressor get_data_decompressor
        get_operator_server_kwargs get_rank get_rw_file_lock get_task_uid get_vi_sequence
        get_world_size import_module lists_to_dicts make_key_as_identifier node_to_host
        node_to_partition one_time_warning pretty_print read_file remove_file
        remove_illegal_item render save_file set_pkg_seed to_ddp_config
    """,
    "ding.utils.autolog": """
        LoggedModel LoggedValue NaturalTime TickTime TimeMode TimeProxy TimeRangedData
    """,
    "ding.utils.collection_helper": """
        iter_mapping
    """,
    "ding.utils.compression_helper": """
        get_data_compressor get_data_decompressor jpeg_data_compressor
    """,
    "ding.utils.data": """
        AsyncDataLoader NaiveRLDataset create_dataset default_collate default_decollate
        diff_shape_collate offline_data_save_type timestep_collate
    """,
    "ding.utils.default_helper": """
        LimitedSpaceContainer RunningMeanStd deep_merge_dicts deep_update default_get
        dicts_to_lists error_wrapper flatten_dict get_shape0 list_split lists_to_dicts
        one_time_warning override set_pkg_seed split_data_generator squeeze
    """,
    "ding.utils.file_helper": """
        read_file read_from_file read_from_path remove_file save_file
    """,
    "ding.utils.import_helper": """
        import_module try_import_link try_import_redis
    """,
    "ding.utils.log_helper": """
        build_logger pretty_print
    """,
    "ding.utils.registry": """
        Registry
    """,
    "ding.utils.system_helper": """
        get_ip get_pid get_task_uid
    """,
    "ding.utils.time_helper": """
        EasyTimer TimeWrapperTime WatchDog build_time_helper
    """,
    "ding.worker": """
        AdvancedReplayBuffer BaseLearner BaseSerialCommander BattleInteractionSerialEvaluator
        Coordinator DequeBufferWrapper EpisodeSerialCollector IMetric InteractionSerialEvaluator
        LearnerHook MetricSerialEvaluator NaiveReplayBuffer SampleSerialCollector create_buffer
        create_comm_collector create_comm_learner create_serial_collector get_buffer_cls
        get_parallel_collector_cls get_parallel_commander_cls get_serial_collector_cls
    """,
    "ding.worker.adapter.learner_aggregator": """
        LearnerAggregator
    """,
    "ding.worker.collector.base_serial_collector": """
        CachePool INF ISerialCollector TrajBuffer to_tensor_transitions
    """,
    "ding.worker.collector.comm": """
        NaiveCollector
    """,
    "ding.worker.coordinator.one_vs_one_parallel_commander": """
        OneVsOneCommander
    """,
    "ding.worker.learner": """
        LearnerHook add_learner_hook build_learner_hook_by_cfg create_learner
        register_learner_hook
    """,
    "ding.worker.learner.comm": """
        NaiveLearner
    """,
    "ding.worker.learner.learner_hook": """
        LoadCkptHook LogReduceHook LogShowHook SaveCkptHook add_learner_hook merge_hooks
        show_hooks
    """,
    "ding.worker.replay_buffer": """
        AdvancedReplayBuffer IBuffer NaiveReplayBuffer
    """,
}

#: Those that are not there, and whose import says so.
PLANNED: dict[str, str] = {
    "ding.entry": """
        serial_pipeline_bc serial_pipeline_dream serial_pipeline_dreamer
        serial_pipeline_dyna serial_pipeline_ngu serial_pipeline_pc serial_pipeline_r2d3
        serial_pipeline_td3_vae
    """,
    "ding.model": """
        FQF
    """,
    "ding.policy": """
        D4PGPolicy FQFPolicy
    """,
}


def importable_modules() -> Iterator[str]:
    """The package's modules, without those whose extra is not installed."""
    absent = tuple(start for start, name in _EXTRAS.items() if not importlib.util.find_spec(name))
    for found in pkgutil.walk_packages(ding.__path__, "ding."):
        if not found.name.endswith("__main__") and not found.name.startswith(absent):
            yield found.name
