from .collection_helper import (
    iter_mapping as iter_mapping,
)
from .compression_helper import (
    CloudPickleWrapper as CloudPickleWrapper,
    get_data_compressor as get_data_compressor,
    get_data_decompressor as get_data_decompressor,
)
from .default_helper import (
    LimitedSpaceContainer as LimitedSpaceContainer,
    RunningMeanStd as RunningMeanStd,
    SequenceType as SequenceType,
    SingletonMetaclass as SingletonMetaclass,
    deep_merge_dicts as deep_merge_dicts,
    deep_update as deep_update,
    default_get as default_get,
    dicts_to_lists as dicts_to_lists,
    error_wrapper as error_wrapper,
    flatten_dict as flatten_dict,
    get_shape0 as get_shape0,
    list_split as list_split,
    lists_to_dicts as lists_to_dicts,
    make_key_as_identifier as make_key_as_identifier,
    one_time_warning as one_time_warning,
    override as override,
    remove_illegal_item as remove_illegal_item,
    set_pkg_seed as set_pkg_seed,
    split_data_generator as split_data_generator,
    squeeze as squeeze,
)
from .errors import (
    ActionError as ActionError,
    CheckpointError as CheckpointError,
    CheckpointNotFoundError as CheckpointNotFoundError,
    CheckpointWriteError as CheckpointWriteError,
    ChunkError as ChunkError,
    ConfigError as ConfigError,
    DataError as DataError,
    DingError as DingError,
    DuplicateTypeError as DuplicateTypeError,
    EnvDiedError as EnvDiedError,
    EnvError as EnvError,
    EnvTimeoutError as EnvTimeoutError,
    UnknownTypeError as UnknownTypeError,
)
from .file_helper import (
    read_file as read_file,
    read_from_file as read_from_file,
    read_from_path as read_from_path,
    remove_file as remove_file,
    save_file as save_file,
)
from .import_helper import (
    import_module as import_module,
    try_import_link as try_import_link,
    try_import_redis as try_import_redis,
)
from .lock_helper import (
    FcntlContext as FcntlContext,
    LockContext as LockContext,
    LockContextType as LockContextType,
    get_file_lock as get_file_lock,
    get_rw_file_lock as get_rw_file_lock,
)
from .log_helper import (
    LoggerFactory as LoggerFactory,
    TBLoggerFactory as TBLoggerFactory,
    build_logger as build_logger,
    pretty_print as pretty_print,
)
from .log_writer import (
    DistributedWriter as DistributedWriter,
)
from .pytorch_ddp_dist_helper import (
    DDPContext as DDPContext,
    DistContext as DistContext,
    allreduce as allreduce,
    allreduce_async as allreduce_async,
    allreduce_data as allreduce_data,
    allreduce_with_indicator as allreduce_with_indicator,
    broadcast as broadcast,
    broadcast_object_list as broadcast_object_list,
    dist_finalize as dist_finalize,
    dist_init as dist_init,
    dist_mode as dist_mode,
    get_group as get_group,
    get_rank as get_rank,
    get_world_size as get_world_size,
    reduce_data as reduce_data,
    to_ddp_config as to_ddp_config,
)
from .registry import (
    Registry as Registry,
)
from .registry_factory import (
    BUFFER_REGISTRY as BUFFER_REGISTRY,
    COMM_COLLECTOR_REGISTRY as COMM_COLLECTOR_REGISTRY,
    COMM_LEARNER_REGISTRY as COMM_LEARNER_REGISTRY,
    COMMANDER_REGISTRY as COMMANDER_REGISTRY,
    DATASET_REGISTRY as DATASET_REGISTRY,
    ENGINE_REGISTRY as ENGINE_REGISTRY,
    ENV_MANAGER_REGISTRY as ENV_MANAGER_REGISTRY,
    ENV_REGISTRY as ENV_REGISTRY,
    ENV_WRAPPER_REGISTRY as ENV_WRAPPER_REGISTRY,
    LEAGUE_REGISTRY as LEAGUE_REGISTRY,
    LEARNER_REGISTRY as LEARNER_REGISTRY,
    MODEL_REGISTRY as MODEL_REGISTRY,
    PARALLEL_COLLECTOR_REGISTRY as PARALLEL_COLLECTOR_REGISTRY,
    PLAYER_REGISTRY as PLAYER_REGISTRY,
    POLICY_REGISTRY as POLICY_REGISTRY,
    REWARD_MODEL_REGISTRY as REWARD_MODEL_REGISTRY,
    SERIAL_COLLECTOR_REGISTRY as SERIAL_COLLECTOR_REGISTRY,
    SERIAL_EVALUATOR_REGISTRY as SERIAL_EVALUATOR_REGISTRY,
    TRACKER_REGISTRY as TRACKER_REGISTRY,
    registries as registries,
)
from .script_helper import (
    DEFAULT_K8S_COLLECTOR_PORT as DEFAULT_K8S_COLLECTOR_PORT,
    DEFAULT_K8S_COORDINATOR_PORT as DEFAULT_K8S_COORDINATOR_PORT,
    DEFAULT_K8S_LEARNER_PORT as DEFAULT_K8S_LEARNER_PORT,
    Scheduler as Scheduler,
    exist_operator_server as exist_operator_server,
    find_free_port_slurm as find_free_port_slurm,
    fps as fps,
    get_operator_server_kwargs as get_operator_server_kwargs,
    get_vi_sequence as get_vi_sequence,
    node_to_host as node_to_host,
    node_to_partition as node_to_partition,
    render as render,
)
from .segment_tree import (
    MinSegmentTree as MinSegmentTree,
    SegmentTree as SegmentTree,
    SumSegmentTree as SumSegmentTree,
)
from .system_helper import (
    PropagatingThread as PropagatingThread,
    find_free_port as find_free_port,
    get_ip as get_ip,
    get_pid as get_pid,
    get_task_uid as get_task_uid,
)
from .time_helper import (
    EasyTimer as EasyTimer,
    TimeWrapperTime as TimeWrapperTime,
    WatchDog as WatchDog,
    build_time_helper as build_time_helper,
)
