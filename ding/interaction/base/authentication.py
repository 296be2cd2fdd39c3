"""Both sides of a connection prove that they have the run's key, which itself never travels.

::

    client                                     server
    POST /authenticate  c, target        ->
                                         <-    s, mac(K, "server", role, target, c, s)
    any request         c, s, target, n,
                        digest of the body,
                        mac(k, "request", n, ...)  ->
                                         <-    answer, mac(k, "answer", n, ...)

``K`` is the run's key, ``c`` and ``s`` are nonces, ``role`` is that of the server (a master or a
slave), ``target`` the address that the client has dialled, ``n`` the number of the request, and
``k = mac(K, "session", role, target, c, s)``. So what is recorded is of no use a second time, or
in the other direction, or at another server, and who passes messages on can change none of them.
The request's mac stands in its head and covers the body by its digest: a server judges a request
before it reads the body. Each head has exactly one spelling, and a server counts the requests of a
session under its own nonce ``s``: no other form of a recorded head has counts that start again.
"""

import hashlib
import hmac
import itertools
import json
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol

import flask
import requests

from ding.utils import durations
from ding.utils.errors import InteractionError

from .app import ResponsibleException, get_values_from_response

AUTHENTICATE_PATH = "/authenticate"
SESSION_HEADER = "Auth-Session"
COUNT_HEADER = "Auth-Count"
DIGEST_HEADER = "Auth-Digest"
PROOF_HEADER = "Auth-Proof"
_HEADERS = (SESSION_HEADER, COUNT_HEADER, DIGEST_HEADER, PROOF_HEADER)
#: Marks the answer to a request whose session the server does not know (any more).
RENEW_HEADER = "WWW-Authenticate"

#: Sessions that a server keeps at least; beyond them it forgets those that rest longest.
MAX_SESSIONS = 4096
#: Requests of one session that may overtake each other.
WINDOW = 1024
_MAX_TEXT = 300
#: The one form of what stands in a head: a number, what a server has made, and codes.
_COUNT = re.compile(r"[1-9][0-9]{0,17}")
_NONCE = re.compile(r"[0-9a-f]{1,16}\.[0-9a-f]{32}\.[0-9a-f]{64}")
_CODE = re.compile(r"[0-9a-f]{64}")
#: Answers of a server that does not know of run keys, or has none.
_IGNORANT = frozenset(
    {
        *(HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND),
        *(HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED),
    }
)


class Headers(Protocol):
    """What gives the headers of a request."""

    def get(self, name: str, default: str, /) -> str: ...


class NotAuthenticError(InteractionError, requests.RequestException):
    """What answers does not prove that it has the run's key."""


def _mac(key: bytes, *parts: str) -> str:
    """A code of the parts that tells where each of them ends."""
    code = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")  # no two texts have the same bytes
        code.update(len(content).to_bytes(8, "big") + content)
    return code.hexdigest()


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def digest(body: bytes | None) -> str:
    """What stands for a body in the head of its message."""
    return hashlib.sha256(body or b"").hexdigest()


def _request_mac(key: bytes, count: str, method: str, path: str, *rest: str) -> str:
    return _mac(key, "request", count, method, path, *rest)


def _answer_mac(key: bytes, request: str, status: int, body: bytes) -> str:
    return _mac(key, "answer", request, str(status), digest(body))


# ---------------------------------------------------------------------- the client's side


