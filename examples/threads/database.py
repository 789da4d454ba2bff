#!/usr/bin/env python3
"""Runs a command beside a PostgreSQL that all instances of the app share.

    database.py INSTANCE SQL COMMAND..

Instance 1 makes a cluster in memory (or in the temporary directory), fills it with the SQL file's
statements, and takes it away when it ends; the others wait for that cluster. The command finds it in
PGHOST, PGPORT, PGUSER and PGDATABASE, as PostgreSQL's own programs do.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATIENCE_S = 30
# Then the id of the program that has started the instances.
PREFIX = f"tenfold-database-{os.getuid()}-"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    # In its directory, and gone with it, instead of files of its own in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
    # Nothing in it is worth a disk.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}
# Who may enter the directory is its owner; everybody else is the app, which owns its tables only.
ACCESS = "local all all trust\nhost postgres app 127.0.0.1/32 trust\n"
ROLE = "CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app; SET ROLE app;"


def main():
    if len(sys.argv) < 4 or not sys.argv[1].isdigit():
        sys.exit(f"database: which instance is it, and what to run? {sys.argv[0]} 1 FILE.sql COMMAND..")
    instance, sql, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    directory = shared_directory()
    if instance != 1:
        port = await_file(directory / "open", lambda: True)
        os.execvpe(command[0], command, environment(port))
    # As an exit, so that the cluster goes too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with cluster(directory, sql) as port:
        sys.exit(subprocess.run(command, env=environment(port), check=False).returncode)


def environment(port):
    access = {"PGHOST": "127.0.0.1", "PGPORT": port, "PGUSER": "app", "PGDATABASE": "postgres"}
    return {**os.environ, **access}


def shared_directory():
    """The same for all instances that one program has started, and nobody else's."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
    return parent / f"{PREFIX}{os.getppid()}"


def sweep(parent):
    """What an instance that was killed could not take away, of programs that are gone."""
    for left in parent.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(PREFIX)).exists():
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def cluster(directory, sql):
    """The port of a running cluster that is gone afterwards."""
    user = owner()
    sweep(directory.parent)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    os.chown(directory, user.pw_uid, user.pw_gid)
    server = None
    try:
        data = directory / "data"
        run(user, directory, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N")
        (data / "pg_hba.conf").write_text(ACCESS)
        port = free_port()
        server = start(user, directory, port)
        await_file(data / "postmaster.pid", lambda: server.poll() is None, "ready")
        psql = ["psql", "-q", "-h", directory, "-p", port, "-U", "postgres", "-d", "postgres"]
        run(user, directory, *psql, "-v", "ON_ERROR_STOP=1", "-c", ROLE, "-c", sql.read_text())
        (directory / "open").write_text(port)
        yield port
    finally:
        if server:
            # At once: there is nothing to keep.
            server.send_signal(signal.SIGQUIT)
            server.wait()
        shutil.rmtree(directory, ignore_errors=True)


def start(user, directory, port):
    settings = [word for key, value in SETTINGS.items() for word in ("-c", f"{key}={value}")]
    return subprocess.Popen(
        [program("postgres"), "-D", directory / "data", "-k", directory, "-p", port, *settings],
        cwd=directory,
        **identity(user),
    )


def run(user, directory, name, *arguments):
    done = subprocess.run(
        [program(name), *map(str, arguments)],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        **identity(user),
    )
    if done.returncode:
        sys.exit(f"database: {name} failed, is PostgreSQL whole? It said: {done.stderr.strip()}")


def identity(user):
    """PostgreSQL refuses to be run by root."""
    if os.getuid() != 0:
        return {}
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def owner():
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    sys.exit("database: PostgreSQL refuses root, and there is no user postgres: run this as another user")


def program(name):
    """Debian keeps most of them where no PATH leads."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if not found:
        sys.exit(f"database: there is no {name} here: apt-get install postgresql")
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return str(found.getsockname()[1])


def await_file(path, is_alive, end=""):
    """What it says, once that ends so."""
    until = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(OSError):
            text = path.read_text().rstrip()
            if text and text.endswith(end):
                return text
        if not is_alive() or time.monotonic() > until:
            sys.exit(f"database: there is no PostgreSQL in {path.parent}; instance 1 says why")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
