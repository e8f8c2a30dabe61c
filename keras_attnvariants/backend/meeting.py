"""A place where processes wait until all of them are there."""

import contextlib
import socket
import time

from keras_attnvariants.utils.checks import check_address

# Seconds between two attempts to reach process 0, and in which a guest has to speak.
_RETRY = 0.2
_PATIENCE = 5.0

# The number of a process, and the way to it.
Guest = tuple[int, socket.socket]


def meet(address: str, process: int, processes: int, wait: float) -> None:
    """Returns when all processes have called this.

    Args:
        address: `"host:port"`, at which process 0 listens meanwhile.
        process: number of this process, from 0.
        processes: how many there are.
        wait: how long to wait for all processes, in seconds.

    Raises:
        TimeoutError: not all were; process 0 names those that were not.
        ValueError: two processes have one number, or expect different numbers of them.
        OSError: process 0 cannot listen at the address.
    """
    host, port = check_address("address", address)
    end = time.monotonic() + wait
    if process == 0:
        _receive(port, address, processes, end, wait)
    else:
        _visit((host.strip("[]"), port), process, processes, end, wait)


def _receive(port: int, address: str, processes: int, end: float, wait: float) -> None:
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(_listener(port))
        except OSError as error:
            raise OSError(
                f"process 0 cannot listen at {address} ({error.strerror}): choose "
                "another port"
            ) from error
        guests: list[Guest] = []
        came: set[int] = set()
        answer = "go"
        while answer == "go" and len(guests) < processes - 1:
            place.settimeout(max(end - time.monotonic(), 0.01))
            try:
                guest = stack.enter_context(place.accept()[0])
                guest.settimeout(_PATIENCE)
                words = guest.recv(100).split()
                number, expected = int(words[0]), int(words[1])
                guests = _waiting(guests)
            except TimeoutError:
                guests = _waiting(guests)
                if time.monotonic() < end:
                    continue  # a guest without a word
                others = {*range(1, processes)}
                absent = others - came
                missing = sorted(absent or others - {number for number, _ in guests})
                raise TimeoutError(
                    f"process {', '.join(map(str, missing))} of {processes} did not "
                    f"{'come to' if absent else 'stay at'} {address} within {wait:g} "
                    "seconds: start every process with its own number and this "
                    "address, and see that no firewall is in the way"
                ) from None
            except (ValueError, IndexError, OSError):
                continue  # somebody else
            if expected != processes:
                answer = f"process {number} expects {expected} processes, not "
                answer += str(processes)
            elif any(number == other for other, _ in guests):
                answer = f"two processes have the number {number}"
            guests.append((number, guest))
            came.add(number)
        for _, guest in guests:
            with contextlib.suppress(OSError):
                guest.sendall(answer.encode())
    if answer != "go":
        raise ValueError(f"{answer}: give each its own number, and all the same count")


def _waiting(guests: list[Guest]) -> list[Guest]:
    """Those at whose other end there is still a process."""
    return [(number, guest) for number, guest in guests if _is_open(guest)]


def _is_open(guest: socket.socket) -> bool:
    """Whether a process that has said all that it had to say has not hung up."""
    guest.setblocking(False)
    try:
        return bool(guest.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        guest.settimeout(_PATIENCE)


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
