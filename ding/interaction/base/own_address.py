"""Whether an address that others have used is that of a server."""

import ipaddress
import socket

from .network import split_http_address


def joined(host: str, port: int) -> str:
    """``host:port``, with the brackets of an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_own_target(target: str, address: str, host: str, port: int) -> bool:
    """Whether what a client has dialled may be this server.

    The port has to be. A host is compared if both sides name theirs by number; names, and servers
    on all interfaces, are reached in more ways than are known here.

    Args:
        target: What was dialled.
        address: Where the server tells others to reach it, perhaps through a forwarded port.
        host: Where it listens.
        port: Likewise.
    """
    try:
        dialled, dialled_port, _, _ = split_http_address(target)
    except ValueError:
        return False
    if (dialled, dialled_port) == split_http_address(address)[:2]:
        return True
    if dialled_port != port:
        return False
    own = ipaddress.ip_address(host) if _is_number(host) else None
    comparable = own is not None and not own.is_unspecified and _is_number(dialled)
    return not comparable or ipaddress.ip_address(dialled) == own


def is_own_name(header: str, address: str, host: str) -> bool:
    """Whether a ``Host`` header is no name that somebody else may have pointed at this server.

    Args:
        header: What a client says it has asked.
        address: Where the server tells others to reach it.
        host: Where it listens.
    """
    try:
        name = split_http_address(header)[0]
    except ValueError:
        return False
    known = {"localhost", host.lower(), socket.gethostname().lower()}
    return name in known | {split_http_address(address)[0]} or _is_number(name)


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
