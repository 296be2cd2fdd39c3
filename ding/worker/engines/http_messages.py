"""The messages of a run as JSON objects for HTTP, compatible with DI-engine's workers.

::

    name                    rest of the request         answer
    resource                                            {cpu, gpu, ours?, ...}
    {kind}_start_task       task_info                   {message, ...}
    {kind}_close_task                                   the report: {task_id, ...}
    collector_data_task     wait?, quota?, gather?      [chunk, ..., progress], or one of them
    learner_open_meeting                                {host, port, name}, for ranks other than 0
    learner_get_data_task   wait?                       {task_id, batch_size, cur_learner_iter, ...}
    learner_learn_task      data, wait?                 {task_id, info}

``data`` is ``{"chunks": [...], "draws", "envstep", "env_statistics"?}``, or a list of rows for a
foreign learner. Foreign workers report one item per answer, without ``ours``. Keys without a field
in the message's class are stored in its ``info``, ``meta`` or ``others``.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from ding.interaction.slave import TaskFail
from ding.utils.json_fields import BadMessageError, from_json, json_object, to_json
from ding.worker.error_report import ErrorReport
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    DemandRequest,
    Json,
    Kind,
    OpenMeeting,
    Request,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TrainAnswer,
    TrainRequest,
    answer_type,
)
from ding.worker.seams import NonsenseAnswer

Answer = TypeVar("Answer")
JsonObject = Mapping[str, Json]
#: Required fields of a task.
_TASK_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "collector": ("task_id", "buffer_id", "collector_cfg"),
    "learner": (),
}

#: The requests that a worker of a kind supports, by name.
_REQUESTS: Mapping[Kind, Mapping[str, type[Request[Any]]]] = {
    "collector": {
        "resource": ResourceRequest,
        "collector_start_task": StartTask,
        "collector_data_task": SamplesRequest,
        "collector_close_task": CloseTask,
    },
    "learner": {
        "resource": ResourceRequest,
        "learner_open_meeting": OpenMeeting,
        "learner_start_task": StartTask,
        "learner_get_data_task": DemandRequest,
        "learner_learn_task": TrainRequest,
        "learner_close_task": CloseTask,
    },
}

# ---------------------------------------------------------------------- requests


def request_name(request: Request[Answer]) -> str:
    """The name of a request in JSON."""
    for kind in [request.kind] if isinstance(request, StartTask | CloseTask) else _REQUESTS:
        for name, known in _REQUESTS[kind].items():
            if type(request) is known:
                return name
    raise TypeError(f"{type(request).__name__} is no request to a worker")


def request_to_json(request: Request[Answer]) -> dict[str, Json]:
    """The JSON object of a request."""
    name: dict[str, Json] = {"name": request_name(request)}
    match request:
        case StartTask(info=info):
            return {**name, "task_info": cast(Json, info)}
        case SamplesRequest() | DemandRequest() | ResourceRequest():
            return {**name, **to_json(request)}
        case TrainRequest(rows=rows, wait=wait):
            data = to_json(dataclasses.replace(request, rows=None, wait=None))
            waits: dict[str, Json] = {} if wait is None else {"wait": wait}
            return {**name, "data": data if rows is None else [*map(dict, rows)], **waits}
    return name


def request_from_json(kind: Kind, body: Mapping[str, object]) -> Request[object]:
    """The request that was sent to a worker of a kind.

    Raises:
        TaskFail: The worker does not support it, or a field is missing or invalid.
    """
    name, requests = str(body.get("name")), _REQUESTS[kind]
    if name not in requests:
        known = ", ".join(requests)
        raise _refused("UnknownTask", f"unknown task {name!r:.80}; a {kind} knows {known}")
    wanted = requests[name]
    if wanted is TrainRequest:
        return _train_request(body)
    try:
        if wanted is StartTask:
            return StartTask(kind, _task_info(kind, body))
        return from_json(wanted, {**body, "kind": kind})
    except BadMessageError as error:
        raise _refused("BadTask", f"{name}: {error}") from error


def _task_info(kind: Kind, body: Mapping[str, object]) -> Mapping[str, object]:
    info = body.get("task_info")
    if not isinstance(info, dict):
        raise BadMessageError(f"task_info is a {type(info).__name__}, expected an object")
    missing = [field for field in _TASK_FIELDS[kind] if field not in info]
    if missing:
        raise BadMessageError(f"task_info came without {', '.join(missing)}")
    return info


def _train_request(body: Mapping[str, object]) -> TrainRequest:
    data, wait = body.get("data"), body.get("wait")
    if not isinstance(data, dict):
        came = type(data).__name__
        expected = "expected an object with chunks and draws: a learner has its own replay buffer"
        raise _refused("BadTask", f"learner_learn_task: data is a {came}, {expected}")
    try:
        return from_json(TrainRequest, {**data, "wait": wait})
    except BadMessageError as error:
        raise _refused("DataError", f"what came to train on is damaged: {error}") from error


def _refused(kind: str, text: str) -> TaskFail:
    return ErrorReport(kind, text).task_fail()


# ---------------------------------------------------------------------- answers


def answer_to_json(request: Request[Answer], answer: Answer) -> Json:
    """A worker's answer in JSON."""
    match request, answer:
        case StartTask(kind=kind, info=info), _:
            started: dict[str, Json] = {"message": f"the {kind} task has started"}
            if kind == "learner":
                started.update(_ids(info))
            return started
        case SamplesRequest(), SamplesAnswer(chunks=chunks, progress=progress):
            return [*map(to_json, chunks), *([] if progress is None else [progress.as_json()])]
        case TrainRequest(), TrainAnswer():
            info = answer.as_json()
            return {**_ids(info), "info": info}
    return to_json(answer)


def answer_from_json(request: Request[Answer], body: object) -> Answer:
    """A worker's answer to a request.

    Raises:
        NonsenseAnswer: The body is not an answer to the request.
    """
    try:
        return cast(Answer, _answer(request, body))
    except BadMessageError as error:
        raise NonsenseAnswer(f"{request_name(request)}: {error}") from error


def _answer(request: Request[Answer], body: object) -> object:
    match request:
        case StartTask():
            return None
        case ResourceRequest():
            # Foreign workers may send text instead of a count, which the minimum replaces.
            given = json_object(body)
            unclear = [name for name in ("cpu", "gpu") if type(given.get(name)) is not int]
            return from_json(Resources, {"ours": False, **given, **dict.fromkeys(unclear)})
        case SamplesRequest():
            items = [json_object(item) for item in (body if isinstance(body, list) else [body])]
            progress = [item for item in items if "data_id" not in item]
            return SamplesAnswer(
                tuple(from_json(ChunkReport, item) for item in items if "data_id" in item),
                from_json(CollectProgress, progress[-1]) if progress else None,
            )
        case TrainRequest():
            whole = json_object(body)
            return from_json(TrainAnswer, {**json_object(whole.get("info")), **_ids(whole)})
    return from_json(answer_type(type(request)), body)


def _ids(message: Mapping[str, object]) -> dict[str, Json]:
    """The task ids in a message."""
    return {name: cast(Json, message.get(name)) for name in ("task_id", "buffer_id")}
