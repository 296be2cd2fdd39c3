"""Data sets under the name that configs and scripts import; they are in `ding.data.dataset`."""

from ding.data.dataset import NaiveRLDataset, create_dataset, offline_data_save_type

__all__ = ["NaiveRLDataset", "create_dataset", "offline_data_save_type"]
