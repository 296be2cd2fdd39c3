"""A policy that records its first weights and its first actions."""

import os

import torch

from ding.policy.command_mode_policy_instance import DQNCommandModePolicy
from ding.utils import POLICY_REGISTRY

FIRST_ACTIONS = 30


class _Noted(DQNCommandModePolicy):
    """Its files are in the folder ``other.notes``."""

    def _init_learn(self):
        super()._init_learn()
        weights = torch.nn.utils.parameters_to_vector(self._model.parameters())
        self._note("weights", weights.tolist())

    def _init_collect(self):
        super()._init_collect()
        self._actions = 0

    def _forward_collect(self, data, **kwargs):
        output = super()._forward_collect(data, **kwargs)
        if self._actions < FIRST_ACTIONS:
            for one in output.values():
                self._actions += 1
                self._note("actions", int(one["action"]))
        return output

    def _note(self, what, fact):
        with open(os.path.join(self._cfg.other.notes, what), "a", encoding="utf-8") as file:
            print(fact, file=file)


for _name in ("noted", "noted_command"):
    POLICY_REGISTRY.register(_name, force_overwrite=True)(_Noted)
