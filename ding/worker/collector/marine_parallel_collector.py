"""The parallel collector of games."""

from ding.utils import PARALLEL_COLLECTOR_REGISTRY
from ding.utils.types import State
from ding.worker.collector.steps import Episode
from ding.worker.collector.zergling_parallel_collector import ZerglingParallelCollector


@PARALLEL_COLLECTOR_REGISTRY.register("marine")
class MarineParallelCollector(ZerglingParallelCollector):
    """Collects games of one or two policies.

    ``agent_num``, or the length of ``policy_update_path``, is the number of players. With one
    player, a single-player environment is expected. ``policy`` and ``collect_setting`` apply to all
    players, or are lists with one entry per player. A player whose ``policy_update_flag`` is false
    is frozen: its policy is loaded once, as soon as it is published, and its data is not sent.
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
        """The task's report, with ``game_result``: one result of the first player per episode."""
        results = [_result(episode) for episode in self._tally.episodes]
        return {**super().get_finish_info(), "game_result": results}


def _result(episode: Episode) -> str:
    """The game's result for the first player: from the environment's info, else the returns."""
    result = episode.infos[0].get("result")
    if result is not None:
        return str(result)
    own, other = episode.returns[0], episode.returns[1] if len(episode.returns) > 1 else 0.0
    return "wins" if own > other else "losses" if own < other else "draws"
