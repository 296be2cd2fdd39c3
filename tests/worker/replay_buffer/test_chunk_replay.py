"""A replay buffer that is filled with chunks."""

import threading

import numpy as np
import pytest
import torch
from easydict import EasyDict
from hypothesis import given, settings, strategies as st

from ding.data import Columns
from ding.data.arrays import IndexedColumn
from ding.policy.dqn import DQNPolicy
from ding.reward_model import BaseRewardModel
from ding.utils import BUFFER_REGISTRY, REWARD_MODEL_REGISTRY
from ding.utils.errors import ChunkError, ConfigError
from ding.worker import BaseLearner, create_learner
from ding.worker.engines.shared_folder import FolderArtifacts
from ding.worker.learner.comm.state_keeper import StateKeeper
from ding.worker.messages import ChunkReport
from ding.worker.replay_buffer.base_buffer import IBuffer
from ding.worker.replay_buffer.chunk_replay import ChunkReplay, read_rows, with_facts
from ding.worker.replay_buffer.chunk_rewards import ChunkRewards
from tests.fakes import Writer

KINDS = ["advanced", "naive", "deque"]


class Store(dict):
    """Chunks by name; row i of chunk k has x = 100 k + i."""

    def chunk(self, number: int, n: int = 4, **meta) -> ChunkReport:
        name = f"c{number}"
        x = torch.arange(n) + 100 * number
        self[name] = Columns({"x": x, "obs": torch.full((n, 2), float(number))})
        return ChunkReport(name, None, None, 0, {"sample_num": n, **meta})

    def __call__(self, chunk):
        return read_rows(self.read, chunk)

    def read(self, name):
        if name not in self:
            raise ChunkError(name, "it is not there")
        return self[name]


@pytest.fixture
def store():
    return Store()


def make(kind="advanced", size=40, **cfg) -> ChunkReplay:
    cfg = EasyDict(type=kind, replay_buffer_size=size, **cfg)
    return ChunkReplay(cfg, "exp", "buffer", Writer())


def fill(replay, store, *chunks):
    replay.name_chunks(chunks, 0)
    replay.take_in(store)
    return replay.take_news()


def drawn(replay, size, train_iter=0):
    batch, _ = replay.sample(size, train_iter)
    return sorted(row["x"].item() for row in batch)


@pytest.mark.parametrize("kind", KINDS)
def test_it_draws_what_it_has_taken_in(store, kind):
    replay = make(kind)
    replay.name_chunks([store.chunk(0), store.chunk(1)], 8)
    assert replay.rows == 0
    replay.take_in(store)
    news = replay.take_news()
    assert (news.received, news.left, news.rows) == (("c0", "c1"), (), 8)
    assert replay.take_news().received == ()
    assert drawn(replay, 8) == [0, 1, 2, 3, 100, 101, 102, 103]
    replay.close()


def test_a_chunk_that_is_named_again_is_not_read_again(store):
    replay, first = make(), store.chunk(0)
    fill(replay, store, first)
    store.clear()
    news = fill(replay, store, first)
    assert (news.received, news.bad, news.rows) == (("c0",), (), 4)
    replay.close()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_leave_with_their_last_sample(store, kind):
    replay = make(kind, size=10)
    assert fill(replay, store, *map(store.chunk, range(3))).left == ()
    assert fill(replay, store, store.chunk(3)).left == ("c0",)
    assert fill(replay, store, store.chunk(4, n=30)).left == ("c1", "c2", "c3")
    replay.close()


def test_used_up_and_stale_samples_take_their_chunks_along(store):
    replay = make(max_use=1, max_staleness=10)
    fill(replay, store, store.chunk(0, collect_iter=0), store.chunk(1, collect_iter=5))
    assert len(drawn(replay, 8, 9)) == 8
    assert replay.take_news().left == ("c0", "c1")
    fill(replay, store, store.chunk(2, collect_iter=0), store.chunk(3, collect_iter=9))
    assert drawn(replay, 4, 11) == [300, 301, 302, 303]
    assert set(replay.take_news().left) == {"c2", "c3"}
    replay.close()


