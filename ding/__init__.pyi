from . import plot as plot
from .entry.trained_policy import load as load
from .utils.callbacks import RunCallback as RunCallback

__version__: str
