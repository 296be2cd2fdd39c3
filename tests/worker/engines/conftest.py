"""A Ray for the tests of a module; it takes longer to start than most of them run."""

import pytest


@pytest.fixture(scope="module")
def ray_node(request):
    """A Ray of one node, if a test of the module runs on it."""
    of_module = [item for item in request.session.items if item.path == request.path]
    if not any("ray" in f"{item.path.name} {item.name}" for item in of_module):
        yield
        return
    ray = pytest.importorskip("ray")
    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=200 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield
    ray.shutdown()
