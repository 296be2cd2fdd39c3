"""R2D3's pipeline (Paine et al. 2019): that of DQfD, where samples are sequences of steps."""

from ding.entry.serial_entry_dqfd import serial_pipeline_dqfd as serial_pipeline_r2d3

__all__ = ["serial_pipeline_r2d3"]
