"""Files that are appended to, while other threads do the same."""

from pathlib import Path

import pytest

from ding.utils import log_file
from ding.utils.log_file import AppendFile, flush_all, hold, release


@pytest.fixture
def file():
    return AppendFile("a.txt", flush_seconds=1000)


class Interrupted(str):
    """A line during whose writing something happens, as in another thread."""

    meanwhile = staticmethod(lambda: None)

    def encode(self, *args):
        self.meanwhile()
        return super().encode(*args)


def test_a_line_that_is_written_during_a_flush_stays(file):
    line = Interrupted("second\n")
    line.meanwhile = file.flush
    file.write("first\n")
    file.write(line)
    flush_all()
    assert Path("a.txt").read_text() == "first\nsecond\n"


def test_others_may_begin_to_hold_something_back_at_the_end(file):
    class Writer:
        @property
        def __class__(self):  # looked at while all are gone through
            hold(newer)
            return object

        def flush(self):
            file.write("last\n")
            release(self)

    newer, older = AppendFile("b.txt"), Writer()
    hold(older)
    flush_all()
    release(newer)
    assert Path("a.txt").read_text() == "last\n"
    assert not log_file._held & {file, newer, older}
