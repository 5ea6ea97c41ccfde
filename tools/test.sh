#!/usr/bin/env bash
# All tests but the long ones. Those with brokers wait most of their time, and their clients have timeouts of their
# own: they go first, one after the other; the others run beside them with what is left of the processors.
set -u
cd "$(dirname "$0")/.."
others=$(mktemp)
nice -n 19 .venv/bin/python -m pytest tests -q -m "not long and not brokers" -n 2 --dist loadfile &>"$others" &
pid=$!
trap 'kill "$pid" 2>/dev/null; rm -f "$others"' EXIT
trap 'exit 130' INT TERM

.venv/bin/python -m pytest tests -q -m "not long and brokers"
with_brokers=$?
tail -n +1 -f --pid="$pid" "$others" &
wait "$!"
wait "$pid"
exit $(($? || with_brokers))