class KeyClient:
    """Signs the requests to one server, and checks its answers. Threads may share it.

    Args:
        key: The run's key.
        role: What the server is: ``master`` or ``slave``.
        target: Its address as it is dialled, ``host:port``.
    """

    def __init__(self, key: str, role: str, target: str) -> None:
        self._key, self._role, self._target = key.encode(), role, target
        self._lock = threading.Lock()
        self._session: _ClientSession | None = None

    def exchange(
        self,
        request: requests.PreparedRequest,
        send: Callable[[requests.PreparedRequest], requests.Response],
        greet: Callable[[dict[str, str]], requests.Response],
    ) -> requests.Response:
        """Send a request, signed, and return its answer.

        Args:
            send: Sends a request.
            greet: Sends a body to `AUTHENTICATE_PATH`.

        Raises:
            NotAuthenticError: The server does not prove that it has the key.
        """
        session = self._session or self._open(greet, None)
        proof = session.sign(request)
        response = send(request)
        if response.status_code == HTTPStatus.UNAUTHORIZED and RENEW_HEADER in response.headers:
            session = self._open(greet, session)  # it was started anew, or has forgotten us
            proof = session.sign(request)
            response = send(request)
        given = response.headers.get(PROOF_HEADER, "")
        expected = _answer_mac(session.key, proof, response.status_code, response.content)
        # An error without a proof is of a server that did not accept ours: it may say why.
        if not _same(given, expected) and (given or response.status_code < 400):
            raise self._suspect("its answer is not signed with it")
        return response

    def _open(
        self, greet: Callable[[dict[str, str]], requests.Response], old: "_ClientSession | None"
    ) -> "_ClientSession":
        with self._lock:
            if self._session is not old and self._session is not None:
                return self._session  # another thread was quicker
            nonce = secrets.token_hex(32)
            response = greet({"nonce": nonce, "target": self._target})
            if response.status_code in _IGNORANT:
                raise self._suspect(f"it answers {_told(response)}")
            response.raise_for_status()
            try:
                fields = get_values_from_response(response)[4]
                theirs, proof = str(fields["nonce"]), str(fields["proof"])
            except (ValueError, KeyError, TypeError):
                raise self._suspect("it answers something else") from None
            place = self._role, self._target, nonce, theirs
            if not theirs or not _same(proof, _mac(self._key, "server", *place)):
                raise self._suspect("its proof is wrong")
            text = _session_text(nonce, theirs, self._target)
            self._session = _ClientSession(text, bytes.fromhex(_mac(self._key, "session", *place)))
            return self._session

    def _suspect(self, what: str) -> NotAuthenticError:
        return NotAuthenticError(
            f"what listens at {self._target} does not prove that it has the run's key ({what}): "
            "another program has that port, or the two have different keys"
        )


def _session_text(nonce: str, own: str, target: str) -> str:
    """What names a session in the heads of its requests: both nonces and the server's address."""
    return json.dumps([nonce, own, target])


class _ClientSession:
    def __init__(self, text: str, key: bytes) -> None:
        self.key = key
        self._text = text
        self._counts = itertools.count(1)

    def sign(self, request: requests.PreparedRequest) -> str:
        """Put the proof into a request's head; returns it."""
        headers = request.headers
        body = request.body
        content = body.encode() if isinstance(body, str) else body
        count, hashed = str(next(self._counts)), digest(content)  # type: ignore[arg-type]
        signed = [headers.get(name, "") for name in ("Channel", "Token")]
        method, path = str(request.method), request.path_url
        proof = _request_mac(self.key, count, method, path, *signed, hashed)
        headers.update(
            {
                SESSION_HEADER: self._text,
                COUNT_HEADER: count,
                DIGEST_HEADER: hashed,
                PROOF_HEADER: proof,
            }
        )
        return proof


def _told(response: requests.Response) -> str:
    try:
        return f"{response.status_code}: {str(get_values_from_response(response)[3])[:200]}"
    except ValueError:
        return str(response.status_code)


# ---------------------------------------------------------------------- the server's side


