from .base_parallel_collector import (
    BaseParallelCollector as BaseParallelCollector,
    create_parallel_collector as create_parallel_collector,
    get_parallel_collector_cls as get_parallel_collector_cls,
)
from .base_serial_collector import (
    INF as INF,
    CachePool as CachePool,
    ISerialCollector as ISerialCollector,
    TrajBuffer as TrajBuffer,
    create_serial_collector as create_serial_collector,
    get_serial_collector_cls as get_serial_collector_cls,
    to_tensor_transitions as to_tensor_transitions,
)
from .base_serial_evaluator import (
    ISerialEvaluator as ISerialEvaluator,
    VectorEvalMonitor as VectorEvalMonitor,
    create_serial_evaluator as create_serial_evaluator,
)
from .comm import (
    BaseCommCollector as BaseCommCollector,
    FlaskFileSystemCollector as FlaskFileSystemCollector,
    NaiveCollector as NaiveCollector,
    create_comm_collector as create_comm_collector,
)
from .interaction_serial_evaluator import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
    InteractionSerialEvaluator as InteractionSerialEvaluator,
)
from .marine_parallel_collector import MarineParallelCollector as MarineParallelCollector
from .metric_serial_evaluator import (
    IMetric as IMetric,
    MetricSerialEvaluator as MetricSerialEvaluator,
)
from .serial_collector import (
    BattleEpisodeSerialCollector as BattleEpisodeSerialCollector,
    BattleSampleSerialCollector as BattleSampleSerialCollector,
    EpisodeSerialCollector as EpisodeSerialCollector,
    SampleSerialCollector as SampleSerialCollector,
)
from .zergling_parallel_collector import (
    ZerglingParallelCollector as ZerglingParallelCollector,
)