def test_the_coordinators_rate_limiter_is_the_only_one(store):
    limit = {"push_sample_rate_limit": {"max": 1, "min": 0}, "sample_min_limit_ratio": 0.5}
    replay = make(thruput_controller=limit)
    fill(replay, store, store.chunk(0))
    assert len(drawn(replay, 8, 0)) == 8
    news = [fill(replay, store, store.chunk(number)) for number in range(1, 6)]
    assert all(len(one.received) == 1 and not one.left for one in news)
    replay.close()


def test_chunks_that_cannot_be_used_are_named_with_the_cause(store):
    replay, short = make(), store.chunk(1, n=3)
    short.meta["sample_num"] = 4
    news = fill(replay, store, ChunkReport("gone", None, None, 0, {"sample_num": 1}), short)
    assert [name for name, _ in news.bad] == ["gone", "c1"]
    assert "it is not there" in news.bad[0][1]
    assert "expected 4" in news.bad[1][1]
    assert (news.rows, replay.take_news().bad) == (0, ())
    replay.close()


def test_a_step_of_a_trajectory(store):
    replay, chunk = make(), store.chunk(0, n=10)
    step = ChunkReport(chunk.data_id, None, None, 0, {"unroll_split_begin": 7, "unroll_len": 1})
    fill(replay, store, step)
    assert drawn(replay, 1) == [7]
    outside = ChunkReport(store.chunk(1).data_id, None, None, 0, {"unroll_split_begin": 4})
    assert "expected row 4" in fill(replay, store, outside).bad[0][1]
    replay.close()


def test_reading_can_be_interrupted(store):
    replay = make()
    replay.name_chunks([store.chunk(0), store.chunk(1)], 0)
    replay.take_in(store, lambda: bool(replay.rows))
    assert replay.take_news().received == ("c0",)
    replay.take_in(store)
    assert replay.take_news().received == ("c1",)
    replay.close()


def test_priorities_of_the_collector_and_of_learning_count(store):
    replay = make(alpha=1.0)
    fill(replay, store, store.chunk(0, n=2, priority=[1.0, 0.0001]))
    batch, _ = replay.sample(2, 0)
    ids, index = batch.columns["replay_unique_id"], batch.columns["replay_buffer_idx"]
    replay.update({"replay_unique_id": ids, "replay_buffer_idx": index, "priority": [5.0, 5.0]})
    again, _ = replay.sample(2, 0)
    assert np.asarray(again.columns["priority"]).max() == pytest.approx(5.0)
    replay.close()


def test_frames_that_rows_share_stay_shared():
    frames, index = np.zeros((5, 3), np.uint8), np.array([0, 1, 1, 2])
    samples = Columns({"obs": IndexedColumn(frames, index)})
    chunk = with_facts(samples, ChunkReport("c", None, None, 0, {"sample_num": 4}))
    columns = chunk.raw_columns()
    assert isinstance(columns["obs"], IndexedColumn)
    assert columns["obs"].source is frames
    assert columns["collect_iter"].tolist() == [-1] * 4


def test_who_waits_for_more_goes_on_when_it_comes(store):
    replay = make()
    batch, seen = replay.sample(4, 0)
    assert batch is None
    assert replay.take_news().starved
    done = threading.Event()
    waiter = threading.Thread(target=lambda: (replay.wait_for_more(seen), done.set()))
    waiter.start()
    assert not fill(replay, store, store.chunk(0)).starved
    assert done.wait(30)
    waiter.join(30)
    assert replay.sample(4, 0)[0] is not None
    replay.close()


def test_buffers_of_runs_are_refused_with_a_way_out():
    with pytest.raises(ConfigError, match="samples runs of items"):
        make("sequence")


# ---------------------------------------------------------------------- made again


def priorities_of(replay) -> dict[int, float]:
    """Of each sample that can be drawn."""
    batch, _ = replay.sample(4 * replay.rows, 0)
    columns = batch.columns
    return dict(zip(np.asarray(columns["x"]).tolist(), np.asarray(columns["priority"]).tolist()))


