"""Servers, clients and helpers that masters and slaves are made of."""

from .app import (
    CommonErrorCode,
    ResponsibleException,
    failure_response,
    flask_response,
    get_values_from_response,
    responsible,
    success_response,
)
from .common import (
    ControllableContext,
    ControllableService,
    default_func,
    random_token,
    translate_dict_func,
)
from .network import HttpEngine, get_host_ip, get_http_engine_class, split_http_address
from .threading import DblEvent

__all__ = [
    "CommonErrorCode",
    "ControllableContext",
    "ControllableService",
    "DblEvent",
    "HttpEngine",
    "ResponsibleException",
    "default_func",
    "failure_response",
    "flask_response",
    "get_host_ip",
    "get_http_engine_class",
    "get_values_from_response",
    "random_token",
    "responsible",
    "split_http_address",
    "success_response",
    "translate_dict_func",
]
