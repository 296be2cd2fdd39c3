from ding.utils import BUFFER_REGISTRY
from ding.utils.default_helper import class_config
from ding.worker import NaiveReplayBuffer, create_buffer


class Base:
    config = dict(a=1, nested=dict(x=1, y=[2]))


class Child(Base):
    config = dict(nested=dict(x=5))


class Grandchild(Child):
    pass


def test_subclasses_name_only_what_changes():
    cfg = class_config(Grandchild)
    assert (cfg.a, cfg.nested.x, cfg.nested.y) == (1, 5, [2])
    assert cfg.cfg_type == "GrandchildDict"


def test_it_is_a_copy():
    class_config(Child).nested.y.append(3)
    assert Base.config["nested"]["y"] == [2]


def test_a_users_buffer_with_one_key_of_its_own():
    @BUFFER_REGISTRY.register("small_naive", force_overwrite=True)
    class SmallNaive(NaiveReplayBuffer):
        config = dict(type="small_naive", replay_buffer_size=2)

    buffer = create_buffer(SmallNaive.default_config())
    buffer.push([{"x": i} for i in range(5)], cur_collector_envstep=0)
    assert buffer.count() == 2
    buffer.close()
