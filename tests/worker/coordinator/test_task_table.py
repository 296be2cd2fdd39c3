"""Tasks make only the transitions that are allowed."""

import pytest

from ding.worker.coordinator.task_table import MEMORY, MOVES, STAGES, TaskState, TaskTable

WAYS = {
    "queued": [],
    "assigned": ["assigned"],
    "running": ["assigned", "running"],
    "closing": ["assigned", "running", "closing"],
    "done": ["assigned", "running", "closing", "done"],
    "failed": ["assigned", "failed"],
    "timed_out": ["timed_out"],
}


@pytest.mark.parametrize("start", STAGES)
@pytest.mark.parametrize("goal", STAGES)
def test_only_the_moves_of_the_table_are_made(start, goal):
    table = TaskTable()
    table.add("collector", {"task_id": "a"})
    for stage in WAYS[start]:
        assert table.move("a", stage)
    assert table.get("a").stage == start
    assert table.move("a", goal) is (goal in MOVES[start])
    assert table.get("a").stage == (goal if goal in MOVES[start] else start)


def test_kinds_and_stages_are_distinguished():
    table = TaskTable()
    table.add("collector", {"task_id": "c"})
    table.add("learner", {"task_id": "l"})
    table.move("l", "assigned", "learner0")
    assert [t.task_id for t in table.live("collector")] == ["c"]
    assert [t.task_id for t in table.live()] == ["c", "l"]
    assert table.queued("learner") == []
    table.move("l", "queued")
    assert [t.task_id for t in table.queued("learner")] == ["l"]
    assert table.get("c", "learner") is None
    assert table.get(["c"]) is None
    assert table.move("unknown", "assigned") is False


@pytest.mark.parametrize("task", [{}, {"task_id": ""}, {"task_id": 3}])
def test_a_task_needs_an_id(task):
    with pytest.raises(ValueError, match="task_id"):
        TaskTable().add("collector", task)


def test_an_open_task_is_not_added_again():
    table = TaskTable()
    table.add("collector", {"task_id": "a"})
    with pytest.raises(ValueError, match="queued"):
        table.add("collector", {"task_id": "a"})
    table.move("a", "timed_out")
    assert table.add("collector", {"task_id": "a"}).stage == "queued"


def test_old_tasks_are_forgotten_after_a_while():
    table = TaskTable()
    for number in range(MEMORY + 10):
        table.add("collector", {"task_id": str(number)})
        table.move(str(number), "timed_out")
    assert table.get("0") is None
    assert table.get(str(MEMORY + 9)) is not None
    assert table.counts()["timed_out"] == MEMORY + 10


def test_tasks_that_were_open_are_known_and_have_failed_after_a_restart():
    table = TaskTable()
    table.add("collector", {"task_id": "a", "buffer_id": "b"})
    table.add("collector", {"task_id": "d"})
    table.move("d", "timed_out")
    other = TaskTable()
    other.load_state_dict(table.state_dict())
    assert other.get("a").stage == "failed"
    assert other.get("a").buffer_id == "b"
    assert other.counts()["failed"] == 1
    assert other.counts()["timed_out"] == 1
    assert other.live() == []


def test_task_state():
    state = TaskState("a")
    assert (state.task_id, state.stage, state.is_eval) == ("a", "queued", False)
    assert TaskState("a", task={"collector_cfg": {"eval_flag": True}}).is_eval
