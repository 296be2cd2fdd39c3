"""How a game ended, seen from home."""

from typing import Any

from ding.utils.errors import DataError

WINS, DRAWS, LOSSES = "wins", "draws", "losses"
OUTCOMES = (WINS, DRAWS, LOSSES)


def flat_outcomes(result: Any) -> list[str]:
    """The games of a result as one list.

    Args:
        result: ``'wins'``, ``'draws'`` or ``'losses'`` per game; lists of them may be nested, as
            workers report one list per environment.

    Raises:
        DataError: Something else is in there.
    """
    outcomes, pending = [], [result]
    while pending:
        part = pending.pop()
        if isinstance(part, (list, tuple)):
            pending.extend(reversed(part))
        elif part in OUTCOMES:
            outcomes.append(part)
        else:
            raise DataError(f"a game's result is one of {', '.join(OUTCOMES)}, got {part!r}")
    return outcomes
