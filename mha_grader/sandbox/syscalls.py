"""The system calls that a student's process may not make, as a filter that bubblewrap loads (seccomp).

Left out is what reaches past the sandbox or past its limits: namespaces and mounts, other processes, the
kernel's keyrings, memory that belongs to no process and so is not counted, sockets of every network and to the
machine below this one, news of files that others use as well, numbers that are counted for the whole machine, and
the large interfaces of the kernel that plain computing never needs.
"""

from __future__ import annotations

import errno
import platform
import struct

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FORBIDDEN = {  # numbers on x86_64 and on aarch64; from 424 on they are the same everywhere
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "sched_setaffinity": (203, 122),
    "setxattr": (188, 5),  # lists of rights are kept outside of all limits
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    **{
        name: (number, number)
        for name, number in {"open_tree": 428, "move_mount": 429, "fsopen": 430}.items()
    },
    **{name: (number, number) for name, number in {"fsconfig": 431, "fsmount": 432, "fspick": 433}.items()},
    **{name: (number, number) for name, number in {"pidfd_getfd": 438, "mount_setattr": 442}.items()},
}
# These are said not to exist, so that libraries do without: `clone3` hides its flags from a filter.
ABSENT = {
    "clone3": (435, 435),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    # These tell or change which files are in the machine's memory, which outlives a process.
    "mincore": (27, 232),
    "readahead": (187, 213),
    "fadvise64": (221, 223),
    "cachestat": (451, 451),
    "io_setup": (206, 0),  # of its contexts there are few on a machine
    "inotify_init": (253, 26),  # tells when others use a file that all see
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "vmsplice": (278, 75),  # pages in a pipe are no process's any more
    "splice": (275, 76),
    "tee": (276, 77),
    "landlock_create_ruleset": (444, 444),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
CLONE, MMAP, SOCKET, FCNTL = (56, 220), (9, 222), (41, 198), (72, 25)
SETSOCKOPT, GETSOCKOPT = (54, 208), (55, 209)
NEW_NAMESPACE = 0x7E020000  # all CLONE_NEW… flags
SHARED_ANONYMOUS = 0x21  # MAP_SHARED | MAP_ANONYMOUS
UNIX = 1  # sockets between processes of one machine: the only ones that lead anywhere in the sandbox
SEND_BUFFER = 7  # SO_SNDBUF: the machine may allow much
COOKIE = 57  # SO_COOKIE: a number that is counted up for the whole machine
# F_SETLK, F_SETLKW and F_OFD_… of both: of locks on parts of a file there may be any number. F_SETLEASE and
# F_NOTIFY tell when others use a file.
NO_FCNTL = (6, 7, 37, 38, 1024, 1026)

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in the kernel's struct seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERROR | error)


def _argument(number: int, position: int, *steps: bytes) -> bytes:
    """Judge one call by the low half of one argument; `steps` end in a verdict."""
    body = _step(_LOAD, _ARGUMENTS + 8 * position) + b"".join(steps)
    return _step(_EQUAL, number, 0, len(body) // 8) + body


def program(machine: str = platform.machine()) -> bytes | None:
    """The filter for a kind of machine, as the kernel reads it; None for one that is not known."""
    if machine not in ARCHITECTURES:
        return None
    column = list(ARCHITECTURES).index(machine)
    allow = _step(_RETURN, _ALLOW)
    steps = [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, ARCHITECTURES[machine], 1, 0), _refuse(errno.EPERM)]
    # Numbers from 2**30 on are a second way to say the same calls on x86_64.
    steps += [_step(_LOAD, _NUMBER), _step(_AT_LEAST, 2**30, 0, 1), _refuse(errno.EPERM)]
    for calls, error in ((FORBIDDEN, errno.EPERM), (ABSENT, errno.ENOSYS)):
        for numbers in calls.values():
            steps += [_step(_EQUAL, numbers[column], 0, 1), _refuse(error)]
    steps += [
        _argument(CLONE[column], 0, _step(_ANY_BIT, NEW_NAMESPACE, 0, 1), _refuse(errno.EPERM), allow),
        _argument(
            MMAP[column],
            3,
            _step(_AND, SHARED_ANONYMOUS),
            _step(_EQUAL, SHARED_ANONYMOUS, 0, 1),
            _refuse(errno.ENOMEM),
            allow,
        ),
        _argument(
            SOCKET[column],
            0,
            _step(_EQUAL, UNIX, 1),
            _refuse(errno.EAFNOSUPPORT),
            allow,
        ),
        _argument(SETSOCKOPT[column], 2, _step(_EQUAL, SEND_BUFFER, 0, 1), _refuse(errno.EPERM), allow),
        _argument(GETSOCKOPT[column], 2, _step(_EQUAL, COOKIE, 0, 1), _refuse(errno.ENOPROTOOPT), allow),
        _argument(
            FCNTL[column],
            1,
            *(_step(_EQUAL, command, len(NO_FCNTL) - place) for place, command in enumerate(NO_FCNTL)),
            allow,
            _refuse(errno.ENOLCK),
        ),
        allow,
    ]
    return b"".join(steps)
