#!/bin/sh
# expect.sh PROGRAM FILE: exit status 0 if the program succeeds and prints exactly the content of the file.
set -eu
said=$("$1")
printf '%s\n' "$said" | diff -u "$2" -
