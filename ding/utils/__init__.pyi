from .bfs_helper import (
    get_vi_sequence as get_vi_sequence,
)
from .collection_helper import (
    iter_mapping as iter_mapping,
)
from .compression_helper import (
    CloudPickleWrapper as CloudPickleWrapper,
)
from .compression_helper import (
    get_data_compressor as get_data_compressor,
)
from .compression_helper import (
    get_data_decompressor as get_data_decompressor,
)
from .default_helper import (
    LimitedSpaceContainer as LimitedSpaceContainer,
)
from .default_helper import (
    RunningMeanStd as RunningMeanStd,
)
from .default_helper import (
    deep_merge_dicts as deep_merge_dicts,
)
from .default_helper import (
    deep_update as deep_update,
)
from .default_helper import (
    default_get as default_get,
)
from .default_helper import (
    dicts_to_lists as dicts_to_lists,
)
from .default_helper import (
    error_wrapper as error_wrapper,
)
from .default_helper import (
    flatten_dict as flatten_dict,
)
from .default_helper import (
    get_shape0 as get_shape0,
)
from .default_helper import (
    list_split as list_split,
)
from .default_helper import (
    lists_to_dicts as lists_to_dicts,
)
from .default_helper import (
    make_key_as_identifier as make_key_as_identifier,
)
from .default_helper import (
    one_time_warning as one_time_warning,
)
from .default_helper import (
    override as override,
)
from .default_helper import (
    remove_illegal_item as remove_illegal_item,
)
from .default_helper import (
    set_pkg_seed as set_pkg_seed,
)
from .default_helper import (
    split_data_generator as split_data_generator,
)
from .default_helper import (
    squeeze as squeeze,
)
from .design_helper import (
    SingletonMetaclass as SingletonMetaclass,
)
from .errors import (
    ActionError as ActionError,
)
from .errors import (
    CheckpointError as CheckpointError,
)
from .errors import (
    CheckpointNotFoundError as CheckpointNotFoundError,
)
from .errors import (
    CheckpointWriteError as CheckpointWriteError,
)
from .errors import (
    ChunkError as ChunkError,
)
from .errors import (
    ConfigError as ConfigError,
)
from .errors import (
    DataError as DataError,
)
from .errors import (
    DingError as DingError,
)
from .errors import (
    DuplicateTypeError as DuplicateTypeError,
)
from .errors import (
    EnvDiedError as EnvDiedError,
)
from .errors import (
    EnvError as EnvError,
)
from .errors import (
    EnvTimeoutError as EnvTimeoutError,
)
from .errors import (
    UnknownTypeError as UnknownTypeError,
)
from .file_helper import (
    read_file as read_file,
)
from .file_helper import (
    read_from_file as read_from_file,
)
from .file_helper import (
    read_from_path as read_from_path,
)
from .file_helper import (
    remove_file as remove_file,
)
from .file_helper import (
    save_file as save_file,
)
from .import_helper import (
    import_module as import_module,
)
from .import_helper import (
    try_import_link as try_import_link,
)
from .import_helper import (
    try_import_redis as try_import_redis,
)
from .k8s_helper import (
    DEFAULT_K8S_COLLECTOR_PORT as DEFAULT_K8S_COLLECTOR_PORT,
)
from .k8s_helper import (
    DEFAULT_K8S_COORDINATOR_PORT as DEFAULT_K8S_COORDINATOR_PORT,
)
from .k8s_helper import (
    DEFAULT_K8S_LEARNER_PORT as DEFAULT_K8S_LEARNER_PORT,
)
from .k8s_helper import (
    exist_operator_server as exist_operator_server,
)
from .k8s_helper import (
    get_operator_server_kwargs as get_operator_server_kwargs,
)
from .lock_helper import (
    FcntlContext as FcntlContext,
)
from .lock_helper import (
    LockContext as LockContext,
)
from .lock_helper import (
    LockContextType as LockContextType,
)
from .lock_helper import (
    get_file_lock as get_file_lock,
)
from .lock_helper import (
    get_rw_file_lock as get_rw_file_lock,
)
from .log_helper import (
    LoggerFactory as LoggerFactory,
)
from .log_helper import (
    TBLoggerFactory as TBLoggerFactory,
)
from .log_helper import (
    build_logger as build_logger,
)
from .log_helper import (
    pretty_print as pretty_print,
)
from .log_writer import (
    DistributedWriter as DistributedWriter,
)
from .pytorch_ddp_dist_helper import (
    DDPContext as DDPContext,
)
from .pytorch_ddp_dist_helper import (
    DistContext as DistContext,
)
from .pytorch_ddp_dist_helper import (
    allreduce as allreduce,
)
from .pytorch_ddp_dist_helper import (
    allreduce_async as allreduce_async,
)
from .pytorch_ddp_dist_helper import (
    allreduce_data as allreduce_data,
)
from .pytorch_ddp_dist_helper import (
    allreduce_with_indicator as allreduce_with_indicator,
)
from .pytorch_ddp_dist_helper import (
    broadcast as broadcast,
)
from .pytorch_ddp_dist_helper import (
    broadcast_object_list as broadcast_object_list,
)
from .pytorch_ddp_dist_helper import (
    dist_finalize as dist_finalize,
)
from .pytorch_ddp_dist_helper import (
    dist_init as dist_init,
)
from .pytorch_ddp_dist_helper import (
    dist_mode as dist_mode,
)
from .pytorch_ddp_dist_helper import (
    get_group as get_group,
)
from .pytorch_ddp_dist_helper import (
    get_rank as get_rank,
)
from .pytorch_ddp_dist_helper import (
    get_world_size as get_world_size,
)
from .pytorch_ddp_dist_helper import (
    launched_as as launched_as,
)
from .pytorch_ddp_dist_helper import (
    reduce_data as reduce_data,
)
from .pytorch_ddp_dist_helper import (
    to_ddp_config as to_ddp_config,
)
from .registry import (
    Registry as Registry,
)
from .registry_factory import (
    BUFFER_REGISTRY as BUFFER_REGISTRY,
)
from .registry_factory import (
    COMM_COLLECTOR_REGISTRY as COMM_COLLECTOR_REGISTRY,
)
from .registry_factory import (
    COMM_LEARNER_REGISTRY as COMM_LEARNER_REGISTRY,
)
from .registry_factory import (
    COMMANDER_REGISTRY as COMMANDER_REGISTRY,
)
from .registry_factory import (
    DATASET_REGISTRY as DATASET_REGISTRY,
)
from .registry_factory import (
    ENGINE_REGISTRY as ENGINE_REGISTRY,
)
from .registry_factory import (
    ENV_MANAGER_REGISTRY as ENV_MANAGER_REGISTRY,
)
from .registry_factory import (
    ENV_REGISTRY as ENV_REGISTRY,
)
from .registry_factory import (
    ENV_WRAPPER_REGISTRY as ENV_WRAPPER_REGISTRY,
)
from .registry_factory import (
    LEAGUE_REGISTRY as LEAGUE_REGISTRY,
)
from .registry_factory import (
    LEARNER_REGISTRY as LEARNER_REGISTRY,
)
from .registry_factory import (
    MODEL_REGISTRY as MODEL_REGISTRY,
)
from .registry_factory import (
    PARALLEL_COLLECTOR_REGISTRY as PARALLEL_COLLECTOR_REGISTRY,
)
from .registry_factory import (
    PLAYER_REGISTRY as PLAYER_REGISTRY,
)
from .registry_factory import (
    POLICY_REGISTRY as POLICY_REGISTRY,
)
from .registry_factory import (
    SERIAL_COLLECTOR_REGISTRY as SERIAL_COLLECTOR_REGISTRY,
)
from .registry_factory import (
    SERIAL_EVALUATOR_REGISTRY as SERIAL_EVALUATOR_REGISTRY,
)
from .registry_factory import (
    TRACKER_REGISTRY as TRACKER_REGISTRY,
)
from .registry_factory import (
    registries as registries,
)
from .render_helper import (
    fps as fps,
)
from .render_helper import (
    render as render,
)
from .scheduler_helper import (
    Scheduler as Scheduler,
)
from .segment_tree import (
    MinSegmentTree as MinSegmentTree,
)
from .segment_tree import (
    SegmentTree as SegmentTree,
)
from .segment_tree import (
    SumSegmentTree as SumSegmentTree,
)
from .slurm_helper import (
    find_free_port_slurm as find_free_port_slurm,
)
from .slurm_helper import (
    node_to_host as node_to_host,
)
from .slurm_helper import (
    node_to_partition as node_to_partition,
)
from .system_helper import (
    PropagatingThread as PropagatingThread,
)
from .system_helper import (
    find_free_port as find_free_port,
)
from .system_helper import (
    get_ip as get_ip,
)
from .system_helper import (
    get_pid as get_pid,
)
from .system_helper import (
    get_task_uid as get_task_uid,
)
from .time_helper import (
    EasyTimer as EasyTimer,
)
from .time_helper import (
    TimeWrapperTime as TimeWrapperTime,
)
from .time_helper import (
    WatchDog as WatchDog,
)
from .time_helper import (
    build_time_helper as build_time_helper,
)
from .type_helper import (
    SequenceType as SequenceType,
)
