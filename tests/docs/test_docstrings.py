"""Docstrings as editors show them: examples that run, and something for every public method."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import ding

#: The names that users look up most, by the module that they import them from.
MOST_USED = {
    "ding": "load plot.returns RunCallback",
    "ding.config": "compile_config read_config",
    "ding.data": "Columns DequeBuffer",
    "ding.entry": """
        serial_pipeline serial_pipeline_onpolicy serial_pipeline_offline parallel_pipeline eval
        collect_demo_data
    """,
    "ding.envs": """
        BaseEnv BaseEnv.step BaseEnvTimestep DingEnvWrapper BaseEnvManager
        AsyncSubprocessEnvManager SyncSubprocessEnvManager SubprocessEnvManagerV2
        create_env_manager get_vec_env_setting
    """,
    "ding.model": "DQN VAC ContinuousQAC create_model model_wrap",
    "ding.policy": """
        Policy DQNPolicy C51Policy IQNPolicy RainbowDQNPolicy PPOPolicy A2CPolicy DDPGPolicy
        TD3Policy SACPolicy create_policy single_env_forward_wrapper modes.learn_function
        modes.collect_function modes.eval_function
    """,
    "ding.rl_utils": "gae get_epsilon_greedy_fn q_nstep_td_error",
    "ding.torch_utils": "to_device to_ndarray to_tensor",
    "ding.utils": "Registry deep_merge_dicts set_pkg_seed",
    "ding.worker": """
        BaseLearner LearnerHook learner.register_learner_hook SampleSerialCollector
        EpisodeSerialCollector InteractionSerialEvaluator AdvancedReplayBuffer NaiveReplayBuffer
        BaseSerialCommander create_buffer create_learner create_serial_collector
        create_serial_evaluator
    """,
}
NAMES = [f"{module}.{name}" for module, names in MOST_USED.items() for name in names.split()]


def find(name):
    module = max((one for one in MOST_USED if name.startswith(f"{one}.")), key=len)
    return pkgutil.resolve_name(f"{module}:{name[len(module) + 1 :]}")


class IgnoreLogs(doctest.OutputChecker):
    """What a run logs on the way to a result is not part of an example."""

    def check_output(self, want, got, optionflags):
        return not want or super().check_output(want, got[-len(want) :], optionflags)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_runs(name, tmp_path, monkeypatch):
    if name == "ding.plot.returns":
        pytest.importorskip("matplotlib", reason="pip install ding[plot]")
    monkeypatch.chdir(tmp_path)
    (example,) = doctest.DocTestFinder(recurse=False).find(find(name), name, globs={})
    assert example.examples
    result = doctest.DocTestRunner(IgnoreLogs()).run(example)
    assert not result.failed


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_described(name):
    found = find(name)
    classes = inspect.getmro(found) if inspect.isclass(found) else [found]
    text = f"{found.__init__.__doc__}\n" if classes[1:] else ""
    text += "\n".join(str(cls.__doc__) for cls in classes if cls is not object)
    if re.search(r"rguments.* those of\s+`[\w.]+`", text):
        return
    for parameter in inspect.signature(found).parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            assert parameter.name in (*text.replace("`", " ").replace(":", " ").split(), "self")


def public_classes():
    """The classes that packages offer."""
    root = Path(ding.__file__).parent
    for stub in sorted(root.rglob("__init__.pyi")):
        package = importlib.import_module(".".join(("ding", *stub.parent.relative_to(root).parts)))
        for value in map(package.__getattr__, package.__all__):
            if inspect.isclass(value) and value.__module__.startswith("ding."):
                yield value


def test_public_methods_have_docstrings():
    methods = {
        f"{cls.__module__}.{cls.__qualname__}.{name}": getattr(cls, name)
        for cls in public_classes()
        for name, value in vars(cls).items()
        if name[0] != "_"
        and (isinstance(value, classmethod | staticmethod | property) or inspect.isfunction(value))
    }
    assert len(methods) > 500
    assert [name for name, method in methods.items() if not inspect.getdoc(method)] == []


def test_public_classes_have_a_first_sentence():
    for cls in public_classes():
        first = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
        assert first.endswith(".") or ". " in first or ":" in first, cls
