"""The messages of a run as the JSON objects that travel over HTTP, which DI-engine's workers know.

::

    name                    beside it in the request    answer
    resource                                            {cpu, gpu, ours?, ...}
    {kind}_start_task       task_info                   {message, ...}
    {kind}_close_task                                   the report: {task_id, ...}
    collector_data_task     wait?, quota?, gather?      [chunk, ..., progress]; one of them without
                                                        both
    learner_get_data_task   wait?                       {task_id, batch_size, cur_learner_iter, ...}
    learner_learn_task      data, wait?                 {task_id, info}

``data`` is ``{"batches": [...], "envstep", "env_statistics"?}``, or a list of rows for a learner
that knows of no chunks. Keys that a message's class has no field for stay in its ``info``, ``meta``
or ``others``.
"""

import math
from collections.abc import Mapping
from typing import TypeGuard, TypeVar, cast

from ding.interaction.slave import TaskFail
from ding.worker.messages import (
    ChunkReport,
    CloseTask,
    CollectProgress,
    Demand,
    DemandRequest,
    Json,
    Kind,
    Request,
    ResourceRequest,
    Resources,
    SamplesAnswer,
    SamplesRequest,
    StartTask,
    TaskReport,
    TrainAnswer,
    TrainRequest,
    WireBatch,
)
from ding.worker.seams import NonsenseAnswer

Answer = TypeVar("Answer")
JsonObject = Mapping[str, Json]
#: Fields that a task cannot do without.
_TASK_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "collector": ("task_id", "buffer_id", "collector_cfg"),
    "learner": (),
}
_NAMES: Mapping[Kind, tuple[str, ...]] = {
    "collector": (
        *("resource", "collector_start_task", "collector_data_task", "collector_close_task"),
    ),
    "learner": (
        *("resource", "learner_start_task", "learner_get_data_task", "learner_learn_task"),
        "learner_close_task",
    ),
}

# ---------------------------------------------------------------------- requests


def request_name(request: Request[Answer]) -> str:
    """What a request is called in JSON."""
    match request:
        case ResourceRequest():
            return "resource"
        case StartTask(kind=kind):
            return f"{kind}_start_task"
        case CloseTask(kind=kind):
            return f"{kind}_close_task"
        case SamplesRequest():
            return "collector_data_task"
        case DemandRequest():
            return "learner_get_data_task"
        case TrainRequest():
            return "learner_learn_task"
    raise TypeError(f"{type(request).__name__} is no request to a worker")


def request_to_json(request: Request[Answer]) -> dict[str, Json]:
    """The JSON object of a request."""
    body: dict[str, Json] = {"name": request_name(request)}
    match request:
        case StartTask():
            body["task_info"] = cast(Json, request.info)
        case SamplesRequest():
            _put(body, wait=request.wait, quota=request.quota, gather=request.gather)
        case DemandRequest():
            _put(body, wait=request.wait)
        case TrainRequest():
            body["data"] = _training_data(request)
            _put(body, wait=request.wait)
    return body


def _training_data(request: TrainRequest) -> Json:
    if request.rows is not None:
        return [dict(row) for row in request.rows]
    data: dict[str, Json] = {
        "batches": [dict(batch.wire) for batch in request.batches],
        "envstep": request.envstep,
    }
    if request.env_statistics is not None:
        data["env_statistics"] = dict(request.env_statistics)
    if request.chunks:
        data["chunks"] = [_chunk_json(chunk) for chunk in request.chunks]
    return data


def request_from_json(kind: Kind, body: Mapping[str, object]) -> Request[object]:
    """The request that a worker of a kind was sent.

    Raises:
        TaskFail: It is none of those, or a field is missing or wrong.
    """
    name = body.get("name")
    if name not in _NAMES[kind]:
        known = ", ".join(_NAMES[kind])
        raise _refused("UnknownTask", f"unknown task {name!r:.80}; a {kind} knows {known}")
    match name:
        case "resource":
            return ResourceRequest()
        case "collector_start_task" | "learner_start_task":
            return StartTask(kind, _task_info(kind, body))
        case "collector_close_task" | "learner_close_task":
            return CloseTask(kind)
        case "collector_data_task":
            quota = _amount(body, "quota")
            return SamplesRequest(
                _amount(body, "wait"),
                None if quota is None else int(quota),
                _amount(body, "gather"),
            )
        case "learner_get_data_task":
            return DemandRequest(_amount(body, "wait"))
    return _train_request(body)


def _task_info(kind: Kind, body: Mapping[str, object]) -> Mapping[str, object]:
    info = body.get("task_info")
    name = body.get("name")
    if not isinstance(info, Mapping):
        came = type(info).__name__
        raise _refused("BadTask", f"{name}: task_info is a {came}, expected an object")
    missing = [field for field in _TASK_FIELDS[kind] if field not in info]
    if missing:
        expected = ", ".join(_TASK_FIELDS[kind])
        text = f"{name} came without {', '.join(missing)}; expected task_info with {expected}"
        raise _refused("BadTask", text)
    return info


