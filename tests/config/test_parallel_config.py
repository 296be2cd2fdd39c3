"""Parallel configs: completed, checked, placed and saved."""

import copy
import os
import runpy
import socket
from pathlib import Path

import pytest
from easydict import EasyDict

from ding.config import (
    compile_config_parallel,
    parallel_transform,
    read_config_with_system,
    save_config,
    utils as config_utils,
)
from ding.config.check import Notes
from ding.config.compile import (
    complete_parallel,
    is_parallel,
    serial_form,
)
from ding.config.read import read_compiled
from ding.config.utils import (
    parallel_test_main_config,
    place_parts,
    set_collector_interaction_for_coordinator,
    set_host_port,
    set_learner_interaction_for_coordinator,
    set_system_cfg,
)
from ding.utils.errors import ConfigError, UnknownTypeError


def test_a_compiled_config_has_an_entry_for_each_worker(configs):
    before = copy.deepcopy(configs)
    cfg = compile_config_parallel(*configs, seed=3)
    assert before == configs
    assert cfg.main.seed == 3
    assert cfg.main.policy.type == "dqn_command"
    assert cfg.main.policy.collect.collector.type == "zergling"
    assert cfg.main.policy.collect.collector.update_policy_second > 0
    assert cfg.main.policy.other.commander.type == "naive"
    assert cfg.main.policy.eval.evaluator.n_episode == 1
    system = cfg.system
    assert {"learner0", "learner1", "collector0", "collector1"} <= set(system)
    assert system.collector0.type == system.learner0.type == "flask_fs"
    assert system.collector0.path_data == "parallel_test/data"
    assert system.learner0.send_policy_freq == 1
    for kind in ("learner", "collector"):
        for name, (same, host, port) in system.coordinator[kind].items():
            assert (name, host, port) == (same, system[name].host, system[name].port)
            assert host == "127.0.0.1"
    ports = [system[name].port for name in ("learner0", "learner1", "collector0", "collector1")]
    ports.append(system.coordinator.port)
    assert len(set(ports)) == 5
    assert all(isinstance(port, int) for port in ports)
    assert system.coordinator.collector_task_timeout == 30
    assert system.coordinator.learner_task_timeout == 600


def test_ports_and_hosts_that_are_given(configs):
    cfg = compile_config_parallel(
        *configs,
        save_cfg=False,
        coordinator_host="10.255.0.1",
        learner_host="10.255.0.2",
        collector_host="10.255.0.3, 10.255.0.4",
        coordinator_port=7000,
        learner_port=7100,
        collector_port=7200,
    )
    assert (cfg.system.coordinator.host, cfg.system.coordinator.port) == ("10.255.0.1", 7000)
    assert cfg.system.coordinator.learner == {
        "learner0": ["learner0", "10.255.0.2", 7100],
        "learner1": ["learner1", "10.255.0.2", 7101],
    }
    assert cfg.system.coordinator.collector == {
        "collector0": ["collector0", "10.255.0.3", 7200],
        "collector1": ["collector1", "10.255.0.4", 7201],
    }


def test_a_worker_on_another_host_without_a_port_joins(configs):
    cfg = compile_config_parallel(
        *configs, save_cfg=False, coordinator_port=7000, learner_host="10.255.0.2"
    )
    assert cfg.system.learner0.port == "auto"
    assert cfg.system.learner0.coordinator == ["127.0.0.1", 7000]
    assert cfg.system.coordinator.learner == {}
    assert cfg.system.collector0.coordinator is None


def test_settings_of_single_workers(configs):
    configs[2].collector1 = dict(port=7999, path_data="elsewhere")
    cfg = compile_config_parallel(*configs, save_cfg=False)
    assert cfg.system.coordinator.collector.collector1[2] == 7999
    assert cfg.system.collector1.path_data == "elsewhere"
    assert cfg.system.collector0.path_data == "parallel_test/data"


def test_defaults_for_whatever_is_not_named(configs):
    main, create, _ = configs
    for name in ("learner", "collector", "commander", "comm_learner", "comm_collector"):
        del create[name]
    cfg = compile_config_parallel(main, create, {}, save_cfg=False)
    assert cfg.main.policy.other.commander.type == "solo"
    assert cfg.main.policy.collect.collector.type == "zergling"
    assert cfg.system.path_data == os.path.join("parallel_test", "data")
    assert cfg.system.collector0.type == "flask_fs"


