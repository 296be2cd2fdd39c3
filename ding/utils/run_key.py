"""The key that the parts of a run know each other by."""

import contextlib
import os
import secrets
import stat

from .errors import ConfigError

KEY_FILE = "run.key"
KEY_VARIABLE = "DING_RUN_KEY"
_MAX_LENGTH = 512


def make_run_key(exp_name: str) -> str:
    """The run's key: from the environment, from the run's folder, else a new one is written there.

    The file is readable by its owner alone.

    Raises:
        ConfigError: The folder cannot be written, or the key in it was open to others.
    """
    key = read_run_key(exp_name)
    if key is not None:
        return key
    path = os.path.join(exp_name, KEY_FILE)
    key = secrets.token_urlsafe(32)
    temporary = os.path.join(exp_name, f".{KEY_FILE}.{secrets.token_hex(8)}")
    try:
        os.makedirs(exp_name, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "w", encoding="ascii") as file:
                os.fchmod(fd, 0o600)  # whatever the umask says
                file.write(key + "\n")
            os.link(temporary, path)  # whoever sees the file sees all of it
        finally:
            os.remove(temporary)
    except FileExistsError:  # another part was quicker
        return make_run_key(exp_name)
    except OSError as error:
        raise ConfigError(
            f"cannot write the run's key {path!r}: {error.strerror or error}; choose another "
            f"exp_name, or set {KEY_VARIABLE}"
        ) from error
    return key


def read_run_key(exp_name: str) -> str | None:
    """The key in the environment (``DING_RUN_KEY``), else in the run's folder; ``None`` if none.

    Raises:
        ConfigError: Others can read the file, it cannot be read, or it holds no key.
    """
    key = os.environ.get(KEY_VARIABLE)
    if key:
        return _checked(key, f"the environment variable {KEY_VARIABLE}")
    path = os.path.join(exp_name, KEY_FILE)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(
            f"cannot read the run's key {path!r}: {error.strerror or error}"
        ) from error
    with os.fdopen(fd, encoding="ascii", errors="replace") as file:
        mode = stat.S_IMODE(os.fstat(fd).st_mode)
        if mode & 0o077:
            raise ConfigError(
                f"the run's key {path!r} can be read by others (mode {mode:04o}): remove it and "
                f"start again for a new key, or `chmod 600` it if nobody has seen it"
            )
        text = file.read(_MAX_LENGTH + 1)
    return _checked(text.strip(), repr(path))


def remove_run_key(exp_name: str) -> None:
    """Remove the key's file, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(exp_name, KEY_FILE))


def _checked(key: str, where: str) -> str:
    key = key.strip()
    # It travels in a header: no line breaks, no other alphabets.
    if not 16 <= len(key) <= _MAX_LENGTH or not key.isascii() or not key.isprintable():
        raise ConfigError(
            f"{where} holds no run key: expected 16 to {_MAX_LENGTH} printable ASCII characters, "
            f"got {len(key)}; remove it for a new one"
        )
    return key
