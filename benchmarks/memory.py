"""Memory of full replay buffers, against the raw bytes of what they hold."""

from _timing import Figure, command_line
from replay_buffers import measure_memory


def measure(rounds: int, seconds: float) -> list[Figure]:
    return measure_memory(min(1.0, seconds))


if __name__ == "__main__":
    command_line(__doc__, {}, measure)