class KeyServer:
    """Greets clients, and judges the heads of their requests.

    Args:
        key: The run's key.
        role: What this side is: ``master`` or ``slave``.
        is_mine: Whether an address that a client has dialled is one of this server.
        missing: Error code of requests without a proof.
        invalid: Error code of requests with a wrong one.
    """

    def __init__(
        self, key: str, role: str, is_mine: Callable[[str], bool], missing: int, invalid: int
    ) -> None:
        self._key, self._role, self._is_mine = key.encode(), role, is_mine
        self._missing, self._invalid = missing, invalid
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        #: By this side's nonce, which one session alone has.
        self._sessions: OrderedDict[str, _ServerSession] = OrderedDict()

    def greet(self, body: object) -> dict[str, str]:
        """Answer a greeting: this side's nonce, and its proof. Nothing is kept.

        Raises:
            ResponsibleException: It is none.
        """
        fields = body if isinstance(body, dict) else {}
        nonce, target = fields.get("nonce"), fields.get("target")
        if not (isinstance(nonce, str) and 32 <= len(nonce) <= _MAX_TEXT):
            raise self._refuse(f"'nonce' is no text of 32 to {_MAX_TEXT} letters")
        if not (isinstance(target, str) and len(target) <= _MAX_TEXT and self._is_mine(target)):
            raise self._refuse(f"{str(target)[:100]!r} is not the address of this server")
        # The time and a code of this process in the nonce save keeping it.
        stamp = f"{int(time.monotonic() * 1000):x}.{secrets.token_hex(16)}"
        own = f"{stamp}.{_mac(self._secret, nonce, target, stamp)}"
        return {"nonce": own, "proof": _mac(self._key, "server", self._role, target, nonce, own)}

    def judge(self, headers: Headers, method: str, path: str) -> "Judged":
        """Accept a request by its head.

        Raises:
            ResponsibleException: It is not from one who has the key, came before, is not in the
                form in which clients write it, or its session is not known (then `RENEW_HEADER`
                is in the answer).
        """
        text, count, hashed, proof = (headers.get(name, "") for name in _HEADERS)
        if not (text and count and hashed and proof):
            raise ResponsibleException(
                self._missing, "this side has a run key: the request has no proof of it"
            )
        forms = (COUNT_HEADER, count, _COUNT), (DIGEST_HEADER, hashed, _CODE)
        for name, value, form in *forms, (PROOF_HEADER, proof, _CODE):
            if form.fullmatch(value) is None:
                raise self._malformed(name, value)
        nonce, own, target = self._session_parts(text)
        with self._lock:
            session = self._sessions.get(own)
        is_new = session is None
        if session is None:
            session = self._derived(nonce, own, target)
        elif session.text != text:
            raise self._refuse("the session is another client's")
        signed = [headers.get(name, "") for name in ("Channel", "Token")]
        expected = _request_mac(session.key, count, method, path, *signed, hashed)
        if not _same(proof, expected):
            raise self._refuse("wrong run key, or the request was changed on its way")
        with self._lock:
            if is_new:
                session = self._keep(own, session)
            self._sessions.move_to_end(own)
            session.used = time.monotonic()
            if not session.take(int(count)):
                raise self._refuse("this request came before")
        return Judged(session.key, proof, hashed)

    def _session_parts(self, text: str) -> tuple[str, str, str]:
        """The client's nonce, this side's, and the address that was dialled."""
        try:
            parts = json.loads(text)
            nonce, own, target = parts
            # Other texts with the same parts would be other sessions where texts are compared.
            is_formed = _session_text(nonce, own, target) == text
        except (ValueError, TypeError, RecursionError):
            is_formed = False
        if not (is_formed and isinstance(parts, list) and all(isinstance(p, str) for p in parts)):
            raise self._malformed(SESSION_HEADER, text)
        if _NONCE.fullmatch(own) is None:
            raise self._malformed(SESSION_HEADER, text)
        return nonce, own, target

    def _derived(self, nonce: str, own: str, target: str) -> "_ServerSession":
        """The session that begins with a nonce of this process."""
        stamp, _, code = own.rpartition(".")
        age = time.monotonic() - int(stamp.partition(".")[0], 16) / 1000
        if not _same(code, _mac(self._secret, nonce, target, stamp)) or age > durations.NONCE_LIFE:
            raise _StaleSession(self._invalid, "unknown session; authenticate again")
        place = self._role, target, nonce, own
        text = _session_text(nonce, own, target)
        return _ServerSession(bytes.fromhex(_mac(self._key, "session", *place)), text)

    def _keep(self, own: str, session: "_ServerSession") -> "_ServerSession":
        kept = self._sessions.setdefault(own, session)  # two first requests may come at once
        while len(self._sessions) > MAX_SESSIONS:
            oldest = next(iter(self._sessions.values()))
            if time.monotonic() - oldest.used < 2 * durations.NONCE_LIFE:
                break  # its nonce might still be good: its requests must not come again
            self._sessions.popitem(last=False)
        return kept

    def _malformed(self, name: str, value: str) -> ResponsibleException:
        message = f"header {name!r} is malformed: {value[:40]!r}"
        return ResponsibleException(self._invalid, message, status_code=HTTPStatus.BAD_REQUEST)

    def _refuse(self, message: str) -> ResponsibleException:
        return ResponsibleException(self._invalid, message, status_code=HTTPStatus.FORBIDDEN)


class _StaleSession(ResponsibleException):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message, status_code=HTTPStatus.UNAUTHORIZED)

    def get_response(self) -> flask.Response:
        response = super().get_response()
        response.headers[RENEW_HEADER] = "Run-Key"
        return response


class _ServerSession:
    def __init__(self, key: bytes, text: str) -> None:
        self.key, self.text = key, text
        self.used = time.monotonic()
        self._highest = 0
        self._seen: set[int] = set()

    def take(self, count: int) -> bool:
        """Whether a request's number is new."""
        if count in self._seen or count <= self._highest - WINDOW:
            return False
        self._seen.add(count)
        self._highest = max(self._highest, count)
        if len(self._seen) > 2 * WINDOW:
            self._seen = {one for one in self._seen if one > self._highest - WINDOW}
        return True


class Judged:
    """A request that was accepted by its head."""

    def __init__(self, key: bytes, proof: str, hashed: str) -> None:
        self._key, self._proof, self._digest = key, proof, hashed

    def is_body(self, body: bytes) -> bool:
        """Whether this is the body that was sent."""
        return _same(self._digest, digest(body))

    def sign(self, status: int, body: bytes) -> str:
        """The proof for the answer."""
        return _answer_mac(self._key, self._proof, status, body)
