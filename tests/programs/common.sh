# shellcheck shell=bash
# Sourced by the programs of this folder: strictness, and what a missing program means to the runner.
set -euo pipefail

# need COMMAND...: skips this program unless all are there.
need() {
    local name
    for name in "$@"; do
        if ! command -v "$name" >/dev/null; then
            echo "$name is not installed"
            exit 77
        fi
    done
}

# until_true COMMAND...: waits up to 30 s for it to succeed.
until_true() {
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "never came true: $*" >&2
    return 1
}