def _train_request(body: Mapping[str, object]) -> TrainRequest:
    data, wait = body.get("data"), _amount(body, "wait")
    if isinstance(data, list):
        rows = [row if isinstance(row, Mapping) else {"data_id": row} for row in data]
        return TrainRequest(rows=tuple(rows), wait=wait)
    if not isinstance(data, Mapping):
        came = type(data).__name__
        raise _refused("BadTask", f"learner_learn_task: data is a {came}, expected an object")
    envstep, statistics = data.get("envstep"), data.get("env_statistics")
    wires = data.get("batches", [])
    return TrainRequest(
        tuple(_wire_batch(wire) for wire in (wires if isinstance(wires, list) else [wires])),
        envstep if _is_int(envstep) and envstep >= 0 else 0,
        statistics if isinstance(statistics, Mapping) and statistics else None,
        wait=wait,
        chunks=tuple(_named_chunk(meta) for meta in data.get("chunks", [])),
    )


def _named_chunk(meta: object) -> ChunkReport:
    try:
        return _chunk_report(_object(meta, "chunks", "data_id"), "chunks")
    except NonsenseAnswer as error:
        raise _refused("DataError", f"a damaged chunk came: {error}") from error


def _wire_batch(wire: object) -> WireBatch:
    if isinstance(wire, Mapping):
        number, chunks = wire.get("id", -1), wire.get("chunks")
        names = (
            [name for name in chunks if isinstance(name, str)] if isinstance(chunks, list) else []
        )
        if _is_int(number) and names == chunks:
            return WireBatch(number, tuple(names), wire)
    raise _refused("DataError", f"a damaged batch came: {wire!r:.80}")


def _amount(body: Mapping[str, object], field: str) -> float | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        text = f"{field!r} of {body.get('name')} is {value!r:.80}; expected a number >= 0"
        raise _refused("BadTask", text)
    return value


def _refused(kind: str, text: str) -> TaskFail:
    return TaskFail({"type": kind, "message": text, "traceback": ""}, f"{kind}: {text}")


# ---------------------------------------------------------------------- answers of workers


def answer_to_json(request: Request[Answer], answer: Answer) -> Json:
    """What a worker's answer is in JSON.

    Collectors give a coordinator that sent neither ``wait`` nor ``quota`` one thing at a time: one
    chunk, or else the progress.
    """
    match request:
        case StartTask(kind=kind, info=info):
            started: dict[str, Json] = {"message": f"the {kind} task has started"}
            if kind == "learner":
                started.update(_ids(_text(info.get("task_id")), _text(info.get("buffer_id"))))
            return started
        case SamplesRequest():
            assert isinstance(answer, SamplesAnswer)
            items: list[Json] = [_chunk_json(chunk) for chunk in answer.chunks]
            if answer.progress is not None:
                items.append(answer.progress.as_json())
            return items[0] if request.wait is None and request.quota is None else items
    match answer:
        case Resources():
            return answer.as_json()
        case TaskReport():
            return {**answer.info, "task_id": answer.task_id}
        case Demand():
            return _demand_json(answer)
        case TrainAnswer():
            return {**_ids(answer.task_id, answer.buffer_id), "info": answer.as_json()}
    raise TypeError(f"{type(answer).__name__} is no answer to {type(request).__name__}")


def _chunk_json(chunk: ChunkReport) -> dict[str, Json]:
    size: dict[str, Json] = {"size": chunk.size} if chunk.size else {}
    ids = _ids(chunk.task_id, chunk.buffer_id)
    return {**chunk.meta, **size, **ids, "data_id": chunk.data_id}


def _demand_json(demand: Demand) -> dict[str, Json]:
    body: dict[str, Json] = {
        **_ids(demand.task_id, demand.buffer_id),
        "batch_size": demand.batch_size,
        "cur_learner_iter": demand.train_iter,
        "learner_done": demand.done,
    }
    if demand.batch_num is not None:
        body.update(batch_num=demand.batch_num, ours=1)
    if demand.learners != 1:
        body["learners"] = demand.learners
    if demand.own_rows:
        body["own_rows"] = demand.own_rows
    return body


# ---------------------------------------------------------------------- answers to a coordinator


def answer_from_json(request: Request[Answer], body: object) -> Answer:
    """What a worker answered to a request.

    Raises:
        NonsenseAnswer: It is no answer to it.
    """
    name = request_name(request)
    answer: object = None
    match request:
        case ResourceRequest():
            answer = _resources(_object(body, name))
        case CloseTask():
            report = _object(body, name)
            answer = TaskReport(_task_id(report), report)
        case SamplesRequest():
            answer = _samples_answer(body, name)
        case DemandRequest():
            answer = _demand(_object(body, name, "batch_size"), name)
        case TrainRequest():
            answer = _train_answer(_object(body, name, "info"), name)
    return cast(Answer, answer)


def _resources(body: JsonObject) -> Resources:
    cpu, gpu = body.get("cpu"), body.get("gpu")
    return Resources(
        cpu if _is_int(cpu) else 1,
        gpu if _is_int(gpu) else 0,
        bool(body.get("ours")),
        {key: value for key, value in body.items() if key not in ("cpu", "gpu", "ours")},
    )


