"""Helpers around configs that scripts import from here."""

from ding.config.save import save_config_formatted

__all__ = ["save_config_formatted"]
