"""Environments of the parallel runs, by the names that their configs use."""

from ding.utils import ENV_REGISTRY
from tests.entry.runs import WalkEnv

ENV_REGISTRY.register("parallel_walk", force_overwrite=True)(WalkEnv)
