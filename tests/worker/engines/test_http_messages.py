"""Messages survive the way over HTTP unchanged, and nonsense is rejected."""

import json

import pytest

from ding.interaction import TaskFail
from ding.worker.engines.http_messages import (
    answer_from_json,
    answer_to_json,
    request_from_json,
    request_to_json,
)
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TaskReport,
    TrainAnswer,
    TrainRequest,
)
from ding.worker.seams import NonsenseAnswer

TASK = {"task_id": "t", "buffer_id": "b", "collector_cfg": {"eval_flag": False}}
IDS = {"task_id": "t", "buffer_id": "b"}
NAMED = ChunkReport(
    *("c", None, None, 10),
    {"data_id": "c", "task_id": None, "buffer_id": None, "size": 10, "sample_num": 2, "number": 7},
)
STATISTICS = {"ObsNorm": {"count": 1.0, "mean": [0.0], "m2": [1.0]}}

REQUESTS = [
    ("collector", ResourceRequest()),
    ("collector", StartTask("collector", TASK)),
    ("collector", CloseTask("collector")),
    ("collector", SamplesRequest()),
    ("collector", SamplesRequest(0.5)),
    ("collector", SamplesRequest(0.5, 1000)),
    ("collector", SamplesRequest(4.0, None, gather=2.0)),
    ("learner", StartTask("learner", IDS)),
    ("learner", CloseTask("learner")),
    ("learner", DemandRequest()),
    ("learner", DemandRequest(0.5)),
    ("learner", TrainRequest(40, STATISTICS, wait=0.5, chunks=(NAMED,), draws=3)),
    ("learner", TrainRequest(40, wait=0.5)),
]


@pytest.mark.parametrize(("kind", "request_"), REQUESTS, ids=lambda part: str(part)[:40])
def test_requests_arrive_as_they_were_sent(kind, request_):
    body = json.loads(json.dumps(request_to_json(request_)))
    assert request_from_json(kind, body) == request_


PROGRESS = {"collector_done": True, "waiting": "space", "waiting_bytes": 9, "warning": "w"}
META = {"data_id": "c", "size": 100, "sample_num": 4, "cur_step": 8}
CHUNK = ChunkReport("c", "t", "b", 100, {**META, **IDS})
SAMPLES = SamplesAnswer(
    (CHUNK,), CollectProgress("t", True, "space", 9, "w", {**IDS, **PROGRESS, "cur_step": 8})
)
INFO = {
    **IDS,
    "learner_step": 5,
    "learner_done": False,
    "trained": 2,
    "batch_num": 3,
    "policy_iter": 4,
    "waiting": "data",
    "trouble": "slow disk",
    "warnings": ["w"],
    "bad_chunks": [["c", "gone"]],
    "priority_info": {"priority": [1.0]},
    "iters_per_second": 100.0,
    "error": "NaN",
    "received": [],
    "left": [],
    "own_rows": None,
    "starved": False,
}
TRAINED = TrainAnswer(
    *("t", "b", 5, False, 2, 3, 4, "data", "slow disk", "NaN", ("w",), (("c", "gone"),)),
    *({"priority": [1.0]}, INFO),
)
REPORT = {**IDS, "reward_mean": 1.0, "episode_info": [[0, 1.0, 8]]}
ANSWERS = [
    (ResourceRequest(), Resources(4, 1, True, {"node": "n"})),
    (ResourceRequest(), Resources(4, 1, False)),
    (StartTask("collector", TASK), None),
    (StartTask("learner", IDS), None),
    (CloseTask("collector"), TaskReport("t", REPORT)),
    (SamplesRequest(0.5), SAMPLES),
    (DemandRequest(0.5), Demand("t", 32, 5, 8, "b")),
    (DemandRequest(), Demand("t", 32, 5, buffer_id="b")),
    (TrainRequest((), wait=0.5), TRAINED),
]


@pytest.mark.parametrize(("request_", "answer"), ANSWERS, ids=lambda part: str(part)[:40])
def test_answers_arrive_as_they_were_given(request_, answer):
    body = json.loads(json.dumps(answer_to_json(request_, answer)))
    assert answer_from_json(request_, body) == answer


def test_foreign_workers_are_understood():
    row = {"data_id": "x", "priority": 1.0}
    assert request_to_json(TrainRequest(rows=(row,))) == {
        "name": "learner_learn_task",
        "data": [row],
    }
    assert answer_from_json(ResourceRequest(), {"gpu": 0}) == Resources(ours=False)
    facts = {"cpu": "20", "gpu": {"0": "some"}, "node": "n"}
    assert answer_from_json(ResourceRequest(), facts) == Resources(1, 0, False, {"node": "n"})
    answer = answer_from_json(SamplesRequest(), {**IDS, "data_id": "x", "unroll_len": 1})
    assert answer.chunks[0].meta["unroll_len"] == 1
    assert answer.progress is None
    demand = answer_from_json(DemandRequest(), {**IDS, "batch_size": 8, "cur_learner_iter": 3})
    assert demand == Demand("t", 8, 3, buffer_id="b")
    info = {"learner_step": 4, "learner_done": False, "priority_info": {"priority": [1.0]}}
    trained = answer_from_json(TrainRequest(rows=()), {**IDS, "info": info})
    assert (trained.learner_step, trained.trained, trained.info) == (4, None, {**IDS, **info})


NONSENSE = ["text", None, 7, [3], [[]]]


@pytest.mark.parametrize(
    ("request_", "bodies"),
    [
        (ResourceRequest(), NONSENSE),
        (CloseTask("learner"), NONSENSE),
        (SamplesRequest(0.5), [*NONSENSE, {"data_id": 7}, {"data_id": "x", "size": "y"}]),
        (
            DemandRequest(0.5),
            [*NONSENSE, {}, {"batch_size": "x"}, {"batch_size": 1, "batch_num": -1}],
        ),
        (
            TrainRequest(),
            [
                *(*NONSENSE, {}, {"info": 3}, {"info": {"priority_info": [1]}}),
                *({"info": {"bad_chunks": ["x"]}}, {"info": {"learner_step": float("inf")}}),
            ],
        ),
    ],
    ids=lambda part: type(part).__name__,
)
def test_nonsense_is_no_answer(request_, bodies):
    for body in bodies:
        with pytest.raises(NonsenseAnswer):
            answer_from_json(request_, body)


@pytest.mark.parametrize(
    ("kind", "body", "type_"),
    [
        ("collector", {"name": "learner_learn_task"}, "UnknownTask"),
        ("collector", {}, "UnknownTask"),
        ("collector", {"name": "collector_start_task"}, "BadTask"),
        ("collector", {"name": "collector_start_task", "task_info": IDS}, "BadTask"),
        ("collector", {"name": "collector_data_task", "wait": "x"}, "BadTask"),
        ("collector", {"name": "collector_data_task", "quota": -1}, "BadTask"),
        ("learner", {"name": "learner_start_task", "task_info": 3}, "BadTask"),
        ("learner", {"name": "learner_learn_task", "data": 3}, "BadTask"),
        ("learner", {"name": "learner_learn_task", "data": [{"data_id": "x"}]}, "BadTask"),
        ("learner", {"name": "learner_learn_task", "data": {"draws": -1}}, "DataError"),
    ],
)
def test_what_is_no_request_fails_with_its_cause(kind, body, type_):
    with pytest.raises(TaskFail) as caught:
        request_from_json(kind, body)
    assert caught.value.result["type"] == type_
