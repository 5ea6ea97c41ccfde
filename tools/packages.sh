#!/usr/bin/env bash
# Install system packages: tools/packages.sh [COMMAND=]PACKAGE ...
# A package whose command is found is left alone. Only root on Debian or Ubuntu installs; otherwise
# this stops with the one command to run. Services of the packages are neither started nor enabled.
set -eu
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"

missing=() commands=()
for item in "$@"; do
    if [[ $item != *=* ]] || ! command -v "${item%%=*}" >/dev/null; then
        missing+=("${item#*=}") commands+=("$item")
    fi
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "Missing: ${commands[*]} (command=Debian package). Install them with your system's package manager." >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "Missing system packages: ${missing[*]}. Run: sudo $0 ${commands[*]}" >&2
    exit 1
fi

policy=/usr/sbin/policy-rc.d                    # asked by every package before it starts a service
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
fi
export DEBIAN_FRONTEND=noninteractive
echo "Installing ${missing[*]}"
apt-get update -qq </dev/null >/dev/null
for package in "${!missing[@]}"; do             # packages that this release has dropped: take the default version
    if [[ ${missing[package]} == openjdk-* ]] && ! apt-cache show "${missing[package]}" >/dev/null 2>&1; then
        missing[package]=default-jdk-headless
    fi
done
apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 "${missing[@]}" </dev/null >/dev/null
if command -v systemctl >/dev/null; then
    for package in "${missing[@]}"; do
        systemctl disable --quiet "$package" 2>/dev/null || true
    done
fi
