"""The way out of a maze, as a teacher of policies that imitate planning."""

from typing import Any

import numpy as np

#: What an action does to row and column, by its number.
_MOVES = ((1, 0), (0, 1), (-1, 0), (0, -1))
Cell = tuple[int, int]


def get_vi_sequence(env: Any, observation: np.ndarray) -> tuple[list[Cell], np.ndarray]:
    """Plan a shortest path by breadth-first search from the target.

    Args:
        env: A maze with ``size``, ``n_action``, ``target_location`` and ``nav_map``, rows of
            characters where ``x`` is a wall. Actions 0 to 3 lead down, right, up and left.
        observation: ``[size, size, channels]``; in the last channel the start is 1.

    Returns:
        The cells of the path from the start to before the target (none if there is no path), and
        the best known action of each cell after each step of the search, int32 ``[steps, size,
        size]``, where ``n_action`` means unknown.
    """
    rows, columns = np.nonzero(observation[..., -1] == 1)
    start = int(rows[0]), int(columns[0])
    target = int(env.target_location[0]), int(env.target_location[1])
    best = np.full((env.size, env.size), env.n_action, np.int32)
    border, seen, steps = [target], {target}, []
    while border and start not in seen:
        following = []
        for row, column in border:
            for action, (down, right) in enumerate(_MOVES):
                cell = row - down, column - right
                if cell in seen or not _is_free(env, cell):
                    continue
                seen.add(cell)
                following.append(cell)
                best[cell] = action
        steps.append(best.copy())
        border = following
    path, cell = [], start
    while start in seen and cell != target:
        path.append(cell)
        down, right = _MOVES[best[cell]]
        cell = cell[0] + down, cell[1] + right
    return path, np.array(steps, np.int32).reshape(-1, env.size, env.size)


def _is_free(env: Any, cell: Cell) -> bool:
    row, column = cell
    if not (0 <= row < env.size and 0 <= column < env.size):
        return False
    return env.nav_map[row][column] != "x"
