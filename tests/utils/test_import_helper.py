import subprocess
import sys

import pytest

from ding.config import read_config_directly
from ding.utils import ENV_REGISTRY, import_module
from ding.utils.import_helper import run_config_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("toy_import")]:
        del sys.modules[name]


def test_imports_each(folder):
    (folder / "toy_import_a.py").write_text("")
    import_module(["toy_import_a", "json"])
    assert "toy_import_a" in sys.modules


def test_missing_module_differs_from_missing_import_of_it(folder):
    with pytest.raises(ModuleNotFoundError, match=r"no module 'toy_import_b'.*import_names"):
        import_module(["toy_import_b.sub"])
    (folder / "toy_import_c.py").write_text("import toy_import_gone")
    with pytest.raises(ImportError, match=r"'toy_import_c': it exists.*toy_import_gone"):
        import_module(["toy_import_c"])
    (folder / "toy_import_d.py").write_text("from json import nothing_like_that")
    with pytest.raises(ImportError, match=r"it exists.*nothing_like_that"):
        import_module(["toy_import_d"])


@pytest.mark.parametrize("names", [[None], [""], [3]])
def test_wrong_names(names):
    with pytest.raises(TypeError, match="import_names"):
        import_module(names)


TYPE = """
from ding.utils import ENV_REGISTRY

@ENV_REGISTRY.register("toy_import_env")
class ToyEnv:
    number = {number}
"""


def test_a_config_file_brings_its_own_class_after_another_one_of_that_name(tmp_path):
    files = [tmp_path / name for name in ("first.py", "second.py")]
    for number, file in enumerate(files):
        file.write_text(TYPE.format(number=number))
        read_config_directly(str(file))
    for number, file in enumerate(files):
        import_module([str(file)])
        assert ENV_REGISTRY.get("toy_import_env").number == number
    known = ENV_REGISTRY.get("toy_import_env")
    import_module([str(files[1])])
    assert ENV_REGISTRY.get("toy_import_env") is known
    del ENV_REGISTRY["toy_import_env"]


def test_start_up_loads_nothing_heavy(pytestconfig):
    code = (
        "import sys, ding, ding.utils; from ding.utils import POLICY_REGISTRY, import_module; "
        "print([m for m in ('torch', 'gymnasium', 'tensorboardX') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def neighbours(tmp_path, monkeypatch):
    """Folders with a config each, whose modules have the same names."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for number, name in enumerate(["first", "second"]):
        folder = tmp_path / name
        (folder / "toy_import_pack").mkdir(parents=True)
        (folder / "toy_import_pack" / "__init__.py").write_text("")
        (folder / "toy_import_pack" / "inner.py").write_text(f"number = {number}\n")
        (folder / "toy_import_e.py").write_text(TYPE.format(number=number))
        (folder / "config.py").write_text(
            "import toy_import_e\nfrom toy_import_pack.inner import number\n"
            "kind = toy_import_e.ToyEnv\n"
        )
        (folder / "run").mkdir()
        (folder / "run" / "saved.py").write_text(
            f"import sys\n\nsys.path.append({str(folder)!r})\n"
        )
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("toy_import")]:
        del sys.modules[name]


def test_config_files_of_two_folders_have_neighbours_of_their_own(neighbours):
    for number, name in [(0, "first"), (1, "second"), (0, "first")]:
        config = run_config_file(neighbours / name / "config.py")
        assert (config["number"], config["kind"].number) == (number, number)
        assert ENV_REGISTRY.get("toy_import_env") is config["kind"]


def test_saved_configs_have_neighbours_of_their_own(neighbours):
    for number, name in [(0, "first"), (1, "second"), (0, "first")]:
        run_config_file(neighbours / name / "run" / "saved.py")
        import_module("toy_import_e")
        assert ENV_REGISTRY.get("toy_import_env").number == number


def test_a_config_and_its_saved_form_share_their_neighbours(neighbours):
    config = run_config_file(neighbours / "first" / "config.py")
    run_config_file(neighbours / "first" / "run" / "saved.py")
    import_module("toy_import_e")
    assert sys.modules["toy_import_e"].ToyEnv is config["kind"]


def test_a_config_keeps_modules_that_it_has_no_others_of(neighbours):
    run_config_file(neighbours / "first" / "config.py")
    known = sys.modules["toy_import_e"]
    (neighbours / "second" / "toy_import_e.py").unlink()
    (neighbours / "second" / "config.py").write_text("import json\n")
    run_config_file(neighbours / "second" / "config.py")
    assert sys.modules["toy_import_e"] is known
