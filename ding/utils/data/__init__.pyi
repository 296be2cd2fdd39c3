from .base_dataloader import (
    IDataLoader as IDataLoader,
)
from .collate_fn import (
    default_collate as default_collate,
)
from .collate_fn import (
    default_decollate as default_decollate,
)
from .collate_fn import (
    diff_shape_collate as diff_shape_collate,
)
from .collate_fn import (
    timestep_collate as timestep_collate,
)
from .dataloader import (
    AsyncDataLoader as AsyncDataLoader,
)
from .dataset import (
    NaiveRLDataset as NaiveRLDataset,
)
from .dataset import (
    create_dataset as create_dataset,
)
from .dataset import (
    offline_data_save_type as offline_data_save_type,
)