def test_one_that_is_made_again_has_samples_priorities_and_uses_of_the_one_before(store):
    chunks = [store.chunk(number) for number in range(3)]
    cfg = {"max_use": 3, "alpha": 0.0, "beta": 0.2, "anneal_step": 10}
    replay = make(size=10, **cfg)
    fill(replay, store, *chunks)  # of c0 two are left
    batch, _ = replay.sample(10, 0)
    columns = batch.columns
    new = 1.0 + np.asarray(columns["x"]) % 7
    ids, index = columns["replay_unique_id"], columns["replay_buffer_idx"]
    replay.update({"replay_unique_id": ids, "replay_buffer_idx": index, "priority": new})
    state = replay.state_dict()
    beta = replay.buffer.beta
    replay.close()

    again = make(size=10, **cfg)
    again.load_state_dict(state)
    fill(again, store, *chunks)
    assert again.rows == 10
    assert again.buffer.beta == beta > 0.2
    facts = again.state_dict()
    assert (facts["chunks"], facts["counts"].tolist()) == (["c0", "c1", "c2"], [2, 4, 4])
    assert facts["rows"].tolist() == [2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
    assert facts["use"].tolist() == [1] * 10
    x = np.array([2, 3, *range(100, 104), *range(200, 204)])
    assert facts["priority"].tolist() == (1.0 + x % 7).tolist()
    # Two more uses of each are allowed.
    assert len(drawn(again, 10)) == len(drawn(again, 10)) == 10
    assert again.rows == 0
    again.close()


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_that_came_after_the_state_are_taken_in_whole(store, kind):
    replay = make(kind)
    fill(replay, store, store.chunk(0))
    state = replay.state_dict()
    replay.close()
    again = make(kind)
    again.load_state_dict(state)
    fill(again, store, store.chunk(0), store.chunk(1))
    assert drawn(again, 8) == [0, 1, 2, 3, 100, 101, 102, 103]
    again.close()


# ---------------------------------------------------------------------- users' classes


class Rows(IBuffer):
    """A list; the oldest leave first."""

    config = {"type": "test_chunk_rows"}

    def __init__(self, cfg, **kwargs):
        self.cfg, self.rows, self.updates = cfg, [], []

    def push(self, data, cur_collector_envstep):
        self.rows = [*self.rows, *data][-self.cfg.replay_buffer_size :]

    def sample(self, batch_size, cur_learner_iter):
        return self.rows[-batch_size:] if len(self.rows) >= batch_size else None

    def update(self, info):
        self.updates.append(info)

    def count(self):
        return len(self.rows)

    def clear(self):
        self.rows = []

    def save_data(self, file_name):
        raise NotImplementedError

    load_data = save_data

    def state_dict(self):
        return {}

    def load_state_dict(self, _state_dict):
        pass


@pytest.fixture
def users_class():
    BUFFER_REGISTRY.register("test_chunk_rows", Rows, force_overwrite=True)


def test_a_users_class_is_taken_to_let_its_oldest_items_leave(store, users_class):
    replay = make("test_chunk_rows", size=10)
    assert fill(replay, store, *map(store.chunk, range(3))).left == ()
    assert fill(replay, store, store.chunk(3)).left == ("c0",)
    assert drawn(replay, 2) == [302, 303]
    replay.update({"priority": [1.0]})
    assert replay.buffer.updates == [{"priority": [1.0]}]
    state = replay.state_dict()
    again = make("test_chunk_rows", size=10)
    again.load_state_dict(state)
    fill(again, store, *map(store.chunk, range(1, 4)))
    assert drawn(again, 10) == [102, 103, *range(200, 204), *range(300, 304)]


# ---------------------------------------------------------------------- any order of things

STEPS = st.lists(st.tuples(st.sampled_from(["push", "sample", "again"]), st.integers(1, 13)))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.sampled_from([2, float("inf")]), STEPS)
def test_the_chunks_that_have_not_left_are_those_of_its_samples(kind, max_use, steps):
    store, kept, n = Store(), {}, 0
    cfg = {"max_use": max_use} if kind == "advanced" else {}
    replay = make(kind, size=20, **cfg)
    for step, size in steps:
        if step == "push":
            chunk = kept[f"c{n}"] = store.chunk(n, n=size)
            n += 1
            news = fill(replay, store, chunk)
        elif step == "sample":
            replay.sample(size, 0)
            news = replay.take_news()
        else:
            before = replay.rows
            state = replay.state_dict()
            replay.close()
            replay = make(kind, size=20, **cfg)
            replay.load_state_dict(state)
            news = fill(replay, store, *kept.values())
            assert news.rows == before
        for name in news.left:
            del kept[name]
        state = replay.state_dict()
        present = [name for name, count in zip(state["chunks"], state["counts"]) if count]
        assert present == list(kept)
        assert state["counts"].sum() == replay.rows
    replay.close()


