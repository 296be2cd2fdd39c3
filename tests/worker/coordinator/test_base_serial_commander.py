from types import SimpleNamespace

from ding.worker import BaseSerialCommander


def test_settings_follow_the_counters():
    asked = []
    policy = SimpleNamespace(get_setting_collect=lambda facts: asked.append(facts) or {"eps": 0.5})
    learner, collector = SimpleNamespace(train_iter=3), SimpleNamespace(envstep=40)
    cfg = BaseSerialCommander.default_config()
    commander = BaseSerialCommander(cfg, learner, collector, None, None, policy)
    assert commander.step() == {"eps": 0.5}
    learner.train_iter, collector.envstep = 4, 48
    commander.step()
    assert asked == [{"learner_step": 3, "envstep": 40}, {"learner_step": 4, "envstep": 48}]


def test_policy_can_be_replaced():
    one = SimpleNamespace(train_iter=0, envstep=0)
    commander = BaseSerialCommander({}, one, one, None, None)
    commander.policy = SimpleNamespace(get_setting_collect=lambda facts: {"eps": 0.1})
    assert commander.step() == {"eps": 0.1}
    assert commander.policy.get_setting_collect({}) == {"eps": 0.1}


def test_default_config_is_a_copy():
    cfg = BaseSerialCommander.default_config()
    assert cfg.cfg_type == "BaseSerialCommanderDict"
    cfg.new = 1
    assert "new" not in BaseSerialCommander.default_config()
