#!/bin/sh
# Runs a test on the machine's GPU; skipped (77) where there is none.
# usage: gpu.sh PROGRAM ARGUMENT...
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || { echo "no GPU here"; exit 77; }
exec "$@"
