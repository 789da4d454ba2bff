"""Runs a command beside a Redis that all instances share: `with_redis.py INSTANCE COMMAND..`.

Instance 1 starts it, in memory only, and takes it away; its socket is in REDIS_SOCKET.
"""

import os
import signal
import subprocess
import sys
import tempfile

instance, command = sys.argv[1], sys.argv[2:]
# Of the program that has started the instances.
path = f"{tempfile.gettempdir()}/tenfold-redis-{os.getppid()}.sock"
environment = {**os.environ, "REDIS_SOCKET": path}
if instance != "1":
    os.execvpe(command[0], command, environment)
# As an exit, so that Redis goes too.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
server = subprocess.Popen(
    ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no"],
    stdout=subprocess.DEVNULL,
)
try:
    app = subprocess.Popen(command, env=environment)
    try:
        sys.exit(app.wait())
    finally:
        app.terminate()
finally:
    server.terminate()
    server.wait()
