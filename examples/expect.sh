#!/bin/sh
# expect.sh PROGRAM FILE: exit status 0 if the program ends well, having said exactly what the file says.
set -eu
said=$("$1")
printf '%s\n' "$said" | diff -u "$2" -
