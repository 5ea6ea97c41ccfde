#!/usr/bin/env bash
# The lines of `pip install` as one line that changes, on a terminal; elsewhere the last one only.
set -eu
terminal=
[ -t 2 ] && terminal=yes
count=0
while IFS= read -r line; do
    case $line in
        Collecting\ * | Building\ wheel*) count=$((count + 1)); said="$count  ${line%% (from *}" ;;
        Installing\ *) said="unpacking $count packages" ;;
        Successfully\ installed\ *) said= ; set -- ${line#Successfully installed }
            last="installed $# packages" ;;
        *) continue ;;
    esac
    if [ -n "$terminal" ]; then printf '\r\033[K%.70s' "$said" >&2; fi
done
[ -n "$terminal" ] && printf '\r\033[K' >&2
echo "${last:-nothing was missing}" >&2
