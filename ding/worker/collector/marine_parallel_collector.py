"""The parallel collector of games."""

from ding.utils import PARALLEL_COLLECTOR_REGISTRY
from ding.utils.types import State
from ding.worker.collector.steps import Episode
from ding.worker.collector.zergling_parallel_collector import ZerglingParallelCollector


@PARALLEL_COLLECTOR_REGISTRY.register("marine")
class MarineParallelCollector(ZerglingParallelCollector):
    """Collects games of one or two policies.

    There are ``agent_num`` players, or as many as ``policy_update_path`` lists. With one, the
    environment is one for a single player. ``policy`` and ``collect_setting`` are for all, or
    lists. A player whose ``policy_update_flag`` is false is frozen: its policy is loaded once, as
    soon as it is published, and its data is not sent.
    """

    @property
    def _player_num(self) -> int:
        given = self._cfg.get("agent_num")
        if given is not None:
            return int(given)
        for name in ("policy_update_path", "policy"):
            if isinstance(self._cfg.get(name), list | tuple):
                return len(self._cfg[name])
        return 1

    def get_finish_info(self) -> State:
        """The task's report, with ``game_result``: the first player's, one per episode."""
        results = [_result(episode) for episode in self._tally.episodes]
        return {**super().get_finish_info(), "game_result": results}


def _result(episode: Episode) -> str:
    """How the game ended for the first player: as the environment says, or by the returns."""
    result = episode.infos[0].get("result")
    if result is not None:
        return str(result)
    own, other = episode.returns[0], episode.returns[1] if len(episode.returns) > 1 else 0.0
    return "wins" if own > other else "losses" if own < other else "draws"
