"""Workers are assigned in order, once."""

import pytest

from ding.worker import NaiveResourceManager


@pytest.mark.parametrize("kind", ["collector", "learner"])
def test_workers_are_given_out_in_order(kind):
    manager = NaiveResourceManager()
    assign = getattr(manager, f"assign_{kind}")
    assert assign({}) is None
    manager.update(kind, "a", {"cpu": 1})
    manager.update(kind, "b", {"cpu": 2})
    assert assign({}) == {f"{kind}_id": "a", "resource_info": {"cpu": 1}}
    assert manager.have_assigned(kind, "a") is True
    assert manager.have_assigned(kind, "b") is False
    manager.update(kind, "a", {"cpu": 3})
    assert manager.have_assigned(kind, "a") is False
    assert assign({})[f"{kind}_id"] == "b"
    assert assign({}) == {f"{kind}_id": "a", "resource_info": {"cpu": 3}}
    assert assign({}) is None


def test_deleted_workers_are_gone_and_others_stay():
    manager = NaiveResourceManager()
    manager.update("collector", "a", {})
    manager.update("collector", "b", {})
    assert manager.delete("collector", "a") is True
    assert manager.delete("collector", "a") is False
    assert manager.delete("learner", "b") is False
    assert manager.assign_collector({})["collector_id"] == "b"
    assert manager.delete("collector", "b") is True
    assert manager.have_assigned("collector", "b") is False


def test_unknown_kind():
    with pytest.raises(KeyError, match="printer"):
        NaiveResourceManager().have_assigned("printer", "a")
