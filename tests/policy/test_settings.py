"""Settings that a policy cannot take are refused, and those without effect on it are reported."""

import pytest

from ding.utils.errors import ConfigError
from ding.utils.settings import put
from tests.policy.batches import build


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("a2c", {"priority": True}),
        ("pg", {"priority": True}),
        ("ppo_pg", {"priority": True}),
        ("d4pg", {"multi_agent": True}),
    ],
)
def test_what_it_does_not_have_is_refused(name, setting):
    (key,) = setting
    with pytest.raises(ConfigError, match=rf"policy\.{key}=True: .* does not have it"):
        build(name, **setting)


def test_edac_takes_no_other_keys():
    with pytest.raises(ConfigError, match="EDAC takes no encoder_hidden_size_list, share_encoder"):
        build("edac", model=dict(encoder_hidden_size_list=[8], share_encoder=True))


@pytest.mark.parametrize("name", ["c51", "qrdqn", "iqn", "fqf", "bdq", "discrete_cql"])
def test_noise_needs_noisy_layers(name):
    with pytest.raises(ConfigError, match=r"policy\.noisy_net=True: .* no noisy layers"):
        build(name, noisy_net=True)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("dqn", "learn.target_theta"),
        ("sqn", "learn.learning_rate"),
        ("fqf", "learn.learning_rate"),
        ("discrete_sac", "learn.init_w"),
        ("ppo_offpolicy", "nstep"),
        ("pg", "learn.ignore_done"),
        ("bc", "collect.noise"),
        ("dqn", "learn.discount_factor"),
        ("sac", "discount_factor"),
        ("a2c", "learn.discount_factor"),
        ("impala", "collect.discount_factor"),
        ("r2d2", "learn.discount_factor"),
        ("qmix", "discount_factor"),
    ],
)
def test_what_has_no_effect_is_reported(name, key, caplog):
    build(name)
    assert not caplog.records
    setting = {}
    put(setting, key, 0.5)
    build(name, **setting)
    (record,) = caplog.records
    assert f"policy.{key}=0.5 has no effect" in record.getMessage()


@pytest.mark.parametrize(("name", "rate"), [("dqn", "theta"), ("r2d2", "update_theta")])
def test_the_rate_of_a_target_counts_unless_it_is_a_copy(name, rate, caplog):
    build(name, learn={f"target_{rate}": 0.5, "target_update_freq": None})
    assert not caplog.records
    build(name, learn={f"target_{rate}": 0.5, "target_update_freq": 7})
    assert "target_update_freq=None" in caplog.text
