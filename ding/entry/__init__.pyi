from .application_entry import (
    collect_demo_data as collect_demo_data,
    collect_episodic_demo_data as collect_episodic_demo_data,
    episode_to_transitions as episode_to_transitions,
    episode_to_transitions_filter as episode_to_transitions_filter,
    eval as eval,
)
from .parallel_entry import (
    parallel_pipeline as parallel_pipeline,
)
from .serial_entry import (
    serial_pipeline as serial_pipeline,
    serial_pipeline_onpolicy as serial_pipeline_onpolicy,
    serial_pipeline_onpolicy_ppg as serial_pipeline_onpolicy_ppg,
)
from .serial_entry_bco import (
    serial_pipeline_bco as serial_pipeline_bco,
)
from .serial_entry_dqfd import (
    serial_pipeline_dqfd as serial_pipeline_dqfd,
    serial_pipeline_r2d3 as serial_pipeline_r2d3,
    serial_pipeline_sqil as serial_pipeline_sqil,
)
from .serial_entry_offline import (
    serial_pipeline_bc as serial_pipeline_bc,
    serial_pipeline_dt as serial_pipeline_dt,
    serial_pipeline_offline as serial_pipeline_offline,
)
from .serial_entry_reward_model import (
    serial_pipeline_gail as serial_pipeline_gail,
    serial_pipeline_guided_cost as serial_pipeline_guided_cost,
    serial_pipeline_preference_based_irl as serial_pipeline_preference_based_irl,
    serial_pipeline_reward_model_offpolicy as serial_pipeline_reward_model_offpolicy,
    serial_pipeline_reward_model_onpolicy as serial_pipeline_reward_model_onpolicy,
    serial_pipeline_trex as serial_pipeline_trex,
    serial_pipeline_trex_onpolicy as serial_pipeline_trex_onpolicy,
    trex_collecting_data as trex_collecting_data,
)
from .utils import (
    AccMetric as AccMetric,
    mark_not_expert as mark_not_expert,
    mark_warm_up as mark_warm_up,
    random_collect as random_collect,
)
