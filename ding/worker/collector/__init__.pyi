from .base_parallel_collector import (
    BaseParallelCollector as BaseParallelCollector,
)
from .base_parallel_collector import (
    create_parallel_collector as create_parallel_collector,
)
from .base_parallel_collector import (
    get_parallel_collector_cls as get_parallel_collector_cls,
)
from .base_serial_collector import (
    INF as INF,
)
from .base_serial_collector import (
    CachePool as CachePool,
)
from .base_serial_collector import (
    ISerialCollector as ISerialCollector,
)
from .base_serial_collector import (
    TrajBuffer as TrajBuffer,
)
from .base_serial_collector import (
    create_serial_collector as create_serial_collector,
)
from .base_serial_collector import (
    get_serial_collector_cls as get_serial_collector_cls,
)
from .base_serial_collector import (
    to_tensor_transitions as to_tensor_transitions,
)
from .base_serial_evaluator import (
    ISerialEvaluator as ISerialEvaluator,
)
from .base_serial_evaluator import (
    VectorEvalMonitor as VectorEvalMonitor,
)
from .base_serial_evaluator import (
    create_serial_evaluator as create_serial_evaluator,
)
from .comm import (
    BaseCommCollector as BaseCommCollector,
)
from .comm import (
    FlaskFileSystemCollector as FlaskFileSystemCollector,
)
from .comm import (
    NaiveCollector as NaiveCollector,
)
from .comm import (
    create_comm_collector as create_comm_collector,
)
from .rollout_collector import (
    MarineParallelCollector as MarineParallelCollector,
)
from .rollout_collector import (
    ZerglingParallelCollector as ZerglingParallelCollector,
)
from .serial_collector import (
    BattleEpisodeSerialCollector as BattleEpisodeSerialCollector,
)
from .serial_collector import (
    BattleSampleSerialCollector as BattleSampleSerialCollector,
)
from .serial_collector import (
    EpisodeSerialCollector as EpisodeSerialCollector,
)
from .serial_collector import (
    SampleSerialCollector as SampleSerialCollector,
)
from .serial_evaluator import (
    BattleInteractionSerialEvaluator as BattleInteractionSerialEvaluator,
)
from .serial_evaluator import (
    IMetric as IMetric,
)
from .serial_evaluator import (
    InteractionSerialEvaluator as InteractionSerialEvaluator,
)
from .serial_evaluator import (
    MetricSerialEvaluator as MetricSerialEvaluator,
)
