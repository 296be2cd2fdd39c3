"""Runs with rewards that are learned from demonstrations."""

import json

import numpy as np
import pytest
import torch
from easydict import EasyDict

from ding.entry import (
    serial_pipeline_bco,
    serial_pipeline_gail,
    serial_pipeline_guided_cost,
    serial_pipeline_reward_model_offpolicy,
    serial_pipeline_reward_model_onpolicy,
    serial_pipeline_sqil,
    serial_pipeline_trex,
    trex_collecting_data,
)
from ding.entry.run.watch import RunWatch
from ding.entry.serial_entry_reward_model import GailPipeline, TrexPipeline
from ding.utils import read_file, save_file
from ding.utils.errors import ConfigError, DataError
from tests.entry import test_serial_bco as bco, test_serial_sqil as sqil
from tests.entry.runs import walk_config
from tests.entry.test_serial_dqfd import CREATE, ENV
from tests.entry.test_serial_sqil import RepeatedWalkEnv, step

SMALL = dict(
    gail=dict(hidden_size=8, batch_size=8, update_per_collect=2, collect_count=40),
    guided_cost=dict(hidden_size=8, batch_size=8, update_per_collect=2, collect_count=40),
    pwil=dict(collect_count=40, subsample=4),
    trex=dict(hidden_size_list=[8, 1], num_snippets=64, collect_count=400, min_snippet_length=2),
)
SMALL["drex"] = SMALL["trex"]
ENTRIES = dict(
    gail=serial_pipeline_gail,
    guided_cost=serial_pipeline_guided_cost,
    trex=serial_pipeline_trex,
    drex=serial_pipeline_trex,
    sqil=serial_pipeline_sqil,
    bco=serial_pipeline_bco,
)
ENVIRONMENTS = [RepeatedWalkEnv, [{}, {}], [{}]]


def entry(type_, policy="dqn"):
    """The pipeline of a type; PWIL has those of all reward models."""
    onpolicy = policy == "ppo"
    usual = (
        serial_pipeline_reward_model_onpolicy
        if onpolicy
        else serial_pipeline_reward_model_offpolicy
    )
    return ENTRIES.get(type_, usual)


def config(folder, type_, policy="ppo", **reward_model):
    settings = dict(model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]))
    if policy == "ppo":
        settings["action_space"] = "discrete"
        settings["learn"] = dict(epoch_per_collect=2, batch_size=16)
        settings["collect"] = dict(n_sample=32)
    else:
        settings |= dict(nstep=1, collect=dict(n_sample=8))
        settings["learn"] = dict(batch_size=8, update_per_collect=2)
    section = {"type": type_, "expert_model_path": "zoo:cartpole_ppo", **SMALL[type_]}
    main = EasyDict(
        exp_name=str(folder), env=ENV, policy=settings, reward_model={**section, **reward_model}
    )
    created = dict(policy=dict(type=policy), reward_model=dict(type=type_))
    return main, EasyDict(CREATE, **created)


def end(folder):
    return json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize("policy", ["ppo", "dqn"])
@pytest.mark.parametrize("type_", ["gail", "trex", "drex", "pwil"])
def test_trains_on_and_off_policy(tmp_path, type_, policy):
    entry(type_, policy)(config(tmp_path / "run", type_, policy), max_train_iter=4)
    facts = end(tmp_path / "run")
    assert facts["train_iter"] >= 4
    assert "unknown_keys" not in facts
    assert "unused_keys" not in facts
    tag = "reward_model_iter/" + ("reward" if type_ == "pwil" else "loss")
    assert tag in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_an_experts_play_does_not_count_as_the_launch_of_environments(tmp_path, monkeypatch):
    events = []

    def stepping(watch, launches=False):
        events.append("launching" if launches else "stepping")

    monkeypatch.setattr(RunWatch, "stepping", stepping)
    monkeypatch.setattr(RunWatch, "rest", lambda watch: events.append("rest"))

    class Played(Exception):
        pass

    class Pipeline(GailPipeline):
        def outfit(self, parts):
            raise Played

    with pytest.raises(Played):
        Pipeline(config(tmp_path / "run", "gail"), 0).train(1)
    assert events[:2] == ["launching", "rest"]


