"""The saved states of a policy's modes: networks, learned values and custom attributes."""

from collections.abc import Callable, Mapping

from ding.policy.network_owner import NetworkOwner
from ding.policy.own_state import OwnState
from ding.policy.saved_state import load_state, save_state
from ding.utils import safe_serial
from ding.utils.types import State


class ModeStates(NetworkOwner):
    """Saves and loads the states of a policy's modes."""

    _own_state: OwnState

    #: Normalisation statistics of the run's environments, if they normalise; part of every state,
    #: since a policy is only valid with the statistics that it was trained with.
    _env_statistics: State | None = None

    #: Checkpoint entries in addition to the networks: entry to attribute, see `save_state`.
    _learned: Mapping[str, str] = {"optimizer": "_optimizer"}
    #: Optimisers with another entry in old checkpoints: the present entry, to the old entry and the
    #: parts of the network in the order of that optimiser's parameters.
    _old_optimizers: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    #: Entries of the collect mode's state that acting needs in addition to the network.
    _acted_with: Mapping[str, str] = {}
    #: Whether checkpoints contain a target network, `_target_model`.
    _saves_target = False

    def _saved_attributes(self) -> set[str]:
        """Attributes that are separate entries of states."""
        target = {"_target_model"} if self._saves_target else set()
        held = {*self._learned.values(), *self._acted_with.values(), *target}
        return {"_cfg", "_model", "_env_statistics", "_layouts", *held}

    def _save_mode(self, state_dict: Callable[[], State]) -> State:
        shared = {
            "env_statistics": self._env_statistics,
            "own_state": self._own_state.save(self),
        }
        return {**state_dict(), **{k: part for k, part in shared.items() if part is not None}}

    def _load_mode(self, load: Callable[[State], None], state: State) -> None:
        state = safe_serial.decoded(dict(state))  # scripts may have read the file by `torch.load`
        self._env_statistics = state.get("env_statistics")
        load({k: part for k, part in state.items() if k not in ("env_statistics", "own_state")})
        if "own_state" in state:
            self._own_state.load(self, state["own_state"], adds="learn" in self._enable_field)

    def _get_unsaved_attributes(self) -> list[str]:
        """Attributes of a custom class that cannot be saved, with their types."""
        self._own_state.save(self)
        return self._own_state.unsaved

    def _state_dict_learn(self) -> State:
        state = {"model": self._model.state_dict()}
        target = getattr(self, "_target_model", None)
        if self._saves_target and target is not None:
            count = target.update_count
            state |= {"target_model": target.state_dict(), "target_update_count": count}
        return {**state, **save_state(self, self._learned)}

    def _load_state_dict_learn(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"])
        target = getattr(self, "_target_model", None)
        if self._saves_target and target is not None:
            # A file with weights only: the target network starts from them, as at a run's start.
            target.load_state_dict(state_dict.get("target_model", state_dict["model"]))
            target.reset_state(state_dict.get("target_update_count"))
        load_state(self, self._learned, state_dict)

    def _state_dict_collect(self) -> State:
        return {"model": self._model.state_dict(), **save_state(self, self._acted_with)}

    def _load_state_dict_collect(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"], strict=True)
        load_state(self, self._acted_with, state_dict)

    def _state_dict_eval(self) -> State:
        return {"model": self._model.state_dict()}

    def _load_state_dict_eval(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"], strict=True)
