"""Hosts, ports, spans in seconds, and the limits that a server sets for its clients."""

from ding.utils import durations

GLOBAL_HOST = "0.0.0.0"
LOCAL_HOST = "127.0.0.1"
DEFAULT_CHANNEL = 0

DEFAULT_REQUEST_RETRIES = 5
DEFAULT_REQUEST_RETRY_WAITING = durations.REQUEST_RETRY
#: How long a peer may take for one answer.
DEFAULT_REQUEST_TIMEOUT = durations.REQUEST_TIMEOUT

# Limits of every server, of runs and of their pages. Those on time are in `ding.utils.durations`:
# ``HEAD_TIMEOUT`` (also of a TLS handshake), ``BODY_TIMEOUT`` and ``IDLE_TIMEOUT``.
#: Open connections, at most half of the descriptors that the process may have.
MAX_CONNECTIONS = 8192
#: Those of them whose clients are not known (yet), and how many remain in a shortage.
MAX_STRANGERS = 128
MIN_STRANGERS = 4
#: A request's head, in bytes and lines.
MAX_HEAD = 64 * 1024
MAX_HEAD_LINES = 100
#: Bytes of a request's body; larger ones are refused before they are read.
DEFAULT_MAX_BODY = 16 * 1024 * 1024
#: The same for messages that are neither task nor answer.
SMALL_BODY = 64 * 1024

DEFAULT_SLAVE_PORT = 7236
MIN_HEARTBEAT_SPAN = durations.SLAVE_HEARTBEAT_LEAST
DEFAULT_HEARTBEAT_SPAN = durations.SLAVE_HEARTBEAT

DEFAULT_MASTER_PORT = 7235
MIN_HEARTBEAT_CHECK_SPAN = durations.SLAVE_CHECK_LEAST
DEFAULT_HEARTBEAT_CHECK_SPAN = durations.SLAVE_CHECK
DEFAULT_HEARTBEAT_TOLERANCE = durations.SLAVE_TOLERANCE
