from .collate_fn import (
    default_collate as default_collate,
    default_decollate as default_decollate,
    diff_shape_collate as diff_shape_collate,
    timestep_collate as timestep_collate,
)
from .dataloader import (
    AsyncDataLoader as AsyncDataLoader,
    IDataLoader as IDataLoader,
)
from .dataset import (
    NaiveRLDataset as NaiveRLDataset,
    create_dataset as create_dataset,
    offline_data_save_type as offline_data_save_type,
)