def test_guided_cost_needs_the_policys_probabilities(tmp_path):
    serial_pipeline_guided_cost(config(tmp_path / "run", "guided_cost"), max_train_iter=4)
    assert end(tmp_path / "run")["train_iter"] >= 4
    with pytest.raises(ConfigError, match="no 'logit'"):
        serial_pipeline_guided_cost(
            config(tmp_path / "other", "guided_cost", "dqn"), max_train_iter=4
        )


def test_demonstrations_are_saved_and_read_again(tmp_path, capsys, monkeypatch):
    path = tmp_path / "data" / "expert.pkl"
    first = config(tmp_path / "run", "gail", data_path=str(path))
    serial_pipeline_gail(first, max_train_iter=1)
    assert len(read_file(str(path))) == 40
    main, create = config(tmp_path / "again", "gail", data_path=str(path), expert_model_path=None)
    serial_pipeline_gail((main, create), collect_data=False, max_train_iter=1)
    monkeypatch.setenv("DING_CONSOLE", "plain")
    main.reward_model.expert_model_path = "zoo:cartpole_ppo"
    serial_pipeline_gail((main, create), collect_data=False, max_train_iter=1)
    # A command would let the expert play, and write its steps over the file.
    assert "continue    in Python: the same call" in capsys.readouterr().out
    main.reward_model.update(expert_model_path=None, data_path=None)
    with pytest.raises(ConfigError, match="no demonstrations"):
        serial_pipeline_gail((main, create), max_train_iter=1)
    with pytest.raises(ConfigError, match=r"reward_model\.type is 'gail'"):
        serial_pipeline_trex((main, create), max_train_iter=1)


@pytest.mark.parametrize("type_", ["trex", "drex"])
def test_a_resumed_run_keeps_its_ranked_reward_model(tmp_path, monkeypatch, type_):
    played = []
    ranked = TrexPipeline.ranked
    monkeypatch.setattr(TrexPipeline, "ranked", lambda *args: played.append(1) or ranked(*args))
    models = []
    for number, checkpoint in enumerate(["", "", "ckpt/iteration_4.pth.tar"]):
        main, create = config(tmp_path / "run", type_)
        main.policy.learn.resume_training = number > 0
        if checkpoint:
            hook = dict(load_ckpt_before_run=str(tmp_path / "run" / checkpoint))
            main.policy.learn.learner = dict(hook=hook)
        serial_pipeline_trex((main, create), max_train_iter=4 * (number + 1))
        state = read_file(str(tmp_path / "run" / "ckpt" / "resume.pth.tar"))
        models.append(state["reward_model"]["networks"]["network"])
    assert played == [1]
    for name, tensor in models[0].items():
        assert all(torch.equal(tensor, other[name]) for other in models[1:])


WRONG = [
    (lambda row: row.pop("next_obs"), r"has no 'next_obs'"),
    (lambda row: row["obs"].fill(np.nan), "'obs' of the demonstrations .* has NaN"),
    (lambda row: row.update(obs=np.zeros(3, np.float32)), r"has the shape \[3\]"),
    (lambda row: row.update(obs={"a": row["obs"]}), r"'obs' .* has several arrays \(a\)"),
]
BAD_ACTION = (lambda row: row.update(action=np.array([5])), "'action' of the demonstrations")


@pytest.mark.parametrize(
    ("type_", "change", "message"),
    [*((type_, *one) for type_ in ("gail", "sqil", "bco") for one in WRONG), ("sqil", *BAD_ACTION)],
)
def test_demonstrations_that_do_not_fit_are_refused(tmp_path, type_, change, message):
    rows = [step(i) for i in range(8)]
    for row in rows:
        change(row)
    path, folder = str(tmp_path / "demonstrations.pkl"), tmp_path / "run"
    save_file(path, rows)
    if type_ == "gail":
        wrong = config(folder, type_, data_path=path, expert_model_path=None)
    elif type_ == "sqil":
        wrong, _ = sqil.configs(folder, collect=dict(data_path=path))
    else:
        wrong = bco.config(folder, data_path=path)
    with pytest.raises(DataError, match=message):
        entry(type_, "ppo")(wrong, max_train_iter=1)
    assert not folder.exists() or type_ == "gail"


