import pytest

import ding
from ding.utils.callbacks import Callbacks, RunCallback, RunFinished, RunStarted
from ding.utils.errors import CallbackError, ConfigError

START = RunStarted("run", 0, 0, {})
END = RunFinished("run", 1, 1, "finished", "limit", None)


class Noted(RunCallback):
    """Records the events that it receives."""

    def __init__(self, above=0):
        self.above = above
        self.calls = []

    def on_start(self, event):
        self.calls.append(event)
        return event.env_step > 5

    def on_end(self, event):
        self.calls.append(event)


class Broken(RunCallback):
    def on_start(self, event):
        raise ValueError("no such table")

    def on_end(self, event):
        raise OSError("no route")


def test_the_class_is_to_be_had_from_the_package_itself():
    assert ding.RunCallback is RunCallback


def test_objects_classes_and_names_are_taken():
    one = Noted()
    callbacks = Callbacks([one, Noted], None, [f"{__name__}:Noted"], {f"{__name__}:Noted": {}})
    assert callbacks
    callbacks.notify(START)
    callbacks.end(END)
    callbacks.end(END)
    assert one.calls == [START, END]
    assert not Callbacks(None, [])


def test_arguments_by_name():
    callbacks = Callbacks({f"{__name__}:Noted": {"above": 3}})
    assert callbacks
    with pytest.raises(ConfigError, match=r"Noted with \{'below': 3\}.*unexpected"):
        Callbacks({f"{__name__}:Noted": {"below": 3}})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("StopAt", "expected a list of classes"),
        (["StopAt"], "expected 'module:Name'"),
        (["no_such_module:StopAt"], "no module 'no_such_module'"),
        ([f"{__name__}:StopAt"], "is no subclass of ding.RunCallback but None"),
        ([f"{__name__}:START"], "is no subclass of ding.RunCallback but RunStarted"),
        ([print], "is no subclass"),
        ({"a:B": 3}, "a dict of their arguments by name"),
    ],
)
def test_anything_else_is_refused_with_the_cure(given, words):
    with pytest.raises(ConfigError, match=words):
        Callbacks(given)


def test_true_asks_for_the_end_and_the_first_request_counts():
    callbacks = Callbacks([Noted(), Noted()])
    callbacks.notify(START)
    assert callbacks.request == ""
    callbacks.notify(RunStarted("run", 6, 0, {}))
    assert callbacks.request == "Noted.on_start asked for the end"


def test_what_one_raises_names_it_and_does_not_keep_the_end_from_others():
    last = Noted()
    callbacks = Callbacks([Broken(), last])
    with pytest.raises(CallbackError, match=r"Broken\.on_start: ValueError: no such table"):
        callbacks.notify(START)
    assert callbacks.end(END) == "Broken.on_end: OSError: no route"
    assert last.calls == [END]


def test_without_a_start_there_is_no_end():
    one = Noted()
    Callbacks([one]).end(END)
    assert one.calls == []
