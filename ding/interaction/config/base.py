"""Hosts, ports, time spans in seconds, and limits of servers."""

from ding.utils import durations

GLOBAL_HOST = "0.0.0.0"
LOCAL_HOST = "127.0.0.1"
DEFAULT_CHANNEL = 0

DEFAULT_REQUEST_RETRIES = 5
DEFAULT_REQUEST_RETRY_WAITING = durations.REQUEST_RETRY
#: Time limit for a peer's answer.
DEFAULT_REQUEST_TIMEOUT = durations.REQUEST_TIMEOUT

# Limits of all servers, of runs and of boards. Time limits are in `ding.utils.durations`:
# ``HEAD_TIMEOUT`` (also for a TLS handshake), ``BODY_TIMEOUT`` and ``IDLE_TIMEOUT``.
#: Maximum number of open connections; at most half of the process's descriptors.
MAX_CONNECTIONS = 8192
#: Maximum number of connections of unauthenticated clients, and its minimum in a shortage.
MAX_STRANGERS = 128
MIN_STRANGERS = 4
#: Maximum size of a request's head, in bytes and lines.
MAX_HEAD = 64 * 1024
MAX_HEAD_LINES = 100
#: Maximum size of a request's body in bytes; larger bodies are refused before they are read.
DEFAULT_MAX_BODY = 16 * 1024 * 1024
#: The same limit for messages that are neither tasks nor answers.
SMALL_BODY = 64 * 1024

DEFAULT_SLAVE_PORT = 7236
MIN_HEARTBEAT_SPAN = durations.SLAVE_HEARTBEAT_LEAST
DEFAULT_HEARTBEAT_SPAN = durations.SLAVE_HEARTBEAT

DEFAULT_MASTER_PORT = 7235
MIN_HEARTBEAT_CHECK_SPAN = durations.SLAVE_CHECK_LEAST
DEFAULT_HEARTBEAT_CHECK_SPAN = durations.SLAVE_CHECK
DEFAULT_HEARTBEAT_TOLERANCE = durations.SLAVE_TOLERANCE