def test_trajectories_of_a_runs_checkpoints(tmp_path):
    """As `trex_collecting_data` saves them, into a folder, and the pipeline finds them."""
    main, create = config(tmp_path / "expert", "gail")
    del main["reward_model"], create["reward_model"]
    main.policy.learn.learner = dict(hook=dict(save_ckpt_after_iter=4))
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy((main, create), max_train_iter=8)
    ranked = config(
        tmp_path / "run",
        "trex",
        expert_model_path=str(tmp_path / "expert"),
        offline_data_path=str(tmp_path / "data"),
        checkpoint_min=4,
        checkpoint_max=8,
        checkpoint_step=4,
    )
    trex_collecting_data(EasyDict(cfg=ranked, seed=1))
    rows = read_file(str(tmp_path / "data" / "demonstrations.pkl"))
    assert len(rows) == 400
    assert {float(row["noise"][0]) for row in rows} == {0.0}
    serial_pipeline_trex(ranked, max_train_iter=4)
    assert end(tmp_path / "run")["train_iter"] >= 4
    ranked[0].reward_model.update(checkpoint_min=100, checkpoint_max=200)  # there are none
    trex_collecting_data(EasyDict(cfg=ranked, seed=1))
    rows = read_file(str(tmp_path / "data" / "demonstrations.pkl"))
    assert {float(row["noise"][0]) for row in rows} == {0.0, 0.25, 0.5, 1.0}


def test_ranked_trajectories_depend_on_the_seed_alone(tmp_path):
    def actions(seed, name):
        path = str(tmp_path / name)
        args = EasyDict(cfg=config(tmp_path / "run", "drex", data_path=path), seed=seed)
        trex_collecting_data(args)
        return [int(row["action"]) for row in read_file(path)]

    first = actions(1, "first.pkl")
    torch.rand(1)  # something else that has drawn numbers before
    assert actions(1, "again.pkl") == first
    assert actions(2, "other.pkl") != first


@pytest.mark.parametrize("type_", ["gail", "guided_cost", "trex", "drex", "pwil", "sqil", "bco"])
def test_a_resumed_run_goes_on_in_the_same_way(tmp_path, type_):
    path = str(tmp_path / "demonstrations.pkl")
    save_file(path, walked())

    def part(folder, limit, resume=False):
        # Guided cost needs the probabilities of the policy's actions.
        policy = {"guided_cost": "ppo_offpolicy", "bco": "bc"}.get(type_, "dqn")
        main, create = walk_config(tmp_path / folder, policy=policy)
        given = {}
        main.policy.collect.n_sample = 20
        main.policy.learn.update(resume_training=resume)
        if policy == "dqn":
            main.policy.update(nstep=1)
        if type_ == "bco":
            main.bco = bco.BCO
            main.policy.collect.data_path = path
        else:
            main.policy.learn.update(update_per_collect=2)
        if type_ == "sqil":
            main.policy.expert_random_collect_size = 40
            given = dict(expert_cfg=(main, create), expert_model=sqil.Ones())
        elif type_ != "bco":
            main.reward_model = dict(type=type_, data_path=path, **SMALL[type_])
            create.reward_model = dict(type=type_)
        policy = entry(type_)(
            (main, create), env_setting=ENVIRONMENTS, max_train_iter=limit, **given
        )
        return policy.learn_mode.state_dict()["model"]

    one = part("whole", 12)
    part("parts", 6)
    two = part("parts", 12, resume=True)
    assert all(torch.equal(one[name], two[name]) for name in one)


def walked():
    """Two episodes of ten steps, of which the second is rewarded."""
    obs = np.random.default_rng(0).normal(size=(22, 3)).astype(np.float32)
    first = [i for i in range(21) if i != 10]
    return [
        {
            "obs": obs[i],
            "next_obs": obs[i + 1],
            "action": np.array([i % 2]),
            "reward": np.array([float(i > 10)], np.float32),
            "done": i in (9, 20),
            "noise": np.array([float(i < 10)], np.float32),
        }
        for i in first
    ]


def test_an_expert_of_its_own_network(tmp_path):
    main, create = walk_config(tmp_path / "run")
    main.policy.nstep = 1
    main.reward_model = dict(type="guided_cost", **SMALL["guided_cost"])
    create.reward_model = dict(type="guided_cost")
    with pytest.raises(ConfigError, match="no 'logit'"):  # of the policy; the expert has played
        serial_pipeline_guided_cost(
            (main, create), env_setting=ENVIRONMENTS, expert_model=sqil.Ones()
        )
