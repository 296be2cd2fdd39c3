"""Old checkpoints: names and shapes of parameters, and values for them."""

import itertools

import torch

from ding.model import (
    ACER,
    BDQ,
    C51DQN,
    DQN,
    DRQN,
    EDAC,
    FQF,
    IQN,
    MAVAC,
    PDQN,
    PG,
    PPG,
    QACDIST,
    QRDQN,
    VAC,
    ContinuousBC,
    ContinuousQAC,
    DiscreteBC,
    DiscreteQAC,
    QMix,
    QTran,
    RainbowDQN,
    WQMix,
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
    "encoder.0": "cont_encoder",
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


def deep(name, n_out):
    """A part of BDQ's head, which has three hidden layers."""
    hidden = [linear(f"{name}.0.{i}", 64, 64) for i in (0, 2, 4)]
    return {**hidden[0], **hidden[1], **hidden[2], **linear(f"{name}.1.0", n_out, 64)}


def agents(name, n_obs, n_actions):
    """The recurrent network of a team's agents."""
    return {
        **linear(f"{name}.encoder.init", 32, n_obs),
        **linear(f"{name}.encoder.main.0", 32, 32),
        **{f"{name}.rnn.weight_{kind}": [96, 32] for kind in ("ih", "hh")},
        **{f"{name}.rnn.bias_{kind}": [96] for kind in ("ih", "hh")},
        **branch(f"{name}.head.Q", n_actions, 32),
    }


def mixer(n_agents, n_state):
    return {
        **linear("_mixer.hyper_w_1.0", 64, n_state),
        **linear("_mixer.hyper_w_1.2", 32 * n_agents, 64),
        **linear("_mixer.hyper_w_final.0", 64, n_state),
        **linear("_mixer.hyper_w_final.2", 32, 64),
        **linear("_mixer.hyper_b_1", 32, n_state),
        **linear("_mixer.V.0", 32, n_state),
        **linear("_mixer.V.2", 1, 32),
    }


def layers(name, *sizes):
    """Linear layers with activations between them."""
    made = [linear(f"{name}.{2 * i}", b, a) for i, (a, b) in enumerate(itertools.pairwise(sizes))]
    return {key: shape for one in made for key, shape in one.items()}


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
    "fqf": (
        lambda: FQF(4, 2),
        {
            **encoder(),
            "head.sigma_pi": [1, 1, 128],
            **branch("head.Q", 2),
            **linear("head.fqf_fc.0", 64, 128),
            **linear("head.quantiles_proposal.0", 32, 64),
        },
    ),
    "bdq": (
        lambda: BDQ(4, 2, 3),
        {
            **encoder(),
            **deep("head.V", 1),
            **deep("head.branches.0", 3),
            **deep("head.branches.1", 3),
        },
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
            **agents("_q_network", 4, 2),
            **mixer(3, 6),
        },
    ),
    "qtran": (
        lambda: QTran(2, 6, 8, 5, [32, 32], 32),
        {
            **agents("_q_network", 6, 5),
            **layers("Q", 45, 32, 32, 1),
            **layers("V", 8, 32, 32, 1),
            **layers("action_encoding", 37, 37, 37),
        },
    ),
    "wqmix": (
        lambda: WQMix(2, 6, 8, 5, [32, 32]),
        {
            **agents("_q_network", 6, 5),
            **agents("_q_network_star", 6, 5),
            **mixer(2, 8),
            **layers("_mixer_star.net", 10, 256, 256, 256, 1),
            **layers("_mixer_star.V", 8, 256, 1),
        },
    ),
    "edac": (
        lambda: EDAC(4, 2, ensemble_num=3),
        {
            **through("actor", headed(gaussian("x", "log_sigma_layer")), 4),
            **linear("critic.pred.0.0", 192, 6, 1),
            **linear("critic.pred.1.0", 3, 64, 1),
        },
    ),
    "bc continuous": (
        lambda: ContinuousBC(4, 2, "regression"),
        through("actor", headed(regression("x", 2)), 4),
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
