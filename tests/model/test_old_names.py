"""Checkpoints of DI-engine: the names of parameters, and what is computed from them."""

import math

import pytest
import torch
from torch.nn import functional as F

from ding.model import BDQ, IQN, PDQN, VAC
from tests.old_checkpoints import OLD, old_state

EACH = pytest.mark.parametrize("name", OLD)


@EACH
def test_old_states_load(name):
    make, shapes = OLD[name]
    state = old_state(shapes)
    model, given = make(), dict(state)
    model.load_state_dict(given)
    assert given.keys() == state.keys()
    own = model.state_dict()
    for key in state.keys() & own.keys():
        # An encoder that old networks do not use.
        assert key.startswith("dis_encoder.") or torch.equal(own[key], state[key]), key


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


# ---------------------------------------------------------------------- other forms of a network


def test_an_iqn_embeds_with_the_old_multiples():
    model, state = loaded("iqn")
    output = model(OBS)
    torch.testing.assert_close(output["q"], old_iqn(OBS, output["tau"], state))


def old_iqn(obs, tau, state):
    """Quantiles ``[B, N, Q]``: cosines of the multiples 1 to n."""
    multiples = torch.arange(1, 129) * math.pi
    embedding = _mlp(torch.cos(tau * multiples), state, "head.iqn_fc")
    x = _encode(obs, state).unsqueeze(1) * embedding
    return _last(_mlp(x, state, "head.Q.0.0"), state, "head.Q.1.0").transpose(1, 2)


def test_a_bdq_divides_what_its_encoder_gives():
    model, state = loaded("bdq")
    x = _encode(OBS, state) / 3

    def part(name):
        names = [f"{name}.0.{i}" for i in (0, 2, 4)]
        return _last(_mlp(x, state, *names), state, f"{name}.1.0")

    a = torch.stack([part("head.branches.0"), part("head.branches.1")], 1)
    logit = part("head.V").unsqueeze(1) + a - a.mean(-1, keepdim=True)
    for training in (True, False):
        torch.testing.assert_close(model.train(training)(OBS)["logit"], logit)


@pytest.mark.parametrize("multi_pass", [False, True])
def test_both_networks_of_a_pdqn_encode_with_one_encoder(multi_pass):
    _, shapes = OLD["pdqn"]
    state = old_state(shapes)
    action_shape = {"action_type_shape": 3, "action_args_shape": 2}
    model = PDQN(4, action_shape, multi_pass=multi_pass)
    model.load_state_dict(state)
    x = _encode(OBS, state, "cont_encoder")
    args = _last(_mlp(x, state, "cont_head.main.0"), state, "cont_head.last").tanh()
    torch.testing.assert_close(model(OBS, mode="compute_continuous")["action_args"], args)

    def values(args):
        y = torch.cat([x, args], 1)
        a = _last(_mlp(y, state, "dis_head.A.0.0"), state, "dis_head.A.1.0")
        v = _last(_mlp(y, state, "dis_head.V.0.0"), state, "dis_head.V.1.0")
        return v + a - a.mean(1, keepdim=True)

    wanted = values(args)
    if multi_pass:
        own = [args * torch.eye(3, 2)[i] for i in range(3)]
        wanted = torch.stack([values(own[i])[:, i] for i in range(3)], 1)
    inputs = {"state": OBS, "action_args": args}
    torch.testing.assert_close(model(inputs, mode="compute_discrete")["logit"], wanted)


