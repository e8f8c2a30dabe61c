"""A place where processes wait until all of them are there."""

import contextlib
import socket
import time

# Seconds between two attempts to reach process 0.
_RETRY = 0.2


def meet(address: str, process: int, processes: int, wait: float) -> None:
    """Returns when all processes have called this.

    Args:
        address: `"host:port"`, at which process 0 listens meanwhile.
        process: number of this process, from 0.
        processes: how many there are.
        wait: seconds until all have to be there.

    Raises:
        TimeoutError: not all were; process 0 names those that were not.
        ValueError: two processes have one number, or expect different numbers of them.
        OSError: process 0 cannot listen at the address.
    """
    host, _, port = address.rpartition(":")
    end = time.monotonic() + wait
    if process == 0:
        _receive(int(port), address, processes, end, wait)
    else:
        _visit((host.strip("[]"), int(port)), process, processes, end, wait)


def _receive(port: int, address: str, processes: int, end: float, wait: float) -> None:
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(_listener(port))
        except OSError as error:
            raise OSError(
                f"process 0 cannot listen at {address} ({error.strerror}): choose "
                "another port"
            ) from error
        guests: list[tuple[int, socket.socket]] = []
        answer = "go"
        while answer == "go" and len(guests) < processes - 1:
            place.settimeout(max(end - time.monotonic(), 0.01))
            try:
                guest = stack.enter_context(place.accept()[0])
                guest.settimeout(5.0)
                words = guest.recv(100).split()
                number, expected = int(words[0]), int(words[1])
            except TimeoutError:
                missing = sorted({*range(1, processes)} - {n for n, _ in guests})
                if time.monotonic() < end:
                    continue  # a guest without a word
                raise TimeoutError(
                    f"process {', '.join(map(str, missing))} of {processes} did not "
                    f"come to {address} within {wait:g} seconds: start every process "
                    "with its own number and this address, and see that no firewall "
                    "is in the way"
                ) from None
            except (ValueError, IndexError, OSError):
                continue  # somebody else
            if expected != processes:
                answer = f"process {number} expects {expected} processes, not "
                answer += str(processes)
            elif any(number == other for other, _ in guests):
                answer = f"two processes have the number {number}"
            guests.append((number, guest))
        for _, guest in guests:
            with contextlib.suppress(OSError):
                guest.sendall(answer.encode())
    if answer != "go":
        raise ValueError(f"{answer}: give each its own number, and all the same count")


def _listener(port: int) -> socket.socket:
    """A socket at a port of all addresses of this machine."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True
        )
    return socket.create_server(("", port))


def _visit(
    place: tuple[str, int], process: int, processes: int, end: float, wait: float
) -> None:
    answer = b""
    while not answer:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(
                f"process {process} did not meet all others at process 0, "
                f"{place[0]}:{place[1]}, within {wait:g} seconds: start every process "
                "with its own number and this address, and see that no firewall is in "
                "the way"
            )
        try:
            with socket.create_connection(place, timeout=left) as host:
                host.sendall(f"{process} {processes}\n".encode())
                answer = host.recv(1000)
        except OSError:
            time.sleep(_RETRY)
        else:
            if not answer:
                time.sleep(_RETRY)
    if answer != b"go":
        raise ValueError(f"Refused by process 0. Received: {answer.decode()}")
