"""Losses and adders called as users call them: by position, by name, with plain tuples."""

from collections import deque

import numpy as np
import pytest
import torch

import ding.rl_utils as rl

T, B, N, ATOMS = 3, 4, 5, 7

FIELDS = {
    "a2c_data": "logit action value adv return_ weight",
    "a2c_loss": "policy_loss value_loss entropy_loss",
    "gae_data": "value next_value reward done traj_flag",
    "ppo_data": "logit_new logit_old action value_new value_old adv return_ weight "
    "logit_pretrained",
    "ppo_data_continuous": "mu_sigma_new mu_sigma_old action value_new value_old adv return_ "
    "weight logit_pretrained",
    "ppo_policy_data": "logit_new logit_old action adv weight logit_pretrained",
    "ppo_policy_data_continuous": "mu_sigma_new mu_sigma_old action adv weight logit_pretrained",
    "ppo_value_data": "value_new value_old return_ weight",
    "ppo_loss": "policy_loss value_loss entropy_loss kl_div",
    "ppo_policy_loss": "policy_loss entropy_loss kl_div",
    "ppo_info": "approx_kl clipfrac",
    "q_1step_td_data": "q next_q act next_act reward done weight",
    "q_v_1step_td_data": "q v act reward done weight",
    "nstep_return_data": "reward next_value done",
    "dist_1step_td_data": "dist next_dist act next_act reward done weight",
    "dist_nstep_td_data": "dist next_n_dist act next_n_act reward done weight",
    "v_1step_td_data": "v next_v reward done weight",
    "v_nstep_td_data": "v next_n_v reward done weight value_gamma",
    "q_nstep_td_data": "q next_n_q action next_n_action reward done weight",
    "qrdqn_nstep_td_data": "q next_n_q action next_n_action reward done tau weight",
    "td_lambda_data": "value reward weight",
    "vtrace_data": "target_output behaviour_output action value reward weight",
    "vtrace_loss": "policy_loss value_loss entropy_loss",
    "ppg_data": "logit_new logit_old action value_new value_old return_ weight",
    "happo_data": "logit_new logit_old action value_new value_old adv return_ weight factor",
    "coma_data": "logit action q_value target_q_value reward weight",
    "dqfd_nstep_td_data": "q next_n_q action next_n_action reward done done_one_step weight "
    "new_n_q_one_step next_n_action_one_step is_expert",
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_have_their_order(name):
    assert getattr(rl, name)._fields == tuple(FIELDS[name].split())


def _value(*shape):
    return torch.randn(shape)


def _index(*shape):
    return torch.randint(0, N, shape)


def _dist(*shape):
    return {"mu": torch.randn(shape), "sigma": torch.rand(shape) + 0.5}


def _atoms():
    return torch.softmax(torch.randn(B, N, ATOMS), -1)


_PLAIN = {
    "weight": None,
    "logit_pretrained": None,
    "value_gamma": None,
    "traj_flag": None,
    "done": torch.tensor([0.0, 1.0, 0.0, 1.0]),
    "action": _index(B),
    "act": _index(B),
    "next_act": _index(B),
    "next_n_act": _index(B),
    "next_n_action": _index(B),
    "tau": torch.rand(B, ATOMS, 1),
    **{name: _value(B, N) for name in ("q", "next_q", "next_n_q")},
    **{name: _value(B, N) for name in ("logit", "logit_new", "logit_old")},
}
_NSTEP = {"reward": _value(T, B)}
_MU = {name: _dist(B, 2) for name in ("mu_sigma_new", "mu_sigma_old", "logit")}
_MU["action"] = _value(B, 2)
_QUANTILES = {"q": _value(B, N, ATOMS), "next_n_q": _value(B, N, ATOMS), **_NSTEP}
_DIST = {name: _atoms() for name in ("dist", "next_dist", "next_n_dist")}
_TRACE = {"value": _value(T + 1, B), "action": _index(T, B), **_NSTEP}

#: Function, name of its tuple, its special fields, its positional arguments after the data.
CALLS = [
    ("a2c_error", "a2c_data", {}, ()),
    ("a2c_error_continuous", "a2c_data", _MU, ()),
    ("gae", "gae_data", {}, (0.9, 0.8)),
    ("ppo_error", "ppo_data", {}, (0.1, False, 2.0, "k3")),
    ("ppo_error_continuous", "ppo_data_continuous", _MU, (0.1, False, 2.0, "k3")),
    ("ppo_policy_error", "ppo_policy_data", {}, (0.1, 2.0, False, "k3")),
    ("ppo_policy_error_continuous", "ppo_policy_data_continuous", _MU, (0.1, 2.0, "k3")),
    ("ppo_value_error", "ppo_value_data", {}, (0.1, False)),
    ("q_1step_td_error", "q_1step_td_data", {}, (0.9, torch.nn.SmoothL1Loss(reduction="none"))),
    ("q_v_1step_td_error", "q_v_1step_td_data", {}, (0.9,)),
    ("nstep_return", "nstep_return_data", _NSTEP, (0.9, T)),
    ("dist_1step_td_error", "dist_1step_td_data", _DIST, (0.9, -3.0, 3.0, ATOMS)),
    ("dist_nstep_td_error", "dist_nstep_td_data", {**_DIST, **_NSTEP}, (0.9, -3, 3, ATOMS, T)),
    ("v_1step_td_error", "v_1step_td_data", {}, (0.9,)),
    ("v_nstep_td_error", "v_nstep_td_data", _NSTEP, (0.9, T)),
    ("q_nstep_td_error", "q_nstep_td_data", _NSTEP, (0.9, T)),
    ("q_nstep_td_error", "q_nstep_td_data", _NSTEP, ([0.9] * B, T)),
    ("q_nstep_td_error_with_rescale", "q_nstep_td_data", _NSTEP, (0.9, T)),
    ("q_nstep_sql_td_error", "q_nstep_td_data", _NSTEP, (0.9, 0.5, T)),
    ("qrdqn_nstep_td_error", "qrdqn_nstep_td_data", _QUANTILES, (0.9, T)),
    ("td_lambda_error", "td_lambda_data", {"value": _value(T + 1, B), **_NSTEP}, (0.9, 0.8)),
    (
        "vtrace_error_discrete_action",
        "vtrace_data",
        {**_TRACE, "target_output": _value(T, B, N), "behaviour_output": _value(T, B, N)},
        (0.9, 0.8, 1.1, 1.2, 1.3),
    ),
    (
        "vtrace_error_continuous_action",
        "vtrace_data",
        {
            **_TRACE,
            "target_output": _dist(T, B, 2),
            "behaviour_output": _dist(T, B, 2),
            "action": _value(T, B, 2),
        },
        (0.9, 0.8, 1.1, 1.2, 1.3),
    ),
]


def _numbers(result):
    if isinstance(result, tuple | list):
        return [number for part in result for number in _numbers(part)]
    return torch.as_tensor(result).reshape(-1).tolist()


def _values(kind, special):
    torch.manual_seed(0)
    given = {**_PLAIN, **special}
    return {n: given[n] if n in given else _value(B) for n in FIELDS[kind].split()}


@pytest.mark.parametrize(("name", "kind", "special", "args"), CALLS)
def test_plain_tuples_and_names(name, kind, special, args):
    values = _values(kind, special)
    function, make = getattr(rl, name), getattr(rl, kind)
    expected = _numbers(function(make(**values), *args))
    assert expected
    assert _numbers(function(tuple(values.values()), *args)) == expected
    assert _numbers(function(list(values.values()), *args)) == expected
    named = dict(zip(function.__code__.co_varnames[1:], args))
    assert _numbers(function(data=make(*values.values()), **named)) == expected


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8])
@pytest.mark.parametrize(
    ("name", "kind", "special", "args"), [call for call in CALLS if "done" in FIELDS[call[1]]]
)
def test_flags_of_any_kind(name, kind, special, args, dtype):
    values = _values(kind, special)
    function, make = getattr(rl, name), getattr(rl, kind)
    expected = _numbers(function(make(**values), *args))
    values["done"] = values["done"].to(dtype)
    assert _numbers(function(make(**values), *args)) == expected


