from . import (
    adapter as adapter,
)
from . import (
    collector as collector,
)
from . import (
    coordinator as coordinator,
)
from . import (
    learner as learner,
)
from . import (
    replay_buffer as replay_buffer,
)
from .adapter import (
    LearnerAggregator as LearnerAggregator,
)
from .collector import (
    BaseCommCollector as BaseCommCollector,
)
from .collector import (
    BaseParallelCollector as BaseParallelCollector,
)
from .collector import (
    BattleEpisodeSerialCollector as BattleEpisodeSerialCollector,
)
from .collector import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
)
from .collector import (
    BattleSampleSerialCollector as BattleSampleSerialCollector,
)
from .collector import (
    CachePool as CachePool,
)
from .collector import (
    EpisodeSerialCollector as EpisodeSerialCollector,
)
from .collector import (
    FlaskFileSystemCollector as FlaskFileSystemCollector,
)
from .collector import (
    IMetric as IMetric,
)
from .collector import (
    InteractionSerialEvaluator as InteractionSerialEvaluator,
)
from .collector import (
    ISerialCollector as ISerialCollector,
)
from .collector import (
    ISerialEvaluator as ISerialEvaluator,
)
from .collector import (
    MarineParallelCollector as MarineParallelCollector,
)
from .collector import (
    MetricSerialEvaluator as MetricSerialEvaluator,
)
from .collector import (
    NaiveCollector as NaiveCollector,
)
from .collector import (
    SampleSerialCollector as SampleSerialCollector,
)
from .collector import (
    TrajBuffer as TrajBuffer,
)
from .collector import (
    VectorEvalMonitor as VectorEvalMonitor,
)
from .collector import (
    ZerglingParallelCollector as ZerglingParallelCollector,
)
from .collector import (
    create_comm_collector as create_comm_collector,
)
from .collector import (
    create_parallel_collector as create_parallel_collector,
)
from .collector import (
    create_serial_collector as create_serial_collector,
)
from .collector import (
    create_serial_evaluator as create_serial_evaluator,
)
from .collector import (
    get_parallel_collector_cls as get_parallel_collector_cls,
)
from .collector import (
    get_serial_collector_cls as get_serial_collector_cls,
)
from .collector import (
    to_tensor_transitions as to_tensor_transitions,
)
from .coordinator import (
    BaseCommander as BaseCommander,
)
from .coordinator import (
    BaseSerialCommander as BaseSerialCommander,
)
from .coordinator import (
    CommCoordinator as CommCoordinator,
)
from .coordinator import (
    Coordinator as Coordinator,
)
from .coordinator import (
    NaiveCommander as NaiveCommander,
)
from .coordinator import (
    NaiveResourceManager as NaiveResourceManager,
)
from .coordinator import (
    OneVsOneCommander as OneVsOneCommander,
)
from .coordinator import (
    OperatorServer as OperatorServer,
)
from .coordinator import (
    SoloCommander as SoloCommander,
)
from .coordinator import (
    create_parallel_commander as create_parallel_commander,
)
from .coordinator import (
    get_parallel_commander_cls as get_parallel_commander_cls,
)
from .learner import (
    BaseCommLearner as BaseCommLearner,
)
from .learner import (
    BaseLearner as BaseLearner,
)
from .learner import (
    FlaskFileSystemLearner as FlaskFileSystemLearner,
)
from .learner import (
    Hook as Hook,
)
from .learner import (
    LearnerHook as LearnerHook,
)
from .learner import (
    LoadCkptHook as LoadCkptHook,
)
from .learner import (
    LogReduceHook as LogReduceHook,
)
from .learner import (
    LogShowHook as LogShowHook,
)
from .learner import (
    NaiveLearner as NaiveLearner,
)
from .learner import (
    SaveCkptHook as SaveCkptHook,
)
from .learner import (
    TickMonitor as TickMonitor,
)
from .learner import (
    add_learner_hook as add_learner_hook,
)
from .learner import (
    build_learner_hook_by_cfg as build_learner_hook_by_cfg,
)
from .learner import (
    create_comm_learner as create_comm_learner,
)
from .learner import (
    create_learner as create_learner,
)
from .learner import (
    find_char as find_char,
)
from .learner import (
    get_simple_monitor_type as get_simple_monitor_type,
)
from .learner import (
    merge_hooks as merge_hooks,
)
from .learner import (
    register_learner_hook as register_learner_hook,
)
from .learner import (
    show_hooks as show_hooks,
)
from .replay_buffer import (
    AdvancedReplayBuffer as AdvancedReplayBuffer,
)
from .replay_buffer import (
    DequeBufferWrapper as DequeBufferWrapper,
)
from .replay_buffer import (
    ElasticReplayBuffer as ElasticReplayBuffer,
)
from .replay_buffer import (
    EpisodeReplayBuffer as EpisodeReplayBuffer,
)
from .replay_buffer import (
    IBuffer as IBuffer,
)
from .replay_buffer import (
    NaiveReplayBuffer as NaiveReplayBuffer,
)
from .replay_buffer import (
    SequenceReplayBuffer as SequenceReplayBuffer,
)
from .replay_buffer import (
    create_buffer as create_buffer,
)
from .replay_buffer import (
    get_buffer_cls as get_buffer_cls,
)