def test_saved_configs_can_be_read_and_run_again(configs):
    cfg = compile_config_parallel(*configs)
    assert read_compiled("parallel_test/total_config.py") == cfg
    again = read_config_with_system("parallel_test/formatted_total_config.py")
    recompiled = compile_config_parallel(*again, save_cfg=False)
    assert recompiled.main == cfg.main
    assert recompiled.system.coordinator.learner.keys() == cfg.system.coordinator.learner.keys()
    assert "learner0" not in again[2]
    assert "parallel_pipeline" in Path("parallel_test/formatted_total_config.py").read_text()
    runpy.run_path("parallel_test/formatted_total_config.py")


def test_a_file_without_a_system_config():
    save_config(EasyDict(parallel_test_main_config), "total.py")
    Path("two.py").write_text("main_config = {}\ncreate_config = {}\n")
    assert read_config_with_system("two.py") == ({}, {}, {})
    Path("one.py").write_text("main_config = {}\nsystem_config = {}\n")
    with pytest.raises(ConfigError, match="does not define create_config"):
        read_config_with_system("one.py")
    with pytest.raises(ConfigError, match=r"no compiled parallel config.*-M config"):
        read_compiled("total.py")


def test_workers_that_join_have_no_ports(configs):
    cfg = complete_parallel(*configs, joining=True)
    assert cfg.system.learner0.port == "auto"
    assert cfg.system.coordinator.learner == cfg.system.coordinator.collector == {}


def test_a_folder_that_exists_gets_another_name_and_its_data_too(configs):
    os.makedirs("parallel_test")
    cfg = complete_parallel(*configs, joining=True)
    name = cfg.main.exp_name
    assert name.startswith("parallel_test_")
    assert cfg.system.path_data == cfg.system.coordinator.path_data == f"{name}/data"
    assert cfg.system.collector0.path_policy == f"{name}/policy"
    assert cfg.system.collector0.exp_name == name
    configs[0].policy.learn.resume_training = True
    assert complete_parallel(*configs, joining=True).main.exp_name == "parallel_test"


@pytest.mark.parametrize(
    ("where", "key", "nearest"),
    [
        ("0.policy.collect.collector", "colector_num", "collector_num"),
        ("0.policy.collect.collector", "update_policy_seconds", "update_policy_second"),
        ("0.policy.learn.learner", "learner_nums", "learner_num"),
        ("0.policy.learn.learner", "send_policy_frequency", "send_policy_freq"),
        ("0.policy.other.commander", "eval_intervall", "eval_interval"),
        ("0.policy.other.commander", "colector_task_space", "collector_task_space"),
        ("0.env", "collector_episode_nums", "collector_episode_num"),
        ("2", "path_polcy", "path_policy"),
        ("2", "learner_gpu", "learner_gpu_num"),
        ("2.coordinator", "colector_task_timeout", "collector_task_timeout"),
        ("2.collector0", "prt", "port"),
    ],
)
def test_misspelt_keys_are_reported_with_their_path(configs, where, key, nearest):
    number, *way = where.split(".")
    section = configs[int(number)]
    for name in way:
        section = section.setdefault(name, {})
    section[key] = 1
    path = ".".join([*([] if number == "0" else ["system_config"]), *way])
    with pytest.raises(ConfigError) as error:
        compile_config_parallel(*configs, save_cfg=False, strict=True)
    assert f"unknown key {path}.{key}: did you mean {path}.{nearest}?" in str(error.value)


def test_unknown_keys_are_noted_and_kept(configs):
    main, create, system = configs
    main.policy.curiosity = 0.1
    create.referee = dict(type="strict")
    system.cluster = dict(nodes=3)
    system.collector0 = dict(nice=3)
    notes = Notes()
    config = complete_parallel(*configs, notes=notes, joining=True)
    assert set(notes.unknown) == {
        *("policy.curiosity", "create_config.referee"),
        *("system_config.cluster", "system_config.collector0.nice"),
    }
    assert config.main.policy.curiosity == 0.1
    assert config.system.cluster.nodes == 3
    system.path_polici = system.pop("path_policy")
    with pytest.raises(ConfigError, match=r"path_polici: did you mean system_config\.path_policy"):
        complete_parallel(*configs, joining=True)