def test_a_tuple_of_the_other_kind_is_read_by_position():
    torch.manual_seed(0)
    new, old, action = _dist(B, 2), _dist(B, 2), _value(B, 2)
    rest = (_value(B), _value(B), _value(B), _value(B), None)
    wanted = _numbers(rl.ppo_error_continuous(rl.ppo_data_continuous(new, old, action, *rest)))
    assert _numbers(rl.ppo_error_continuous(rl.ppo_data(new, old, action, *rest))) == wanted
    adv, weight = rest[2], rest[4]
    wanted = _numbers(rl.ppo_policy_error_continuous(
        rl.ppo_policy_data_continuous(new, old, action, adv, weight)))  # fmt: skip
    mixed = rl.ppo_policy_data(new, old, action, adv, weight)
    assert _numbers(rl.ppo_policy_error_continuous(mixed)) == wanted


def test_shapes_of_calls():
    reward, q = _value(T, B), _value(B, N)
    q_data = rl.q_nstep_td_data(q, q, _index(B), _index(B), reward, None, None)
    assert rl.shape_fn_qntd((q_data,), {}) == [T, B, N]
    assert rl.shape_fn_qntd_rescale((), {"data": q_data}) == [T, B, N]
    dist = rl.dist_nstep_td_data(_atoms(), _atoms(), _index(B), _index(B), reward, None, None)
    assert rl.shape_fn_dntd((dist, 0.9), {}) == [T, B, N, ATOMS]
    assert rl.shape_fn_qrdqn((dist,), {}) == [T, B, N, ATOMS]
    assert rl.shape_fn_td_lambda((rl.td_lambda_data(_value(T + 1, B), reward, None),), {}) == [T, B]
    gae = rl.gae_data(_value(T, B, 2), _value(T, B, 2), reward, None, None)
    assert rl.shape_fn_gae((), {"data": gae}) == [T, B]
    assert rl.shape_fn_ppo(((q, q, _index(B), *[_value(B)] * 4, None, None),), {}) == [B, N]
    logits = _value(T, B, N)
    trace = rl.vtrace_data(logits, logits, _index(T, B), _value(T + 1, B), reward, None)
    assert rl.shape_fn_vtrace_discrete_action((trace,), {}) == [T, B, N]
    trace = trace._replace(target_output=_dist(T, B, 2))
    assert rl.shape_fn_vtrace_continuous_action((trace,), {}) == [T, B, 2]


