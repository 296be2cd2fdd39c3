"""Packaging; everything about the tools is in pyproject.toml and pytest.ini."""

import re
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "ding/__init__.py").read_text())[1]


class BuildWithConfigs(build_py):
    """Puts ``configs/`` into wheels, as ``ding/configs``: the settings of ``ding train``."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for path in ROOT.glob("configs/*/*_config.py"):
                target = Path(self.build_lib, "ding", path.relative_to(ROOT))
                self.mkpath(str(target.parent))
                self.copy_file(str(path), str(target))


setup(
    name="ding",
    version=VERSION,
    description="Reinforcement-learning training systems: collectors, learners, buffers, pipelines",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    # Said outright, so that an editable installation is a path, which type checkers can follow.
    package_dir={"": "."},
    packages=find_packages(include=["ding", "ding.*"]),
    cmdclass={"build_py": BuildWithConfigs},
    package_data={
        "": ["*.pyi", "py.typed"],
        "ding.config": ["keys.json"],
        "ding.board": ["static/*"],
        "ding": ["zoo/*"],
    },
    install_requires=[
        "torch>=2.10",  # the first whose safe loading is safe: see ding/utils/safe_serial.py
        "numpy>=1.26",
        "gymnasium>=1.0",
        "easydict>=1.10",
        "flask>=3.0",
        "cryptography>=42.0",  # certificates between the parts of a run
        "requests>=2.31",
        "tensorboardX>=2.6.2.2",
        "crc32c>=2.7",  # of tensor files; tensorboardX uses it too
        "cloudpickle>=3.0",
        "click>=8.1",
        "pyyaml>=6.0",
        "lz4>=4.3",
        "lazy_loader>=0.4",
        "threadpoolctl>=3.5",
    ],
    extras_require={
        "test": [
            "pytest>=8.0",
            "pytest-timeout>=2.3",
            "pytest-xdist>=3.5",
            "hypothesis>=6.100",
            "pillow>=10.0",
            "safetensors>=0.4",
            "ruff>=0.6",
            "mypy>=1.11",
            "types-PyYAML",
            "types-requests",
        ],
        "bench": ["matplotlib>=3.8", "psutil>=5.9"],
        "board": [],  # the board needs no more; older instructions name it
        "docs": ["mkdocs-material>=9.5", "mkdocstrings[python]>=0.25"],
        "browser": ["playwright>=1.45"],
        "types": ["basedpyright>=1.30"],
        "plot": ["matplotlib>=3.8"],
        "sweep": ["optuna>=4.0"],
        "onnx": ["onnx>=1.16"],
        "video": ["moviepy>=2.0", "pygame>=2.5", "pillow>=10.0"],
        "box2d": ["box2d>=2.3"],
        "atari": ["ale-py>=0.10"],
        "mujoco": ["mujoco>=3.1", "imageio>=2.14"],  # gymnasium imports imageio for it
        "minigrid": ["minigrid>=3.0"],
        "envpool": ["envpool>=0.8"],
        "pettingzoo": ["pettingzoo>=1.24", "mpe2>=1.0"],
        "hdf5": ["h5py>=3.10"],
        "minari": ["minari[hdf5]>=0.5"],
        "ray": ["ray[default]>=2.60"],
        "tensorboard": ["tensorboard>=2.15"],
        "wandb": ["wandb>=0.17"],
        "mlflow": ["mlflow>=2.10"],
    },
    entry_points={"console_scripts": ["ding = ding.entry.cli:main"]},
    classifiers=[
        "License :: OSI Approved :: Apache Software License",
        "Programming Language :: Python :: 3",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
    ],
)
