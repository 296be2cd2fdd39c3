"""Data sets on disk, also under the name of this package."""

from ding.utils.data.dataset import NaiveRLDataset, create_dataset, offline_data_save_type

__all__ = ["NaiveRLDataset", "create_dataset", "offline_data_save_type"]