def _row(kind, i):
    done = i == 3
    value = {"tensor": torch.tensor([0.5 * i]), "array": np.array([0.5 * i]), "float": 0.5 * i}
    one = {"tensor": torch.tensor([1.0 * i]), "array": np.array([i], np.float32), "float": 1.0 * i}
    obs = np.full(2, i, np.float32)
    return dict(obs=obs, next_obs=obs + 1, value=value[kind], reward=one[kind], done=done)


@pytest.mark.parametrize("container", [list, tuple, deque])
@pytest.mark.parametrize("kind", ["tensor", "array", "float"])
class TestAdders:
    def rows(self, container, kind):
        return container([_row(kind, i) for i in range(6)])

    def test_advantages(self, container, kind):
        expected = rl.get_gae([_row("tensor", i) for i in range(6)], torch.ones(1), 0.9, 0.8, False)
        expected = [row["adv"] for row in expected]
        for last in (torch.ones(1), torch.tensor(1.0), np.ones(1), 1.0):
            data = rl.get_gae(self.rows(container, kind), last, 0.9, 0.8, False)
            torch.testing.assert_close(
                [row["adv"].reshape(()).float() for row in data],
                [adv.reshape(()) for adv in expected],
            )

    @pytest.mark.parametrize("done", [True, False])
    def test_advantages_with_a_default(self, container, kind, done):
        data = rl.get_gae_with_default_last_value(
            data=self.rows(container, kind), done=done, gamma=0.9, gae_lambda=0.8, cuda=False
        )
        assert len(data) == (6 if done else 5)

    def test_nstep_returns(self, container, kind):
        data = rl.get_nstep_return_data(self.rows(container, kind), 3, gamma=0.5)
        assert [row["reward"].tolist() for row in data] == [
            *([0, 1, 2], [1, 2, 3], [2, 3, 0], [3, 0, 0], [4, 5, 0], [5, 0, 0]),
        ]
        summed = rl.get_nstep_return_data(self.rows(container, kind), 3, True, True, 0.5)
        sums = [1.0, 2.75, 3.5, 3.0, 6.5, 5.0]
        assert [np.asarray(row["reward"]).item() for row in summed] == sums

    def test_unrolls_keep_recurrent_states_whole(self, container, kind):
        rows = self.rows(container, kind)
        for i, row in enumerate(rows):
            row["prev_state"] = {"h": torch.tensor(i)} if i else None
            row["nested"] = {"a": i}
        first, second = rl.get_train_sample(rows, 3)
        assert first["prev_state"] == [None, {"h": 1}, {"h": 2}]
        assert second["prev_state"] == [{"h": 3}, {"h": 4}, {"h": 5}]
        assert second["nested"] == {"a": [3, 4, 5]}

    def test_unrolls(self, container, kind):
        data = rl.get_train_sample(self.rows(container, kind), 4, "last")
        assert [[float(obs[0]) for obs in unroll["obs"]] for unroll in data] == [
            *([0, 1, 2, 3], [2, 3, 4, 5]),
        ]
