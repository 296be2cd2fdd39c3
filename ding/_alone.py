"""Refusing to run where DI-engine is installed into the folder of this package.

Both have the import name ``ding``. pip installs one over the other without a word, and a mixture of
the two is imported from then on; uninstalling one deletes files of the other. If DI-engine came
second, our ``ding/__init__.py`` is overwritten, so ``ding.utils.errors``, which nearly all of our
modules need, imports this module as well.
"""

import os


def refuse_di_engine(package: str) -> None:
    """Look for DI-engine's record next to a package, and for the package's files in it.

    A listing of one folder where there is no such record. An editable installation of DI-engine, or
    one in another folder, is not mixed with this package and passes.

    Args:
        package: Our folder, ``.../ding``.

    Raises:
        ImportError: Both are installed in one folder; with the cure.
    """
    parent = os.path.dirname(os.path.abspath(package))
    try:
        names = os.listdir(parent)
    except OSError:  # the package is in an archive
        return
    for name in names:
        is_record = name.endswith((".dist-info", ".egg-info"))
        if is_record and name.lower().startswith(("di_engine-", "di-engine-", "di_engine.")):
            _refuse_if_mixed(os.path.join(parent, name), package)


def _refuse_if_mixed(record: str, package: str) -> None:
    from importlib.metadata import PathDistribution  # 15 ms, for those who need it
    from pathlib import Path

    found = PathDistribution(Path(record))
    name, files = os.path.basename(package), found.files
    if files is None:  # other installers than pip may leave no list of files
        is_mixed = name in (found.read_text("top_level.txt") or name).split()
    else:
        is_mixed = any(file.parts[:1] == (name,) for file in files)
    if is_mixed:
        raise ImportError(
            f"DI-engine {found.version} is installed in the same folder as this package, "
            f"{package}: both are imported as 'ding', and their files are mixed. Install this "
            "package into a fresh environment: python -m venv fresh && fresh/bin/pip install ... "
            "(uninstalling one of the two here deletes files of the other)",
            name=name,
        )


refuse_di_engine(os.path.dirname(__file__))