def test_a_slip_at_a_wrong_place_is_reported_with_the_right_one(configs):
    main, _, _ = configs
    main.policy.learn.nsetp = 3
    main.policy.learn.eval_frq = 10
    notes = Notes()
    configs[2].update(collector_num=0, colector_num=2)
    complete_parallel(*configs, notes=notes, joining=True)
    for name in ("collector_num", "colector_num"):
        place = "policy.collect.collector.collector_num"
        assert notes.unknown[f"system_config.{name}"] == place
    assert notes.unknown["policy.learn.nsetp"] == "policy.nstep"
    assert "policy.eval.evaluator.eval_freq" in notes.unknown["policy.learn.eval_frq"]


def test_each_collector_has_work_unless_the_config_says_otherwise(configs):
    main, _, _ = configs
    main.policy.collect.collector.collector_num = 5
    main.policy.other.pop("commander")
    assert complete_parallel(*configs).main.policy.other.commander.collector_task_space == 5
    main.policy.other.commander = dict(collector_task_space=2)
    notes = Notes()
    cfg = complete_parallel(*configs, notes=notes)
    assert cfg.main.policy.other.commander.collector_task_space == 2
    assert "3 collectors wait until others are lost" in notes.text


def test_no_space_for_collectors_and_a_list_of_goals(configs):
    main, create, _ = configs
    create.commander.update(type="one_vs_one")
    main.policy.other.commander = dict(collector_task_space=0)
    main.env.stop_value = [10, 5]
    cfg = compile_config_parallel(*configs, save_cfg=False)
    assert cfg.main.policy.other.commander.collector_task_space == 0
    assert cfg.main.env.stop_value == [10, 5]


def test_a_league_may_collect_with_one_player(configs):
    configs[1].commander.update(type="one_vs_one")
    assert configs[1].collector.type == "zergling"
    cfg = compile_config_parallel(*configs, save_cfg=False)
    assert cfg.main.policy.collect.collector.type == "zergling"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m, c, s: c.commander.update(type="sollo"), "did you mean 'solo'"),
        (lambda m, c, s: c.collector.update(type="sample"), "no parallel collector type 'sample'"),
        (lambda m, c, s: c.comm_learner.update(type="flask"), "no comm learner type 'flask'"),
        (
            lambda m, c, s: c.update(replay_buffer=dict(type="prioritized")),
            "use 'advanced' with policy.priority=True",
        ),
    ],
)
def test_unknown_types(configs, spoil, words):
    spoil(*configs)
    with pytest.raises(UnknownTypeError, match=words):
        compile_config_parallel(*configs, save_cfg=False)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda m, c, s: (c.commander.update(type="solo"), c.collector.update(type="marine")),
            r"needs policy.collect.collector.type='zergling', got 'marine'",
        ),
        (
            lambda m, c, s: c.update(policy=dict(type="ppo")),
            r"parallel mode learns from a replay buffer",
        ),
        (
            lambda m, c, s: m.policy.learn.learner.update(learner_num=0),
            "policy.learn.learner.learner_num must be at least 1, got 0",
        ),
        (
            lambda m, c, s: s.update(learner_gpu_num="2"),
            "system_config.learner_gpu_num must be an integer, got str '2'",
        ),
        (
            lambda m, c, s: s.coordinator.update(port=70000),
            "system_config.coordinator.port must be 'auto' or a number",
        ),
        (
            lambda m, c, s: s.coordinator.update(heartbeat_span=9),
            "heartbeat_tolerance=.* must be greater than .*heartbeat_span=9",
        ),
        (
            lambda m, c, s: s.update(communication_mode="carrier"),
            "system_config.communication_mode must be 'auto', got 'carrier'",
        ),
        (
            lambda m, c, s: c.update(policy=dict(type="discrete_cql")),
            r"learns from a data set.*`ding -m serial_offline`",
        ),
        (
            lambda m, c, s: c.update(policy=dict(type="dqfd")),
            r"learns from an expert's steps.*`ding -m serial_dqfd`",
        ),
        (lambda m, c, s: s.update(max_restart=-1), "system_config.max_restart must be 0 or more"),
        (
            lambda m, c, s: s.update(coordinator=dict(samples_per_insert="as_serial")),
            "system_config.coordinator.samples_per_insert is 'as_serial': expected a positive",
        ),
        (
            lambda m, c, s: s.update(
                coordinator=dict(samples_per_insert=8, samples_per_insert_tolerance=2)
            ),
            "samples_per_insert_tolerance=2.0: expected at least samples_per_insert=8",
        ),
    ],
)
def test_contradictions(configs, spoil, words):
    spoil(*configs)
    with pytest.raises(ConfigError, match=words):
        compile_config_parallel(*configs, save_cfg=False)