def test_an_edac_has_its_critics_side_by_side():
    model, state = loaded("edac")
    action = torch.rand(7, 2) * 2 - 1
    q_value = model({"obs": OBS, "action": action}, mode="compute_critic")["q_value"]
    x = torch.cat([OBS, action], 1)
    first, last = (state[f"critic.pred.{i}.0.weight"].squeeze(-1) for i in (0, 1))
    for k in range(3):
        rows = slice(64 * k, 64 * (k + 1))
        hidden = F.relu(F.linear(x, first[rows], state["critic.pred.0.0.bias"][rows]))
        wanted = hidden @ last[k] + state["critic.pred.1.0.bias"][k]
        torch.testing.assert_close(q_value[k], wanted)
    x = _mlp(OBS, state, "actor.0", "actor.2.main.0")
    mu, sigma = model(OBS, mode="compute_actor")["logit"]
    torch.testing.assert_close(mu, _last(x, state, "actor.2.mu"))
    log_sigma = _last(x, state, "actor.2.log_sigma_layer")
    torch.testing.assert_close(sigma, log_sigma.clamp(-20, 2).exp())


def team():
    """One step of two teams of two agents: observations, actions, and memories after it."""
    generator = torch.Generator().manual_seed(4)
    obs = {
        "agent_state": torch.randn(3, 2, 6, generator=generator),
        "global_state": torch.randn(3, 8, generator=generator),
    }
    return obs, torch.tensor([[0, 4], [1, 2], [3, 3]])


def agents_step(obs, state, name):
    """Memories and values of agents after their first step."""
    x = _mlp(obs["agent_state"], state, f"{name}.encoder.init", f"{name}.encoder.main.0")
    cell = torch.nn.GRUCell(32, 32)
    cell.load_state_dict({k: state[f"{name}.rnn.{k}"] for k in cell.state_dict()})
    with torch.no_grad():
        hidden = cell(x.flatten(0, 1), torch.zeros(6, 32)).view(3, 2, 32)
    return hidden, _last(_mlp(hidden, state, f"{name}.head.Q.0.0"), state, f"{name}.head.Q.1.0")


def test_a_qtran_judges_joint_actions_as_it_did():
    model, state = loaded("qtran")
    obs, action = team()
    output = model({"obs": obs, "action": action})
    hidden, q = agents_step(obs, state, "_q_network")
    torch.testing.assert_close(output["logit"], q)
    chosen = q.gather(-1, action.unsqueeze(-1)).sum((-1, -2))
    torch.testing.assert_close(output["total_q"], chosen)
    pairs = torch.cat([hidden, F.one_hot(action, 5).float()], -1)
    pairs = _last(_mlp(pairs, state, "action_encoding.0"), state, "action_encoding.2").sum(1)
    x = torch.cat([obs["global_state"], pairs], -1)
    joint = _last(_mlp(x, state, "Q.0", "Q.2"), state, "Q.4").squeeze(-1)
    torch.testing.assert_close(output["joint_q"], joint)
    value = _last(_mlp(obs["global_state"], state, "V.0", "V.2"), state, "V.4").squeeze(-1)
    torch.testing.assert_close(output["value"], value)


def test_a_wqmix_mixes_freely_as_it_did():
    model, state = loaded("wqmix")
    obs, action = team()
    output = model({"obs": obs, "action": action})
    for name, key in (("_q_network", "logit"), ("_q_network_star", "free_logit")):
        torch.testing.assert_close(
            output.get(key, output["logit"]), agents_step(obs, state, name)[1]
        ) if key in output else None
    _, q = agents_step(obs, state, "_q_network_star")
    chosen = q.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    x = torch.cat([chosen, obs["global_state"]], -1)
    names = [f"_mixer_star.net.{i}" for i in (0, 2, 4)]
    mixed = _last(_mlp(x, state, *names), state, "_mixer_star.net.6")
    value = _last(_mlp(obs["global_state"], state, "_mixer_star.V.0"), state, "_mixer_star.V.2")
    torch.testing.assert_close(output["free_q"], (mixed + value).squeeze(-1))


#: Networks that compute in another form here, and their outputs.
@pytest.mark.parametrize("make", [lambda: IQN(4, 3), lambda: BDQ(4, 2, 3), lambda: BDQ(4, 1, 2, 0)])
class TestTwoForms:
    def test_own_states_load_as_they_are(self, make):
        model, again = make().eval(), make().eval()
        again.load_state_dict(model.state_dict())
        assert torch.equal(again(OBS)["logit"], model(OBS)["logit"])
