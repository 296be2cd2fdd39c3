"""Turns trajectories of rows into training samples: advantages, n-step windows, unrolls.

The functions return new dicts and do not change their arguments; the values in them are shared.
"""

from collections import deque
from collections.abc import Iterable, Sequence

import torch

from ding.rl_utils.gae import gae, gae_data
from ding.torch_utils.data_helper import get_null_data
from ding.utils.data.collate_fn import STATE_KEYS
from ding.utils.default_helper import lists_to_dicts
from ding.utils.types import Tree

Row = dict[str, Tree]


class Adder:
    """The functions of this module as class methods."""

    @classmethod
    def get_gae(
        cls,
        data: Iterable[Row],
        last_value: torch.Tensor,
        gamma: float,
        gae_lambda: float,
        cuda: bool = False,
    ) -> list[Row]:
        """Add ``adv``, the generalised advantage estimate, to each row.

        Args:
            data: Consecutive rows with ``value`` and ``reward``. A row with ``done``, except the
                last one, ends an episode.
            last_value: Value of the last row's ``next_obs``; zero if it is terminal.
            cuda: Whether to compute on the GPU.
        """
        rows = list(data)
        if not rows:
            return []
        value = torch.stack([_flat(row["value"]) for row in rows])
        next_value = torch.cat([value[1:], _flat(last_value).to(value).unsqueeze(0)])
        reward = torch.stack([_flat(row["reward"]) for row in rows]).to(value.dtype)
        if reward.shape[1] == 1:
            # One reward for one value, or for the values of all agents.
            reward = reward.expand_as(value)
        # The last value determines the bootstrap of the last row, whatever its flag.
        done = torch.tensor([bool(row.get("done", False)) for row in rows[:-1]] + [False])
        columns = (value, next_value, reward, done.unsqueeze(1).expand_as(value))
        if cuda:
            columns = tuple(column.cuda() for column in columns)  # type: ignore[assignment]
        adv = gae(gae_data(*columns, None), gamma, gae_lambda).to(value.device)
        if adv.shape[1] == 1:
            adv = adv.squeeze(1)
        return [{**row, "adv": adv[index]} for index, row in enumerate(rows)]

    @classmethod
    def get_gae_with_default_last_value(
        cls,
        data: Iterable[Row],
        done: bool,
        gamma: float,
        gae_lambda: float,
        cuda: bool = False,
    ) -> list[Row]:
        """``get_gae`` with a last value from the data.

        Args:
            done: Whether the last row is terminal, so that the last value is zero. If not, the last
                row only provides the last value and is not in the result.
        """
        rows = list(data)
        if not rows:
            return []
        last_value = torch.as_tensor(rows[-1]["value"])
        if done:
            return cls.get_gae(rows, torch.zeros_like(last_value), gamma, gae_lambda, cuda)
        return cls.get_gae(rows[:-1], last_value, gamma, gae_lambda, cuda)

    @classmethod
    def get_nstep_return_data(
        cls,
        data: Iterable[Row],
        nstep: int,
        cum_reward: bool = False,
        correct_terminate_gamma: bool = True,
        gamma: float = 0.99,
    ) -> deque[Row]:
        """Turn one-step rows into n-step rows.

        A window ends after ``nstep`` rows, at a row with ``done``, or at the end of the data. Its
        row gets the ``next_obs`` and ``done`` of the window's last row, ``reward`` of shape
        ``(nstep,)`` padded with zeros, and ``value_gamma``, the discount of the value of
        ``next_obs``.

        Args:
            cum_reward: Whether ``reward`` is the discounted sum instead, in its original shape.
            correct_terminate_gamma: Whether ``value_gamma`` is gamma to the power of the window's
                actual length, instead of ``nstep``.
        """
        rows = list(data)
        if nstep == 1:
            return deque(rows)
        last = len(rows) - 1
        ends = [0] * len(rows)
        for index in range(len(rows) - 1, -1, -1):
            if rows[index].get("done", False):
                last = index
            ends[index] = min(index + nstep - 1, last)
        result: deque[Row] = deque()
        for index, end in enumerate(ends):
            row, final = dict(rows[index]), rows[end]
            rewards = [step["reward"] for step in rows[index : end + 1]]
            if cum_reward:
                row["reward"] = sum(gamma**k * reward for k, reward in enumerate(rewards))
            else:
                row["reward"] = _padded(rewards, nstep)
            row.update({key: final[key] for key in ("next_obs", "done") if key in final})
            row["value_gamma"] = gamma ** (len(rewards) if correct_terminate_gamma else nstep)
            result.append(row)
        return result

    @classmethod
    def get_train_sample(
        cls,
        data: Iterable[Row],
        unroll_len: int,
        last_fn_type: str = "last",
        null_transition: Row | None = None,
    ) -> list[Row]:
        """Split a trajectory into unrolls.

        Args:
            unroll_len: Rows per unroll; 1 returns the rows themselves.
            last_fn_type: Treatment of a remainder: ``'last'`` prepends the rows before it (or pads
                with null rows if there are too few), ``'null_padding'`` appends null rows,
                ``'drop'`` drops it.
            null_transition: The null row; by default it is made from the first row.

        Returns:
            A dict of lists for each unroll; recurrent states are lists with one state per row.
        """
        if last_fn_type not in ("last", "null_padding", "drop"):
            raise ValueError(
                f"got last_fn_type={last_fn_type!r}: expected 'last', 'null_padding' or 'drop'"
            )
        rows = list(data)
        if unroll_len == 1 or not rows:
            return rows
        whole = len(rows) - len(rows) % unroll_len
        unrolls = [rows[start : start + unroll_len] for start in range(0, whole, unroll_len)]
        remainder = rows[whole:]
        if remainder and last_fn_type != "drop":
            if last_fn_type == "last" and whole:
                unrolls.append(rows[-unroll_len:])
            else:
                missing = unroll_len - len(remainder)
                unrolls.append(remainder + _null_rows(rows[0], missing, null_transition))
        return [_by_name(unroll) for unroll in unrolls]


get_gae = Adder.get_gae
get_gae_with_default_last_value = Adder.get_gae_with_default_last_value
get_nstep_return_data = Adder.get_nstep_return_data
get_train_sample = Adder.get_train_sample


def _by_name(rows: list[Row]) -> Row:
    states = [key for key in STATE_KEYS if key in rows[0]]
    plain = [{k: v for k, v in row.items() if k not in states} for row in rows] if states else rows
    by_name = lists_to_dicts(plain, recursive=True)
    return {**by_name, **{key: [row[key] for row in rows] for key in states}}


def _flat(value: Tree) -> torch.Tensor:
    return torch.as_tensor(value).reshape(-1)


def _padded(rewards: Sequence[Tree], nstep: int) -> torch.Tensor:
    """The rewards as float32 ``[nstep, *]``; rewards of shape (1,) are squeezed."""
    stacked = torch.stack([torch.as_tensor(reward, dtype=torch.float32) for reward in rewards])
    if stacked.shape[1:] == (1,):
        stacked = stacked.squeeze(1)
    padded = stacked.new_zeros(nstep, *stacked.shape[1:])
    padded[: len(rewards)] = stacked
    return padded


def _null_rows(template: Row, count: int, null_transition: Row | None) -> list[Row]:
    if null_transition is not None:
        return [dict(null_transition) for _ in range(count)]
    rows = get_null_data(template, count)
    if "null" not in template:
        # All rows of an unroll must have the same keys.
        for row in rows:
            del row["null"]
    return rows
