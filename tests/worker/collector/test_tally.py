"""What is counted while policies act."""

from ding.worker.collector.steps import Episode, Tally


def tally_of(*returns, **kwargs):
    tally = Tally(**kwargs)
    info = {"picture": 1, "result": "wins"}
    tally.end_episodes([Episode(0, [value], 5, [info]) for value in returns])
    return tally


def test_sums_and_the_newest_episodes():
    total = Tally(keep=2)
    for returns in ((1.0, 3.0), (8.0,)):
        call = tally_of(*returns)
        call.envsteps, call.samples, call.dropped, call.seconds = 5, 4, 1, 2.0
        total.add(call)
    assert (total.envsteps, total.samples, total.dropped, total.seconds) == (10, 8, 2, 4.0)
    assert total.episode_count == 3
    assert list(total.returns) == [3.0, 8.0]


def test_infos_may_hold_more_than_is_kept():
    kept, brief = (tally_of(1.0, infos=infos).episodes[0].infos for infos in (True, False))
    assert kept == [{"picture": 1, "result": "wins"}]
    assert brief == [{"result": "wins"}]


def test_the_state_goes_on():
    first, second = tally_of(1.0, 3.0), Tally()
    first.envsteps = 7
    second.load_state_dict(first.state_dict())
    assert (second.envsteps, second.episode_count, list(second.returns)) == (7, 2, [1.0, 3.0])
