from .a2c import (
    A2CPolicy as A2CPolicy,
)
from .acer import (
    ACERPolicy as ACERPolicy,
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
from .bcq import (
    BCQPolicy as BCQPolicy,
)
from .bdq import (
    BDQPolicy as BDQPolicy,
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
    set_noise_mode as set_noise_mode,
    single_env_forward_wrapper as single_env_forward_wrapper,
)
from .cql import (
    CQLPolicy as CQLPolicy,
    DiscreteCQLPolicy as DiscreteCQLPolicy,
)
from .d4pg import (
    D4PGPolicy as D4PGPolicy,
)
from .ddpg import (
    DDPGPolicy as DDPGPolicy,
)
from .dqfd import (
    DQFDPolicy as DQFDPolicy,
)
from .dqn import (
    C51Policy as C51Policy,
    DQNPolicy as DQNPolicy,
)
from .dt import (
    DTPolicy as DTPolicy,
)
from .edac import (
    EDACPolicy as EDACPolicy,
)
from .fqf import (
    FQFPolicy as FQFPolicy,
)
from .happo import (
    HAPPOPolicy as HAPPOPolicy,
)
from .impala import (
    IMPALAPolicy as IMPALAPolicy,
)
from .iql import (
    IQLPolicy as IQLPolicy,
)
from .iqn import (
    IQNPolicy as IQNPolicy,
)
from .madqn import (
    MADQNPolicy as MADQNPolicy,
)
from .mdqn import (
    MDQNPolicy as MDQNPolicy,
)
from .modes import (
    BatchedCollect as BatchedCollect,
    BatchedEval as BatchedEval,
)
from .pdqn import (
    PDQNPolicy as PDQNPolicy,
)
from .pg import (
    PGPolicy as PGPolicy,
)
from .policy_factory import (
    PolicyFactory as PolicyFactory,
    get_random_policy as get_random_policy,
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
    QMIXPolicy as QMIXPolicy,
    QTRANPolicy as QTRANPolicy,
    WQMIXPolicy as WQMIXPolicy,
)
from .qrdqn import (
    QRDQNPolicy as QRDQNPolicy,
)
from .r2d2 import (
    R2D2Policy as R2D2Policy,
)
from .r2d3 import (
    R2D3Policy as R2D3Policy,
)
from .rainbow import (
    RainbowDQNPolicy as RainbowDQNPolicy,
)
from .sac import (
    DiscreteSACPolicy as DiscreteSACPolicy,
    SACPolicy as SACPolicy,
    SQILSACPolicy as SQILSACPolicy,
)
from .saved_state import (
    in_old_form as in_old_form,
)
from .sql import (
    SQLPolicy as SQLPolicy,
)
from .sqn import (
    SQNPolicy as SQNPolicy,
)
from .td3 import (
    TD3Policy as TD3Policy,
)
from .td3_bc import (
    TD3BCPolicy as TD3BCPolicy,
)
from .team_policy import (
    TeamPolicy as TeamPolicy,
)
from .train_columns import (
    flatten_numbers as flatten_numbers,
    sample_columns as sample_columns,
)