def _samples_answer(body: object, name: str) -> SamplesAnswer:
    chunks: list[ChunkReport] = []
    progress = None
    for item in body if isinstance(body, list) else [body]:
        told = _object(item, name)
        if "data_id" in told:
            chunks.append(_chunk_report(told, name))
        else:
            progress = _progress(told, name)
    return SamplesAnswer(tuple(chunks), progress)


def _chunk_report(meta: JsonObject, name: str) -> ChunkReport:
    data_id, size = meta["data_id"], meta.get("size", 0)
    if not isinstance(data_id, str) or not _is_int(size):
        raise NonsenseAnswer(f"{name}: data_id and size are no string and number")
    return ChunkReport(data_id, _task_id(meta), _text(meta.get("buffer_id")), size, meta)


def _progress(info: JsonObject, name: str) -> CollectProgress:
    waiting, warning = info.get("waiting"), info.get("warning")
    need = info.get("waiting_bytes", 0)
    return CollectProgress(
        _task_id(info),
        bool(info.get("collector_done")),
        None if waiting is None else str(waiting),
        need if _is_int(need) and need > 0 else 0,
        str(warning) if warning else None,
        info,
    )


def _demand(body: JsonObject, name: str) -> Demand:
    size, step = body["batch_size"], body.get("cur_learner_iter", -1)
    wanted, learners = body.get("batch_num"), body.get("learners", 1)
    counts = _is_int(size) and _is_int(step) and (wanted is None or _is_int(wanted))
    if not counts or not _is_int(learners) or learners < 1:
        raise NonsenseAnswer(f"{name}: batch_size or cur_learner_iter: no number")
    return Demand(
        _task_id(body),
        cast(int, size),
        cast(int, step),
        cast("int | None", wanted),
        learners,
        bool(body.get("learner_done")),
        _text(body.get("buffer_id")),
        _count_or_none(body, "own_rows", name) or 0,
    )


def _train_answer(body: JsonObject, name: str) -> TrainAnswer:
    info = _object(body["info"], f"{name}: info")
    trained, error = info.get("trained"), info.get("error")
    trouble, waiting = info.get("trouble"), info.get("waiting")
    warnings = info.get("warnings") or []
    return TrainAnswer(
        _task_id(body),
        _text(body.get("buffer_id")),
        learner_step=max(0, _count_or_none(info, "learner_step", name) or 0),
        learner_done=bool(info.get("learner_done")),
        trained=trained if _is_int(trained) else None,
        batch_num=_count_or_none(info, "batch_num", name),
        policy_iter=_count_or_none(info, "policy_iter", name),
        waiting=None if waiting is None else str(waiting),
        trouble=str(trouble) if trouble else None,
        error=str(error) if error else None,
        warnings=tuple(map(str, warnings)) if isinstance(warnings, list) else (str(warnings),),
        bad_chunks=_bad_chunks(info.get("bad_chunks") or [], name),
        priority_info=_object(info.get("priority_info") or {}, f"{name}: priority_info"),
        info=info,
        received=_names(info.get("received") or [], name),
        own_rows=_count_or_none(info, "own_rows", name),
    )


def _names(entries: Json, name: str) -> tuple[str, ...]:
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        return tuple(map(str, entries))
    raise NonsenseAnswer(f"{name}: received is no list of names: {entries!r:.80}")


def _bad_chunks(entries: Json, name: str) -> tuple[tuple[str, str], ...]:
    if isinstance(entries, list):
        pairs = [(e[0], e[1]) for e in entries if isinstance(e, list) and len(e) == 2]
        if len(pairs) == len(entries):
            return tuple((str(data_id), str(cause)) for data_id, cause in pairs)
    raise NonsenseAnswer(f"{name}: bad_chunks is no list of names and causes: {entries!r:.80}")


def _count_or_none(info: JsonObject, key: str, name: str) -> int | None:
    value = info.get(key)
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return int(value)
    raise NonsenseAnswer(f"{name}: {key} is {value!r:.80}, no number")


# ---------------------------------------------------------------------- small things


def _object(body: object, name: str, *keys: str) -> JsonObject:
    """The answer if it is a JSON object with those keys."""
    if not isinstance(body, dict):
        came = f"{type(body).__name__} {str(body)[:80]!r}"
        raise NonsenseAnswer(f"{name}: the answer is {came}, not an object")
    missing = [key for key in keys if key not in body]
    if missing:
        has = sorted(body)[:20]
        raise NonsenseAnswer(f"{name}: the answer lacks {', '.join(missing)}; it has {has}")
    return body


def _put(body: dict[str, Json], **values: Json) -> None:
    """Add the values that there are."""
    body.update({key: value for key, value in values.items() if value is not None})


def _ids(task_id: str | None, buffer_id: str | None) -> dict[str, Json]:
    return {"task_id": task_id, "buffer_id": buffer_id}


def _task_id(body: JsonObject) -> str | None:
    given = body.get("task_id")
    return None if given is None else str(given)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
