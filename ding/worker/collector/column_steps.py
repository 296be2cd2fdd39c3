"""Acting on arrays: one call of each policy and one of the env manager for a step."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from ding.data import Columns, IndexedColumn, tree_map, tree_take
from ding.envs import PlayerActions, VectorStep, composite_actions
from ding.policy import as_train_columns
from ding.utils.errors import DataError
from ding.worker.collector.step_log import StepLog
from ding.worker.collector.steps import NO_SEED, Envs, Harvest, Player, Tree


class ColumnSteps:
    """Takes steps; transitions go, in time, into one log.

    Args:
        envs: A launched env manager.
        players: Their policies, arguments and iterations, which may change between steps.
        battle: Whether observations, rewards and infos have a leading dimension of players.
        keeps: Whether transitions are kept at all.
    """

    def __init__(self, envs: Envs, players: Sequence[Player], battle: bool, keeps: bool) -> None:
        self._envs, self._players = envs, players
        self._battle, self._keeps = battle, keeps
        self._log = StepLog(envs.env_num, len(players))
        self._has_seeds = False

    # ------------------------------------------------------------------ acting

    def take(self, active: np.ndarray | None) -> VectorStep:
        """Act in all ready environments, or those `active`."""
        env_ids, obs = self._envs.ready_columns()
        if active is not None and not active[env_ids].all():
            acts = active[env_ids]
            env_ids, obs = env_ids[acts], tree_take(obs, acts)
        seen = self._of_players(obs)
        acted = [self._act(player, env_ids, seen[i]) for i, player in enumerate(self._players)]
        actions = [action for action, _ in acted]
        joined = np.stack(actions, axis=1).view(PlayerActions) if self._battle else actions[0]
        step: VectorStep = self._envs.step_columns(joined, env_ids)
        if self._keeps:
            # What the policies saw still holds: env managers write the next but one step there.
            for index, (player, (_, columns)) in enumerate(zip(self._players, acted)):
                columns["obs"] = seen[index]
                columns["reward"] = step.reward[:, index] if self._battle else step.reward
                columns["done"] = step.done & ~step.truncated if step.infos else step.done
                columns["collect_iter"] = player.train_iter
                if player.level_seeds is not None or self._has_seeds:
                    columns["seed"] = self._seeds(step.env_ids, player.level_seeds)
            self._log.append(step.env_ids, [columns for _, columns in acted])
        return step

    def _act(self, player: Player, env_ids: np.ndarray, obs: Tree) -> tuple[Tree, dict[str, Tree]]:
        """Actions of one player ``[n, ...]``, and the columns that its policy adds."""
        batched, kwargs = player.mode.batched, player.kwargs
        if batched.recurrent:
            kwargs = {**kwargs, "env_ids": env_ids.tolist()}
        output = batched.forward(obs, **kwargs)
        action = _arrays(output["action"])
        taken = composite_actions(action) if isinstance(action, dict) else action
        if len(taken) != len(env_ids):
            raise DataError(
                f"the policy returned {len(taken)} actions for {len(env_ids)} environments"
            )
        columns = {"action": action}
        if self._keeps:
            for name in batched.transition_outputs:
                columns[name] = _arrays(output[name])
        return taken, columns

    def _seeds(self, env_ids: np.ndarray, level_seeds: Sequence[int] | None) -> Tree:
        if level_seeds is None:
            return NO_SEED
        seeds = np.asarray(level_seeds)[env_ids]
        self._log.add_missing("seed", seeds, NO_SEED)
        self._has_seeds = True
        return seeds

    def _of_players(self, tree: Tree) -> list[Tree]:
        """Of each player's own, ``[n, ...]``; without a battle there is no dimension of players."""
        if not self._battle:
            return [tree]
        return [tree_take(tree, (slice(None), i)) for i in range(len(self._players))]

    # ------------------------------------------------------------------ trajectories

    def complete(self, env_ids: np.ndarray, step: VectorStep, which: np.ndarray) -> None:
        """With this step, trajectories of environments are complete.

        Args:
            which: Where `env_ids` are in the step, bool ``[n]``.
        """
        if self._keeps:
            self._log.end(env_ids, self._of_players(tree_take(step.obs, which)))

    def forget(self, env_ids: Sequence[int] | np.ndarray) -> None:
        """Forget the running trajectories of environments."""
        self._log.forget(env_ids)

    # ------------------------------------------------------------------ harvest

    def harvest(self, train_samples: bool) -> list[Harvest]:
        """See `Rollout.harvest`."""
        harvests: list[Harvest] = [([], []) for _ in self._players]
        ended = self._log.ended()
        if ended is None:
            return harvests
        at, following, lengths = ended
        given = []
        for index, player in enumerate(self._players):
            if not player.wanted:
                continue
            batched = player.mode.batched
            is_given = not train_samples or batched.takes_indexed
            columns = self._log.columns(index)
            obs = columns.pop("obs")
            columns = tree_map(lambda leaf: leaf.take(at, axis=0), columns)
            for name, cells in (("obs", at), ("next_obs", following)):
                indexed = tree_map(partial(IndexedColumn, index=cells), obs)
                columns[name] = indexed if is_given else tree_map(IndexedColumn.gathered, indexed)
            if is_given:
                given.append(index)
            if train_samples:
                columns = batched.get_train_columns(columns, lengths)
                counts = batched.count_samples(lengths)
            else:
                columns["reward"], counts = columns["reward"][:, None], lengths
            harvests[index] = Columns(as_train_columns(columns)), counts.tolist()
        self._log.drop_ended(given)
        return harvests


def _arrays(value: Tree) -> Tree:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {name: _arrays(part) for name, part in value.items()}
    return value.numpy()
