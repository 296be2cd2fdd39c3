"""Wrappers of a model's forward: sampling, recurrent states, noise, target updates."""

from ding.model.wrapper.model_wrappers import (
    IModelWrapper,
    model_wrap,
    register_wrapper,
    wrapper_name_map,
)

__all__ = ["IModelWrapper", "model_wrap", "register_wrapper", "wrapper_name_map"]
