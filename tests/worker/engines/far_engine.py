"""The documented engine with workers in another folder, as on a host that shares none."""

import os

from documented_engine import SqliteCarrier

from ding.utils import ENGINE_REGISTRY


@ENGINE_REGISTRY.register("far", force_overwrite=True)
class FarCarrier(SqliteCarrier):
    """Its worker processes work in the folder ``elsewhere``."""

    config = {**SqliteCarrier.config, "elsewhere": "."}

    def __init__(self, cfg, exp_name):
        super().__init__(cfg, exp_name)
        self._home = os.path.abspath(exp_name)

    def __setstate__(self, state):
        vars(self).update(state)
        os.chdir(self.cfg.elsewhere)  # before the worker is built

    @property
    def _path(self):
        return os.path.join(self._home, self.cfg.file)
