"""Where policies find the switch of noisy layers."""

from ding.torch_utils.network import NoiseLinearLayer, set_noise_mode

__all__ = ["NoiseLinearLayer", "set_noise_mode"]
