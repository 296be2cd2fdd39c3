"""Checkpoints of DI-engine: the names of parameters, and what is computed from them."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from ding.model import (
    ACER,
    C51DQN,
    DQN,
    DRQN,
    IQN,
    MAVAC,
    PDQN,
    PG,
    PPG,
    QACDIST,
    QRDQN,
    VAC,
    ContinuousQAC,
    DiscreteBC,
    DiscreteQAC,
    QMix,
    RainbowDQN,
    with_old_names,
)


def linear(name, n_out, *n_in):
    return {f"{name}.weight": [n_out, *n_in], f"{name}.bias": [n_out]}


def encoder(name="encoder"):
    layers = linear(f"{name}.init", 128, 4), linear(f"{name}.main.0", 128, 128)
    return {**layers[0], **layers[1], **linear(f"{name}.main.2", 64, 128)}


def images(name, first, mid):
    return {
        **linear(f"{name}.main.0", first, 4, 8, 8),
        **linear(f"{name}.main.2", first, first, 4, 4),
        **linear(f"{name}.main.4", mid, first, 3, 3),
        **linear(f"{name}.mid", mid, 49 * mid),
    }


def branch(name, n_out, width=64):
    return {**linear(f"{name}.0.0", width, width), **linear(f"{name}.1.0", n_out, width)}


def dueling(name, n, width=64):
    return {**branch(f"{name}.A", n, width), **branch(f"{name}.V", 1, width)}


def regression(name, n_out, n_in=64):
    return {**linear(f"{name}.main.0", 64, n_in), **linear(f"{name}.last", n_out, 64)}


def gaussian(name, *last):
    sigma = {} if last else {f"{name}.log_sigma_param": [1, 2]}
    layers = [linear(f"{name}.{layer}", 2, 64) for layer in ("mu", *last)]
    return {
        **sigma,
        **linear(f"{name}.main.0", 64, 64),
        **{k: v for x in layers for k, v in x.items()},
    }


def noisy(name, *sizes):
    shapes = {"weight": list(sizes), "bias": [sizes[0]]}
    own = {f"{name}.{k}_{kind}": v for k, v in shapes.items() for kind in ("mu", "sigma")}
    return {**own, **{f"{name}.{k}_eps": v for k, v in shapes.items()}}


def twice(state, share=True):
    """The names through ``actor`` and ``critic``."""
    more = {}
    for part in ("actor", "critic"):
        home = "encoder" if share else f"{part}_encoder"
        for i, own in enumerate((home, f"{part}_head")):
            more |= {
                f"{part}.{i}{name.removeprefix(own)}": shape
                for name, shape in state.items()
                if name.startswith(f"{own}.")
            }
    return {**state, **more}


HYBRID = {
    "actor_head.0": "dis_head",
    "actor_head.1": "cont_head",
    "encoder.0": "dis_encoder",
    "encoder.1": "cont_encoder",
}


def hybrid_twice(state):
    """The names through ``actor_head`` and ``encoder``."""
    more = {
        alias + name.removeprefix(own): shape
        for alias, own in HYBRID.items()
        for name, shape in state.items()
        if name.startswith(f"{own}.")
    }
    return {**state, **more}


def through(name, shapes, *n_in):
    return {**linear(f"{name}.0", 64, *n_in), **{f"{name}.2.{k}": v for k, v in shapes.items()}}


def headed(shapes):
    return {k.removeprefix("x."): v for k, v in shapes.items()}


ENCODERS = {**encoder("actor_encoder"), **encoder("critic_encoder")}
CRITIC = regression("critic_head", 1)
ACTOR = branch("actor_head.Q", 2)
DEEP_ACTOR = {
    **linear("actor_head.Q.0.0", 64, 64),
    **linear("actor_head.Q.0.2", 64, 64),
    **linear("actor_head.Q.1.0", 2, 64),
}
IMAGES = (4, 84, 84)
OLD = {
    "dqn dueling": (lambda: DQN(4, 2), {**encoder(), **dueling("head", 2)}),
    "dqn": (lambda: DQN(4, 2, dueling=False), {**encoder(), **branch("head.Q", 2)}),
    "dqn two actions": (
        lambda: DQN(4, [2, 3]),
        {**encoder(), **dueling("head.pred.0", 2), **dueling("head.pred.1", 3)},
    ),
    "dqn images": (
        lambda: DQN(IMAGES, 6, [128, 128, 512]),
        {**images("encoder", 128, 512), **dueling("head", 6, 512)},
    ),
    "c51": (lambda: C51DQN(4, 2), {**encoder(), **branch("head.Q", 102)}),
    "qrdqn": (lambda: QRDQN(4, 2), {**encoder(), **branch("head.Q", 64)}),
    "iqn": (
        lambda: IQN(4, 2),
        {**encoder(), **branch("head.Q", 2), **linear("head.iqn_fc", 64, 128)},
    ),
    "mavac": (
        lambda: MAVAC(4, 6, 2, 3),
        twice(
            {
                **linear("actor_encoder.0", 256, 4),
                **linear("critic_encoder.0", 512, 6),
                **linear("critic_head.main.0", 512, 512),
                **linear("critic_head.last", 1, 512),
                **linear("actor_head.Q.0.0", 256, 256),
                **linear("actor_head.Q.0.2", 256, 256),
                **linear("actor_head.Q.1.0", 2, 256),
            },
            share=False,
        ),
    ),
    "pg": (lambda: PG(4, 2), {**encoder(), **branch("head.Q", 2)}),
    "ppg": (
        lambda: PPG(4, 2),
        {
            f"{part}.{name}": shape
            for part, state in {
                "actor_critic": twice({**encoder(), **CRITIC, **DEEP_ACTOR}),
                "aux_critic": {**encoder("0"), **regression("1", 1)},
            }.items()
            for name, shape in state.items()
        },
    ),
    "rainbow": (
        lambda: RainbowDQN(4, 2),
        {
            **encoder(),
            **noisy("head.A.0.0", 64, 64),
            **noisy("head.A.1.0", 102, 64),
            **noisy("head.Q.0.0", 64, 64),
            **noisy("head.Q.1.0", 51, 64),
        },
    ),
    "drqn": (
        lambda: DRQN(4, 2),
        {
            **encoder(),
            "rnn.bias": [1, 256],
            **{f"rnn.norm.{i}.{kind}": [256] for i in range(2) for kind in ("weight", "bias")},
            "rnn.wx.0": [64, 256],
            "rnn.wh.0": [64, 256],
            **dueling("head", 2),
        },
    ),
    "qmix": (
        lambda: QMix(3, 4, 6, 2, [32, 32]),
        {
            **linear("_q_network.encoder.init", 32, 4),
            **linear("_q_network.encoder.main.0", 32, 32),
            **{f"_q_network.rnn.weight_{kind}": [96, 32] for kind in ("ih", "hh")},
            **{f"_q_network.rnn.bias_{kind}": [96] for kind in ("ih", "hh")},
            **branch("_q_network.head.Q", 2, 32),
            **linear("_mixer.hyper_w_1.0", 64, 6),
            **linear("_mixer.hyper_w_1.2", 96, 64),
            **linear("_mixer.hyper_w_final.0", 64, 6),
            **linear("_mixer.hyper_w_final.2", 32, 64),
            **linear("_mixer.hyper_b_1", 32, 6),
            **linear("_mixer.V.0", 32, 6),
            **linear("_mixer.V.2", 1, 32),
        },
    ),
    "bc discrete": (lambda: DiscreteBC(4, 2), {**encoder(), **dueling("head", 2)}),
    "vac": (lambda: VAC(4, 2), twice({**encoder(), **CRITIC, **ACTOR})),
    "acer": (
        lambda: ACER(4, 2),
        twice({**ENCODERS, **regression("critic_head", 2), **ACTOR}, share=False),
    ),
    "pdqn": (
        lambda: PDQN(4, {"action_type_shape": 3, "action_args_shape": 2}),
        hybrid_twice(
            {
                **encoder("dis_encoder"),
                **encoder("cont_encoder"),
                **regression("cont_head", 2),
                **dueling("dis_head", 3, 66),
            }
        ),
    ),
    "qac dist": (
        lambda: QACDIST(4, 2),
        {
            **through("actor", headed(regression("x", 2)), 4),
            **through("critic", headed(branch("x.Q", 51)), 6),
        },
    ),
    "vac two encoders": (
        lambda: VAC(4, 2, share_encoder=False),
        twice({**ENCODERS, **CRITIC, **ACTOR}, share=False),
    ),
    "vac images": (
        lambda: VAC(IMAGES, 6, encoder_hidden_size_list=[64, 64, 128]),
        twice(
            {
                **images("encoder", 64, 128),
                **regression("critic_head", 1, 128),
                **linear("actor_head.Q.0.0", 64, 128),
                **linear("actor_head.Q.1.0", 6, 64),
            }
        ),
    ),
    "vac continuous": (
        lambda: VAC(4, 2, action_space="continuous"),
        twice({**encoder(), **CRITIC, **gaussian("actor_head")}),
    ),
    "vac continuous two encoders": (
        lambda: VAC(4, 2, "continuous", False, sigma_type="independent", bound_type="tanh"),
        twice({**ENCODERS, **CRITIC, **gaussian("actor_head")}, share=False),
    ),
    "vac hybrid": (
        lambda: VAC(4, {"action_type_shape": 3, "action_args_shape": 2}, action_space="hybrid"),
        twice({**encoder(), **CRITIC, **branch("actor_head.0.Q", 3), **gaussian("actor_head.1")}),
    ),
    "qac regression": (
        lambda: ContinuousQAC(4, 2, "regression"),
        twice(
            {
                **through("actor_head", headed(regression("x", 2)), 4),
                **through("critic_head", headed(regression("x", 1)), 6),
            }
        ),
    ),
    "qac gaussian twin": (
        lambda: ContinuousQAC(4, 2, "reparameterization", twin_critic=True),
        twice(
            {
                **through("actor_head", headed(gaussian("x", "log_sigma_layer")), 4),
                **through("critic_head.0", headed(regression("x", 1)), 6),
                **through("critic_head.1", headed(regression("x", 1)), 6),
            }
        ),
    ),
    "qac discrete twin": (
        lambda: DiscreteQAC(4, 2, twin_critic=True),
        twice(
            {
                **through("actor_head", headed(branch("x.Q", 2)), 4),
                **through("critic_head.0", headed(branch("x.Q", 2)), 4),
                **through("critic_head.1", headed(branch("x.Q", 2)), 4),
            }
        ),
    ),
}
EACH = pytest.mark.parametrize("name", OLD)


def old_state(shapes, seed=0):
    """Values for the names; those of one parameter are the same."""
    generator = torch.Generator().manual_seed(seed)
    values = {name: torch.randn(shape, generator=generator) * 0.1 for name, shape in shapes.items()}
    homes = dict(HYBRID) if "dis_head.A.0.0.weight" in values else {}
    for within, part in itertools.product(("", "actor_critic."), ("actor", "critic")):
        shared = f"{within}encoder.main.0.weight" in values
        encoder = "encoder" if shared else f"{part}_encoder"
        homes[f"{within}{part}.0"] = within + encoder
        homes[f"{within}{part}.1"] = f"{within}{part}_head"
    for alias, own in homes.items():
        for name in [n for n in values if n.startswith(f"{alias}.")]:
            twin = values.get(own + name.removeprefix(alias))
            values[name] = values[name] if twin is None else twin.clone()
    return values


@EACH
def test_names_and_shapes_are_the_old_ones(name):
    make, shapes = OLD[name]
    state = with_old_names(make())
    assert {name: list(value.shape) for name, value in state.items()} == shapes


@EACH
def test_old_states_load_and_come_out_again(name):
    make, shapes = OLD[name]
    state = old_state(shapes)
    model = make()
    given = dict(state)
    model.load_state_dict(given)
    assert given.keys() == state.keys()
    again = with_old_names(model)
    for key in state:
        if not key.endswith("_eps"):
            assert torch.equal(again[key], state[key]), key


@EACH
def test_each_parameter_stands_once_in_what_the_model_itself_gives(name):
    model = OLD[name][0]()
    state = model.state_dict()
    assert len({value.data_ptr() for value in state.values()}) == len(state)


@EACH
def test_optimisers_count_the_parameters_in_the_order_of_the_names(name):
    make, shapes = OLD[name]
    names = [n for n, _ in make().named_parameters()]
    assert names == [n for n in shapes if n in set(names)]


def _mlp(x, state, *names):
    for name in names:
        x = F.relu(F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"]))
    return x


def _last(x, state, name):
    return F.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def _encode(x, state, name="encoder"):
    return _mlp(x, state, f"{name}.init", f"{name}.main.0", f"{name}.main.2")


OBS = torch.randn(7, 4, generator=torch.Generator().manual_seed(3))


def loaded(name):
    make, shapes = OLD[name]
    model, state = make(), old_state(shapes)
    model.load_state_dict(state)
    return model.eval(), state


def test_a_dueling_dqn_computes_what_it_did():
    model, state = loaded("dqn dueling")
    x = _encode(OBS, state)
    a = _last(_mlp(x, state, "head.A.0.0"), state, "head.A.1.0")
    v = _last(_mlp(x, state, "head.V.0.0"), state, "head.V.1.0")
    torch.testing.assert_close(model(OBS)["logit"], v + a - a.mean(1, keepdim=True))


def test_a_vac_computes_what_it_did():
    model, state = loaded("vac two encoders")
    output = model(OBS, mode="compute_actor_critic")
    x = _encode(OBS, state, "actor.0")
    logit = _last(_mlp(x, state, "actor.1.Q.0.0"), state, "actor.1.Q.1.0")
    torch.testing.assert_close(output["logit"], logit)
    x = _encode(OBS, state, "critic.0")
    value = _last(_mlp(x, state, "critic.1.main.0"), state, "critic.1.last")
    torch.testing.assert_close(output["value"], value.squeeze(1))


def test_a_qac_computes_what_it_did():
    model, state = loaded("qac regression")
    x = _mlp(OBS, state, "actor_head.0", "actor_head.2.main.0")
    action = _last(x, state, "actor_head.2.last").tanh()
    torch.testing.assert_close(model(OBS, mode="compute_actor")["action"], action)
    x = _mlp(torch.cat([OBS, action], 1), state, "critic_head.0", "critic_head.2.main.0")
    q = model({"obs": OBS, "action": action}, mode="compute_critic")["q_value"]
    torch.testing.assert_close(q, _last(x, state, "critic_head.2.last").squeeze(1))


def test_a_drqn_computes_an_lstm_with_layer_norm():
    model, state = loaded("drqn")
    norm = [(state[f"rnn.norm.{i}.weight"], state[f"rnn.norm.{i}.bias"]) for i in range(2)]
    h = c = torch.zeros(7, 64)
    states = None
    for _ in range(3):
        output = model({"obs": OBS, "prev_state": states}, inference=True)
        states = output["next_state"]
        x = _encode(OBS, state) @ state["rnn.wx.0"]
        gates = F.layer_norm(x, [256], *norm[0]) + state["rnn.bias"]
        gates = gates + F.layer_norm(h @ state["rnn.wh.0"], [256], *norm[1])
        i, f, o, u = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * u.tanh()
        h = o.sigmoid() * c.tanh()
    torch.testing.assert_close(torch.cat([s["h"][0] for s in states]), h)
    a = _last(_mlp(h, state, "head.A.0.0"), state, "head.A.1.0")
    v = _last(_mlp(h, state, "head.V.0.0"), state, "head.V.1.0")
    torch.testing.assert_close(output["logit"], v + a - a.mean(1, keepdim=True))


def test_what_is_missing_and_left_over_stands_in_one_message():
    model, (_, shapes) = VAC(4, 2), OLD["vac"]
    state = old_state(shapes)
    for name in ("encoder.init.bias", "actor.0.init.bias", "critic.0.init.bias"):
        del state[name]
    state["head.V.weight"] = torch.zeros(1)
    with pytest.raises(RuntimeError, match=r"(?s)encoder\.init\.bias.*head\.V\.weight"):
        model.load_state_dict(state)


def test_names_through_the_actor_alone_are_enough():
    make, shapes = OLD["vac"]
    state = old_state(shapes)
    model = make()
    model.load_state_dict(
        {k: v for k, v in state.items() if k.split(".")[0] in ("actor", "critic")}
    )
    assert torch.equal(model.encoder.init.bias, state["encoder.init.bias"])


def test_one_parameter_with_two_values_is_refused():
    make, shapes = OLD["vac"]
    state = old_state(shapes)
    state["actor.0.init.bias"] += 1
    with pytest.raises(RuntimeError, match=r"actor\.0\.init\.bias and encoder\.init\.bias"):
        make().load_state_dict(state)
