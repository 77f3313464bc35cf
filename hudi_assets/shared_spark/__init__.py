"""One Spark for all runs of a machine: a Spark Connect server that the first run starts, and the next ones find.

- `sessions` is what a run asks: a session of its own in that server. Begin there.
- `server` is the server's process. It ends when nobody has used it for a while.
- `folder` is the server's folder under the home directory, by which runs and server know of each other.
- `wanted` says which runs can share a server, and which need another one.
- `local` has the settings of a Spark on one machine. A session of one's own has them too.
"""
