"""The naive collector worker."""

from contextlib import ExitStack, contextmanager

from ding.data.chunks import SharedFolder, read_chunk
from ding.interaction import Master
from ding.worker.collector.comm import NaiveCollector
from tests.worker.collector.parallel_tasks import FINISH_KEYS


@contextmanager
def _naive(folder):
    with ExitStack() as stack:
        slave = stack.enter_context(NaiveCollector("127.0.0.1", 0, prefix=str(folder)))
        master = stack.enter_context(Master(port=0))
        yield stack.enter_context(master.new_connection("naive", "127.0.0.1", slave.port))


def _ask(connection, name, **data):
    task = connection.new_task({"name": name, **data})
    task.start().join()
    return task


def test_it_answers_all_collector_tasks(tmp_path):
    with _naive(tmp_path) as connection:
        assert {"cpu", "gpu"} <= set(_ask(connection, "resource").result)
        info = {"task_id": "t", "buffer_id": "b", "collector_cfg": {"eval_flag": False}}
        _ask(connection, "collector_start_task", task_info=info)
        answers = []
        while not answers or not answers[-1].get("collector_done"):
            answers.append(_ask(connection, "collector_data_task").result)
        samples = answers[:-1]
        assert len(samples) == NaiveCollector.SAMPLES
        assert len({m["data_id"] for m in samples}) == len(samples)
        for meta in samples:
            assert (meta["task_id"], meta["buffer_id"]) == ("t", "b")
            assert len(read_chunk(SharedFolder(str(tmp_path)), meta["data_id"])) == 1
        finish = _ask(connection, "collector_close_task").result
        assert set(finish) == FINISH_KEYS | {"task_id", "buffer_id"}
        assert _ask(connection, "collector_close_task").status.name == "FAILED"


def test_an_evaluation_brings_no_data(tmp_path):
    with _naive(tmp_path) as connection:
        info = {"task_id": "t", "buffer_id": "b", "collector_cfg": {"eval_flag": True}}
        _ask(connection, "collector_start_task", task_info=info)
        answer = {}
        while not answer.get("collector_done"):
            answer = _ask(connection, "collector_data_task").result
            assert "data_id" not in answer
        assert _ask(connection, "collector_close_task").result["eval_flag"]
    assert not list(tmp_path.iterdir())