def test_the_processes_of_a_learner_join_the_coordinator(configs):
    configs[2].learner_gpu_num = 2
    cfg = compile_config_parallel(*configs, save_cfg=False)
    assert list(cfg.system.coordinator.learner) == [f"learner{i}" for i in range(4)]
    assert cfg.system.learner3.multi_gpu
    cfg = complete_parallel(*configs)
    place_parts(cfg, (None, None, None), joining=True)
    assert cfg.system.learner2.coordinator == ["127.0.0.1", cfg.system.coordinator.port]


def test_the_steps_of_parallel_transform(configs):
    cfg = complete_parallel(*configs)
    by_steps = copy.deepcopy(cfg)
    set_system_cfg(by_steps)
    set_host_port(by_steps, "127.0.0.1", "127.0.0.1", None)
    set_learner_interaction_for_coordinator(by_steps)
    set_collector_interaction_for_coordinator(by_steps)
    at_once = parallel_transform(cfg, "127.0.0.1", ["127.0.0.1"])
    assert at_once.system.keys() == by_steps.system.keys() == cfg.system.keys()
    assert list(at_once.system.coordinator.collector) == ["collector0", "collector1"]


@pytest.mark.parametrize("platform", ["slurm", "k8s"])
def test_workers_on_a_cluster_join_instead(configs, platform):
    with pytest.raises(ConfigError, match=r"ding worker --join HOST:PORT"):
        compile_config_parallel(*configs, platform=platform)


def test_a_port_that_is_free(configs):
    cfg = compile_config_parallel(*configs, save_cfg=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", cfg.system.coordinator.port))


def test_the_serial_form(configs):
    main, create, _ = configs
    assert is_parallel(create)
    serial_main, serial_create = serial_form(main, create)
    assert not is_parallel(serial_create)
    assert "collector" not in serial_main["policy"]["collect"]
    assert "collector" in main.policy.collect


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("operator_server", {"system_addr": "operator:80"}, "join"),
        ("buffer", "learner", "in the learner's process"),
    ],
)
def test_keys_without_a_meaning_are_reported(configs, key, value, reason):
    main, create, system = configs
    system.setdefault("coordinator", {})[key] = value
    notes = Notes()
    complete_parallel(main, create, system, notes=notes)
    assert reason in notes.unused[f"system_config.coordinator.{key}"]
    assert not notes.unknown


@pytest.mark.parametrize(
    ("type_", "nstep", "words"),
    [
        ("her", 1, "adds transitions that no chunk has"),
        ("gail", 1, "demonstrations, which the serial pipelines"),
        ("rnd", 3, r"set policy\.nstep=1, got 3"),
    ],
)
def test_reward_models_that_a_parallel_run_cannot_have(configs, type_, nstep, words):
    main, create, system = configs
    main.policy.nstep = nstep
    main.reward_model = dict(type=type_)
    with pytest.raises(ConfigError, match=words):
        compile_config_parallel(main, create, system, seed=0)
    main.policy.nstep = 1
    main.reward_model = dict(type="icm")
    cfg = compile_config_parallel(main, create, system, seed=0)
    assert cfg.main.reward_model.type == "icm"


@pytest.mark.parametrize(
    "name",
    [
        *("set_host_port_slurm", "set_host_port_k8s"),
        *("parallel_transform_slurm", "parallel_transform_k8s"),
    ],
)
def test_host_lists_of_clusters_name_what_to_do_instead(name):
    with pytest.raises(ConfigError, match="ding worker --join HOST:PORT"):
        getattr(config_utils, name)({}, None, None, None)
