"""A config is completed in steps that change nothing that they are given."""

import copy

import pytest

from ding.config.check import Notes
from ding.config.complete import STEPS, Request, complete, read
from ding.utils.errors import ConfigError
from ding.utils.settings import put

ORDER = (
    *("name_types", "translate_old_names", "fill_defaults", "settle_twins"),
    *("infer_from_environments", "check", "fit_together"),
)


def drafted(main, create, **options):
    request = Request(notes=Notes(), **options)
    return read(main, create, request), request


def completed(main, create, **options):
    return complete(main, create, Request(notes=Notes(), **options))


def spoilt(main, create):
    """Something to do for each step."""
    main["policy"]["model"] = {}
    main["policy"]["learn"]["learning_rate_policy"] = 1e-4
    main["policy"]["collect"]["env_num"] = 3
    del main["env"]["collector_env_num"]
    put(main, "policy.priority_IS_weight", True)
    create["policy"]["type"] = "ddpg"
    create["env"]["type"] = "gymnasium"
    main["env"]["env_id"] = "Pendulum-v1"
    del create["env_manager"]


@pytest.mark.parametrize("options", [{}, dict(runs=False), dict(parallel=True, command=True)])
def test_steps_change_nothing_that_they_are_given(main, create, options):
    spoilt(main, create)
    written = copy.deepcopy((main, create))
    draft, request = drafted(main, create, **options)
    assert tuple(step.__name__ for step in STEPS) == ORDER
    for step in STEPS:
        fields = draft.cfg, draft.create, draft.written, draft.defaults
        before = copy.deepcopy(fields)
        after = step(draft, request)
        assert fields == before, step.__name__
        draft = after
    assert (main, create) == written


def test_each_step_does_its_own_job(main, create):
    spoilt(main, create)
    draft, request = drafted(main, create)
    drafts = {}
    for step in STEPS:
        draft = drafts[step.__name__] = step(draft, request)
    assert drafts["name_types"].create.env_manager.type == "base"
    assert drafts["translate_old_names"].cfg.policy.learn.learning_rate_actor == 1e-4
    assert drafts["fill_defaults"].cfg.policy.eval.evaluator.type == "interaction"
    assert drafts["fill_defaults"].cfg.policy.learn.batch_size == 64  # which the user set
    assert drafts["settle_twins"].cfg.env.collector_env_num == 3
    assert drafts["infer_from_environments"].cfg.policy.model.obs_shape == 3
    assert drafts["check"].cfg.policy.priority_IS_weight is True
    assert drafts["fit_together"].cfg.policy.priority_IS_weight is False


def test_nothing_is_shared_with_the_result(main, create):
    cfg = completed(main, create)
    cfg.policy.learn.batch_size = 7
    cfg.create_config.policy.type = "other"
    assert main["policy"]["learn"]["batch_size"] == 64
    assert create["policy"]["type"] == "dqn"


def test_what_collects_nothing_needs_no_number_of_environments(main, create):
    """As configs for data sets leave it out."""
    del main["env"]["collector_env_num"]
    cfg = completed(main, create, collects=False)
    assert cfg.env.collector_env_num == 1
    with pytest.raises(ConfigError, match=r"env\.collector_env_num"):
        completed(main, create)
