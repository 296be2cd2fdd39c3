"""Reading and saving config files."""

import math
import os.path
import pathlib

import numpy as np
import pytest
from easydict import EasyDict

from ding.config import (
    Config,
    read_config,
    read_config_directly,
    read_config_yaml,
    save_config,
    save_config_formatted,
    save_project_state,
)
from ding.utils.errors import ConfigError

VALUES = EasyDict(
    inf=float("inf"),
    minus=-math.inf,
    small=1e-5,
    pair=(1, 2),
    single=(3,),
    empty=[],
    nothing=None,
    text='it\'s "quoted"\n',
    scalar=np.float32(0.5),
    whole=np.int64(3),
    flag=np.bool_(True),
    array=np.arange(3),
    path=pathlib.PurePosixPath("a/b"),
    nested=dict(deeper=dict(list=[dict(a=1), dict(b=[1, (2, 3)])])),
)


def write(path, text):
    path.write_text(text)
    return str(path)


def check_values(read):
    assert read["inf"] == math.inf
    assert read["minus"] == -math.inf
    assert read["small"] == 1e-5
    assert read["text"] == VALUES.text
    assert (read["scalar"], read["whole"], read["flag"]) == (0.5, 3, True)
    assert type(read["whole"]) is int
    assert read["array"] == [0, 1, 2]
    assert read["path"] == "a/b"
    assert read["nothing"] is None
    assert read["nested"]["deeper"]["list"][0] == dict(a=1)


def test_python_round_trip(tmp_path):
    path = str(tmp_path / "new" / "config.py")
    save_config(VALUES, path)
    read = read_config_directly(path)["exp_config"]
    check_values(read)
    assert (read["pair"], read["single"]) == ((1, 2), (3,))
    assert read["nested"]["deeper"]["list"][1]["b"] == [1, (2, 3)]


def test_yaml_round_trip(tmp_path):
    path = str(tmp_path / "config.yaml")
    save_config(VALUES, path, type_="yaml")
    read = read_config_yaml(path)
    check_values(read)
    assert read.pair == [1, 2]
    assert read.nested.deeper.list[0].a == 1


def test_formatted_is_written_next_to_it(tmp_path):
    save_config(dict(seed=3, policy=dict(on_policy=True)), str(tmp_path / "c.py"), "py", True)
    main, create = read_config(str(tmp_path / "formatted_c.py"))
    assert main.seed == 3
    assert create == {}
    text = (tmp_path / "formatted_c.py").read_text()
    assert "serial_pipeline_onpolicy([main_config, create_config], seed=3)" in text


def test_unknown_kind_of_file(tmp_path):
    with pytest.raises(ConfigError, match="'py' or 'yaml', got 'json'"):
        save_config({}, str(tmp_path / "c.json"), type_="json")


def test_classes_and_functions_are_imported(tmp_path):
    path = str(tmp_path / "formatted.py")
    save_config_formatted(dict(wrappers=[os.path.join, pathlib.Path]), path)
    main, _ = read_config(path)
    assert main.wrappers == [os.path.join, pathlib.Path]


def test_saved_values_are_read_as_they_were(tmp_path):
    values = dict(
        numbers=[float("inf"), float("-inf"), 1e-4, 3, True, None],
        few=(1,),
        none=((), [], {}, set()),
        some=[{1, 2}, frozenset(["a"]), range(3), b"x", {os.path.join}],
        text="it's " + "long " * 40,
        many=list(range(100)),
        deep=dict(a=dict(b=dict(c=[dict(d=(1, 2))]))),
    )
    path = str(tmp_path / "c.py")
    save_config(dict(main_config=values, seed=0), path)
    assert read_config_directly(path)["exp_config"]["main_config"] == values
    assert max(map(len, (tmp_path / "c.py").read_text().splitlines())) <= 110


def test_what_cannot_be_written_is_said(tmp_path):
    path = str(tmp_path / "formatted.py")
    save_config_formatted(dict(env=dict(wrapper=lambda env: env, size=3)), path)
    with pytest.raises(ConfigError, match=r"main_config.env.wrapper was <function"):
        read_config(path)
    with pytest.raises(ConfigError, match=r"YAML cannot hold <function"):
        save_config(dict(env=dict(wrapper=lambda env: env)), path, type_="yaml")


def test_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("old: 1\n")
    with pytest.raises(ConfigError):
        save_config(dict(a=object()), str(path), type_="yaml")
    assert path.read_text() == "old: 1\n"


def test_project_state(tmp_path):
    save_project_state(str(tmp_path / "run"))
    assert (tmp_path / "run" / "git.txt").read_text()


def test_reads_python(tmp_path):
    path = write(
        tmp_path / "c.py",
        "import os\nfrom neighbour import size\n_hidden = 1\n"
        "def helper(): pass\n"
        "main_config = dict(env=dict(size=size))\ncreate_config = {}\n"
        "if __name__ == '__main__':\n    raise SystemExit('must not run')\n",
    )
    write(tmp_path / "neighbour.py", "size = 7\n")
    assert read_config(path) == (dict(env=dict(size=7)), {})
    assert set(read_config_directly(path)) == {"size", "main_config", "create_config"}
    config = Config.file_to_dict(path)
    assert config.cfg_dict["size"] == 7


def test_reads_yaml(tmp_path):
    path = write(
        tmp_path / "c.yaml",
        "main_config: {policy: {learn: {learning_rate: 1e-3, eps: 5E-08, name: e3, n: 12}}}\n"
        "create_config: {}\n",
    )
    main, _ = read_config(path)
    assert main.policy.learn == dict(learning_rate=0.001, eps=5e-8, name="e3", n=12)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("c.py", "main_config = dict(\n  a=1,\n  b=\n)\n", r"c\.py:\d: "),
        ("c.py", "x = 1\nmain_config = y\n", r"c\.py:2: NameError: name 'y' is not defined"),
        ("c.py", "import no_such_module_here\n", r"c\.py:1: ModuleNotFoundError"),
        ("c.py", "main_config = {}\n", r"does not define create_config \(it defines main_config"),
        ("c.py", "", r"does not define main_config and create_config \(it defines nothing\)"),
        ("c.yaml", "a: [1, 2\nb: 3\n", r"c\.yaml:2: not YAML"),
        ("c.yaml", "- 1\n", "holds a list; expected a mapping"),
        ("c.json", "{}", r"must end in \.py, \.yaml or \.yml"),
    ],
)
def test_bad_file(tmp_path, name, text, expected):
    with pytest.raises(ConfigError, match=expected):
        read_config(write(tmp_path / name, text))


def test_missing_file(tmp_path):
    with pytest.raises(ConfigError, match=r"config file '.*/nope.py' is missing"):
        read_config(str(tmp_path / "nope.py"))
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(ConfigError, match="is a folder"):
        read_config(str(tmp_path / "folder.py"))


def test_config_holds_a_dict():
    with pytest.raises(ConfigError, match="must be a dict, got int"):
        Config(3)
