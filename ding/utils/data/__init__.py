"""Batches out of samples, and a loader that prepares them ahead."""

from ding.utils.lazy import lazy_exports

__all__ = lazy_exports(
    globals(),
    {
        "base_dataloader": ["IDataLoader"],
        "collate_fn": [
            "default_collate",
            "default_decollate",
            "diff_shape_collate",
            "timestep_collate",
        ],
        "dataloader": ["AsyncDataLoader"],
    },
)
