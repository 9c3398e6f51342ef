"""Pictures by their URLs, from public addresses alone.

A service that fetches what strangers name can be made to ask machines that only it can reach. So a name is resolved
once, every address of it must be public, the connection goes to an address that was checked, and each redirect is
checked anew.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from urllib.parse import SplitResult, urljoin, urlsplit

from fastapi import HTTPException

PORTS = {"http": 80, "https": 443}
MOST_REDIRECTS = 3
LONGEST_URL = 2048
BYTES_AT_ONCE = 65_536
SENT_HEADERS = {"Accept": "image/*", "User-Agent": "deephash-pipeline"}
GLOBAL_UNICAST, NAT64 = ipaddress.IPv6Network("2000::/3"), ipaddress.IPv6Network("64:ff9b::/96")
# Python's own list is of its version: 3.11.7 takes all of 192.0.0.0/24 but eight addresses for public.
INSIDE = [
    ipaddress.ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # Teredo and other protocols, documentation, 6to4, AS112, documentation.
        *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
        # Every virtual machine of Azure reaches the host's services here.
        "168.63.129.16/32",
    )
]
"""Addresses for special purposes, after IANA's two registries, and one of a cloud."""
REDIRECTS = (301, 302, 303, 307, 308)


def fetched(url: str, most_bytes: int, seconds: float) -> bytes:
    """Read a picture from the web.

    Args:
        url: ``http`` or ``https``, on the port of either.
        most_bytes: number of bytes; more are refused while they arrive.
        seconds: seconds for all of it, redirects included.

    Raises:
        HTTPException: 422, the URL has another form or leads to an address that is not public; 413, too many bytes;
            408, too slow; 400, there is no answer, or no picture.
    """
    until = time.monotonic() + seconds
    try:
        for _ in range(MOST_REDIRECTS + 1):
            parts = _checked(url)
            connection = _connected(parts, until)
            # A server that sends a byte now and then would never let a read time out.
            alarm = threading.Timer(_left(until), connection.sock.shutdown, [socket.SHUT_RDWR])
            alarm.start()
            try:
                target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request("GET", target, headers=SENT_HEADERS | {"Host": parts.netloc})
                answer = connection.getresponse()
                if answer.status in REDIRECTS and answer.headers.get("Location"):
                    url = urljoin(url, answer.headers["Location"])
                    continue
                if answer.status != http.client.OK:
                    raise HTTPException(400, f"url: the server answers {answer.status}; give the URL of a picture")
                return _body(answer, most_bytes, until)
            finally:
                alarm.cancel()
                connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise HTTPException(408, f"url: no picture within {seconds:g} seconds") from error
        raise HTTPException(400, f"url: cannot be read ({type(error).__name__})") from error
    raise HTTPException(400, f"url: more than {MOST_REDIRECTS} redirects")


def _checked(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise HTTPException(422, "url: cannot be read; give http:// or https://") from error
    plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
    if parts.scheme not in PORTS or not parts.hostname or not plain:
        raise HTTPException(422, f"url: give http:// or https:// with at most {LONGEST_URL} plain characters")
    if parts.username is not None or port not in (None, PORTS[parts.scheme]):
        raise HTTPException(422, "url: must have no user and no port of its own")
    return parts


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet; one that stands for an IPv4 address is as that is.

    Example:
        >>> is_public("127.0.0.1"), is_public("169.254.169.254"), is_public("::ffff:10.0.0.1"), is_public("8.8.8.8")
        (False, False, False, True)
    """
    number = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(number, ipaddress.IPv6Address):
        if number.ipv4_mapped or number in NAT64:
            number = ipaddress.IPv4Address(int(number) % 2**32)
        elif number not in GLOBAL_UNICAST:
            return False
    return number.is_global and not any(number in network for network in INSIDE)


def addresses_of(host: str, port: int) -> list[str]:
    """IP addresses of a name."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _connected(parts: SplitResult, until: float) -> http.client.HTTPConnection:
    host, port = parts.hostname or "", PORTS[parts.scheme]
    found = addresses_of(host, port)
    if not found or not all(map(is_public, found)):
        raise HTTPException(422, "url: leads to no public address")
    sock = socket.create_connection((found[0], port), _left(until))
    if parts.scheme == "https":
        sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
    connection = http.client.HTTPConnection(host, port)
    # Already connected, to the address that was checked.
    connection.sock = sock
    return connection


def _body(answer: http.client.HTTPResponse, most: int, until: float) -> bytes:
    content = bytearray()
    while True:
        some = answer.read1(BYTES_AT_ONCE)
        _left(until)
        content += some
        if len(content) > most:
            raise HTTPException(413, f"url: the picture has more than {most:,} bytes")
        if not some:
            return bytes(content)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
