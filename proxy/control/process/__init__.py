"""The life of the process: signals, a drain, the klamm that comes next, what systemd is told."""
