"""D-REX (Brown et al. 2020): as cartpole_trex_config.py, ranked by the noise, not by returns.

`ding -m serial_trex -c configs/cartpole/cartpole_drex_config.py -s 0`. No reward of the environment
is used.
"""

from pathlib import Path
from runpy import run_path

_trex = run_path(str(Path(__file__).with_name("cartpole_trex_config.py")))
main_config, create_config = _trex["main_config"], _trex["create_config"]
main_config.exp_name = "exp/cartpole_drex"
main_config.reward_model.type = create_config.reward_model.type = "drex"

if __name__ == "__main__":
    from ding.entry import serial_pipeline_trex

    serial_pipeline_trex([main_config, create_config], seed=0)
