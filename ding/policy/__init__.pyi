from .acer import (
    ACERPolicy as ACERPolicy,
)
from .advantage_actor_critic import (
    A2CPolicy as A2CPolicy,
)
from .base_policy import (
    CommandModePolicy as CommandModePolicy,
    Policy as Policy,
    create_policy as create_policy,
    get_policy_cls as get_policy_cls,
)
from .bc import (
    BehaviourCloningPolicy as BehaviourCloningPolicy,
)
from .coma import (
    COMAPolicy as COMAPolicy,
)
from .command_mode_policy_instance import (
    DQNCommandModePolicy as DQNCommandModePolicy,
    DummyCommandModePolicy as DummyCommandModePolicy,
    EpsCommandModePolicy as EpsCommandModePolicy,
    PPOCommandModePolicy as PPOCommandModePolicy,
)
from .common_utils import (
    default_preprocess_learn as default_preprocess_learn,
    flatten_numbers as flatten_numbers,
    sample_columns as sample_columns,
    set_noise_mode as set_noise_mode,
    single_env_forward_wrapper as single_env_forward_wrapper,
)
from .cql import (
    CQLPolicy as CQLPolicy,
    DiscreteCQLPolicy as DiscreteCQLPolicy,
    EDACPolicy as EDACPolicy,
)
from .ddpg import (
    D4PGPolicy as D4PGPolicy,
    DDPGPolicy as DDPGPolicy,
    TD3BCPolicy as TD3BCPolicy,
    TD3Policy as TD3Policy,
)
from .dqfd import (
    DQFDPolicy as DQFDPolicy,
)
from .dqn import (
    BDQPolicy as BDQPolicy,
    C51Policy as C51Policy,
    DQNPolicy as DQNPolicy,
    RainbowDQNPolicy as RainbowDQNPolicy,
)
from .dt import (
    DTPolicy as DTPolicy,
)
from .happo import (
    HAPPOPolicy as HAPPOPolicy,
)
from .impala import (
    IMPALAPolicy as IMPALAPolicy,
)
from .modes import (
    BatchedCollect as BatchedCollect,
    BatchedEval as BatchedEval,
)
from .offline_actor_critic import (
    BCQPolicy as BCQPolicy,
    IQLPolicy as IQLPolicy,
)
from .pdqn import (
    PDQNPolicy as PDQNPolicy,
)
from .policy_factory import (
    PolicyFactory as PolicyFactory,
    get_random_policy as get_random_policy,
)
from .policy_gradient import (
    PGPolicy as PGPolicy,
)
from .ppg import (
    PPGOffPolicy as PPGOffPolicy,
    PPGPolicy as PPGPolicy,
)
from .ppo import (
    PPOOffPolicy as PPOOffPolicy,
    PPOPGPolicy as PPOPGPolicy,
    PPOPolicy as PPOPolicy,
)
from .qmix import (
    CollaQPolicy as CollaQPolicy,
    MADQNPolicy as MADQNPolicy,
    QMIXPolicy as QMIXPolicy,
    QTRANPolicy as QTRANPolicy,
    WQMIXPolicy as WQMIXPolicy,
)
from .qrdqn import (
    FQFPolicy as FQFPolicy,
    IQNPolicy as IQNPolicy,
    QRDQNPolicy as QRDQNPolicy,
)
from .r2d2 import (
    R2D2Policy as R2D2Policy,
    R2D3Policy as R2D3Policy,
)
from .recurrent import (
    TeamPolicy as TeamPolicy,
)
from .sac import (
    DiscreteSACPolicy as DiscreteSACPolicy,
    SACPolicy as SACPolicy,
    SQILSACPolicy as SQILSACPolicy,
)
from .sql import (
    MDQNPolicy as MDQNPolicy,
    SQLPolicy as SQLPolicy,
    SQNPolicy as SQNPolicy,
)
