"""Environments and policies of the parallel runs, by the names that their configs use."""

import time
from pathlib import Path

from ding.policy.command_mode_policy_instance import DQNCommandModePolicy
from ding.utils import ENV_REGISTRY, POLICY_REGISTRY
from tests.entry.runs import WalkEnv

ENV_REGISTRY.register("parallel_walk", force_overwrite=True)(WalkEnv)


class _Faulty(DQNCommandModePolicy):
    """Fails at its thirtieth update, as ``other.fault`` says; hangs but once in a run."""

    def _forward_learn(self, data):
        self._updates = getattr(self, "_updates", 0) + 1
        output = super()._forward_learn(data)
        fault = self._cfg.other.fault if self._updates == 30 else None
        if fault == "raise":
            raise ValueError("the policy's own words")
        if fault == "nan":
            output["total_loss"] = float("nan")
        if fault == "hang" and not Path("has_hung").exists():
            Path("has_hung").touch()
            time.sleep(1000)
        return output


for _name in ("parallel_faulty", "parallel_faulty_command"):
    POLICY_REGISTRY.register(_name, force_overwrite=True)(_Faulty)
