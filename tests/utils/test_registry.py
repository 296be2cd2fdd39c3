import importlib
import sys
import types

import pytest

from ding.utils import POLICY_REGISTRY, Registry, registries
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import DuplicateTypeError, UnknownTypeError
from tests.public_names import importable_modules


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.label, registry.import_key = "toy", "create_config.toy.import_names"
    return registry


def test_register_as_decorator_get_and_build(registry):
    @registry.register("pair")
    class Pair:
        def __init__(self, a, b=0):
            self.sum = a + b

    assert registry.get("pair") is registry["pair"] is Pair
    assert registry.build("pair", 1, b=2).sum == 3
    assert "pair" in registry
    assert isinstance(registry, dict)


def test_name_defaults_to_that_of_the_object_and_module_can_be_passed(registry):
    registry.register(module=dict)
    registry.register("mapping", dict)
    assert registry.get("dict") is registry.get("mapping") is dict


def test_duplicate_is_refused_unless_overwritten(registry):
    registry.register("x", int)
    with pytest.raises(DuplicateTypeError, match=r"'x' is already registered, by .*\.py:\d+"):
        registry.register("x", float)
    with pytest.raises(AssertionError):
        registry.register("x")(float)
    assert registry.get("x") is int
    registry.register("x", float, force_overwrite=True)
    assert registry.get("x") is float


def test_two_local_classes_of_one_name_are_duplicates(registry):
    @registry.register("x")
    class Same:
        pass

    with pytest.raises(DuplicateTypeError):

        @registry.register("x")
        class Same:
            pass


def test_a_module_may_be_executed_again(registry, tmp_path):
    file = tmp_path / "my_types.py"
    code = compile("@registry.register('mine')\nclass Mine: pass\n", str(file), "exec")
    for name in ("__main__", "my_types", "my_types"):
        exec(code, {"registry": registry, "__name__": name})
    assert registry.get("mine").__module__ == "my_types"


def test_unknown_name_error_has_registry_neighbours_and_fix(registry):
    registry.register("cartpole", int)
    with pytest.raises(UnknownTypeError) as caught:
        registry.build("cartpol")
    message = str(caught.value)
    assert "toy type 'cartpol'" in message
    assert "did you mean 'cartpole'" in message
    assert "create_config.toy.import_names" in message
    with pytest.raises(KeyError):
        registry["nothing"]


def test_derived_names_follow_what_they_are_derived_from(registry):
    registry.derive("_text", "builtins", "repr")
    registry.register("x", int)
    assert registry["x_text"] == repr(int)
    registry.register("x", float, force_overwrite=True)
    assert registry["x_text"] == repr(float)
    assert registry.origin("x_text") == registry.origin("x")
    registry.register("x_text", bool)
    registry.register("x", str, force_overwrite=True)
    assert registry["x_text"] is bool


def test_a_type_in_place_of_a_built_in_one_is_derived_from(registry):
    registry.derive("_text", "builtins", "repr")
    registry.register_lazy("x", "ding.nowhere")
    registry.register_lazy("x_text", "ding.nowhere")
    registry.register("x", int, force_overwrite=True)
    assert registry["x_text"] == repr(int)


def test_query_and_details(registry):
    registry.register("a", int)
    registry.register("b", float)
    assert list(registry.query()) == ["a", "b"]
    assert list(registry.query_details(["b"])) == ["b"]
    file, line = registry.query_details()["a"].rsplit(":", 1)
    assert file == __file__
    assert int(line) > 0


@pytest.fixture
def lazy_module(registry, monkeypatch):
    """A module `toy_home` that registers `ToyType` as 'toy' when it is executed."""

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name != "toy_home":
                return None
            return types.SimpleNamespace(
                name=name, loader=Finder, origin=None, parent="", has_location=False,
                submodule_search_locations=None, cached=None, _initializing=False,
            )  # fmt: skip

        @staticmethod
        def create_module(spec):
            return None

        @staticmethod
        def exec_module(module):
            source = "@registry.register('toy')\nclass ToyType: pass\n"
            module.registry = registry
            exec(compile(source, "toy_home.py", "exec"), module.__dict__)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    registry.register_lazy("toy", "toy_home")
    yield
    sys.modules.pop("toy_home", None)


@pytest.mark.usefixtures("lazy_module")
class TestLazy:
    def test_imported_on_first_use(self, registry):
        assert "toy" in registry
        assert list(registry.query()) == ["toy"]
        assert "toy_home" not in sys.modules
        assert registry.get("toy").__name__ == "ToyType"
        assert registry.query_details()["toy"] == "toy_home.py:1"

    def test_a_users_type_cannot_take_the_name_silently(self, registry):
        with pytest.raises(DuplicateTypeError, match="toy_home"):
            registry.register("toy", int)

    def test_a_users_overwrite_survives_the_late_import_of_the_built_in(self, registry):
        registry.register("toy", int, force_overwrite=True)
        __import__("toy_home")
        assert registry.get("toy") is int

    def test_where_built_in_types_give_way_a_users_is_taken(self, registry):
        registry.gives_way = True
        assert registry.get("toy").__name__ == "ToyType"
        registry.register("toy", int)
        assert registry.get("toy") is int
        with pytest.raises(DuplicateTypeError, match="'toy' is already registered"):
            registry.register("toy", float)


def test_module_that_does_not_register_what_was_announced(registry):
    registry.register_lazy("x", "json")
    with pytest.raises(UnknownTypeError, match="importing json was to register"):
        registry.get("x")


def test_the_registries():
    assert len(registries) == 19
    assert registries["policy"] is POLICY_REGISTRY
    assert set(BUILTIN_TYPES) <= set(registries)


@pytest.mark.parametrize(
    ("label", "name"), [(label, name) for label, types in BUILTIN_TYPES.items() for name in types]
)
def test_every_built_in_name_leads_to_its_type(label, name):
    if (label, name) == ("engine", "ray"):
        pytest.importorskip("ray", reason="the extra 'ray' is not installed")
    assert callable(registries[label].get(name))


def test_every_type_of_the_package_is_known_before_its_module_is_imported():
    for module in importable_modules():
        importlib.import_module(module)
    for label, registry in registries.items():
        known = set(BUILTIN_TYPES.get(label, {}))
        ours = {n for n, t in registry.items() if t.__module__.startswith("ding.")}
        # What is derived from a type is found by way of that.
        assert {n for n in ours if n.removesuffix("_command") not in known} <= known, label
