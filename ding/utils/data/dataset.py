"""Alias of `ding.data.dataset`, which configs and scripts import."""

from ding.data.dataset import NaiveRLDataset, create_dataset, offline_data_save_type

__all__ = ["NaiveRLDataset", "create_dataset", "offline_data_save_type"]
