"""What tests of rings share."""

from typing import Any

from ding.data.ring import Ring


def push(ring: Ring, data: Any) -> None:
    """Write items to the slots after the last one, as buffers do; of too many the last ones."""
    items = data if isinstance(data, list) else [data]
    items = items[-ring.capacity :]
    ring.write(ring.next_slots(len(items)), items)