class Counted(BaseRewardModel):
    """Pays the number of transitions that it has seen, and knows how often it was trained."""

    config = dict(type="counted")
    kept = ("seen", "trained")

    def build(self):
        self.seen = self.trained = 0

    def observe(self, transitions, lengths):
        self.seen += len(transitions["obs"])
        assert lengths.tolist() == [2, 2]

    def rewarded(self, transitions, lengths):
        return {
            **transitions,
            "reward": np.full(len(transitions["obs"]), float(self.seen)),
        }, lengths

    def train(self, train_iter=0, envstep=0):
        self.trained += 1


def rewards():
    REWARD_MODEL_REGISTRY.register("counted", force_overwrite=True)(Counted)
    policy = dict(model=dict(obs_shape=2, action_shape=3))
    return ChunkRewards(dict(type="counted"), policy, "cpu", None)


def stepped(store, number, rows=False, **changes):
    """A chunk of two trajectories of two steps each."""
    chunk = store.chunk(number)
    columns = {**store[chunk.data_id].columns, "action": torch.zeros(4, 1, dtype=torch.long)}
    columns["next_obs"] = columns["obs"]
    columns |= {"reward": torch.full((4, 1), 7.0), "done": torch.tensor([False, True] * 2)}
    columns |= changes
    store[chunk.data_id] = list(Columns(columns)) if rows else Columns(columns)
    return chunk


@pytest.mark.parametrize("rows", [False, True])
def test_a_reward_model_sees_each_chunk_once(store, rows):
    first, second = stepped(store, 0, rows), stepped(store, 1, rows)
    replay = make("naive")
    replay.rewards = rewards()
    fill(replay, store, first)
    fill(replay, store, second, first)
    batch, _ = replay.sample(8, 0)
    found = {row["x"].item(): row["reward"].tolist() for row in batch}
    assert found == {**{i: [4.0] for i in range(4)}, **{100 + i: [8.0] for i in range(4)}}
    for _ in range(2):
        assert len(replay.rewards.drawn(batch, 1, 8)) == 8
    state = replay.rewards.state_dict()
    assert state["kept"] == dict(seen=8, trained=1)  # once for what has come
    again = make("naive")
    again.rewards = rewards()
    again.rewards.load_state_dict(state)
    again.load_state_dict(replay.state_dict())
    fill(again, store, first, second)
    assert again.rewards.state_dict() == state
    assert {row["reward"].item() for row in again.sample(8, 0)[0]} == {8.0}


@pytest.mark.parametrize(
    "changes", [dict(reward=torch.zeros(4, 3)), dict(adv=torch.zeros(4)), dict(done=None)]
)
def test_rewards_of_other_samples_are_refused(store, changes):
    chunk = stepped(store, 0)
    columns = {**store["c0"].columns, **changes}
    store["c0"] = Columns({name: one for name, one in columns.items() if one is not None})
    replay = make()
    replay.rewards = rewards()
    with pytest.raises(ConfigError, match=r"policy\.nstep=1"):
        fill(replay, store, chunk)


def test_a_learner_that_is_started_again_goes_on_with_its_reward_model(store, tmp_path):
    cfg = DQNPolicy.default_config()
    cfg.model = dict(obs_shape=2, action_shape=3)
    policy = DQNPolicy(cfg)
    learners = [
        create_learner(
            BaseLearner.default_config(), policy=policy.learn_mode, exp_name=str(tmp_path)
        )
        for _ in range(2)
    ]
    replay = make("naive")
    replay.rewards = rewards()
    fill(replay, store, stepped(store, 0))
    learners[0].reward_model, learners[1].reward_model = replay.rewards, rewards()
    artifacts = FolderArtifacts(str(tmp_path))
    keeper = StateKeeper(artifacts, "learner_state", print, writes=True)
    keeper(learners[0])
    keeper.save()
    StateKeeper(artifacts, "learner_state", print, writes=True)(learners[1])
    assert learners[1].reward_model.state_dict()["kept"]["seen"] == 4
    for learner in learners:
        learner.close()
