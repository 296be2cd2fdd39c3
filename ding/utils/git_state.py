"""The commit of the code that a run started from."""

import os
import subprocess

from ding.utils import durations


def git_state(folder: str | os.PathLike | None = None) -> dict | None:
    """The state of the repository around a folder.

    Returns:
        ``{'commit': str, 'branch': str, 'dirty': bool}`` (files that git does not track count as
        clean); ``None`` outside a repository, without git, or when git takes too long.
    """
    try:
        answer = subprocess.run(
            ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=durations.GIT_TIMEOUT,
            # Reading must not take the repository's lock.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return _parse(answer.stdout.decode(errors="replace").splitlines())


def _parse(lines: list[str]) -> dict | None:
    mark = "# branch."
    branch = dict(line[len(mark) :].split(" ", 1) for line in lines if line.startswith(mark))
    commit = branch.get("oid", "")
    if not commit.isalnum():  # git says "(initial)" before the first commit
        return None
    dirty = any(not line.startswith("#") for line in lines)
    return {"commit": commit, "branch": branch.get("head"), "dirty": dirty}
