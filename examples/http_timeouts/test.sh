#!/bin/sh
# test.sh PROGRAM CASE: one check of http_timeouts from outside. Exit status 0 if it passes.
#
# The program itself finds out whether a connection was cut off too early or never, and then ends with status 1. How
# late a cut-off was, and how many requests were answered, depends on what else the machine does, so nothing here checks
# that.
set -eu
. "$(dirname "$0")/../common/test_functions"

# served: no fault in any run, and the first column of figures shows that all kinds of slow clients were cut off.
served() {
  ! grep '^FAILED' out || fail "it found faults"
  awk '
    /^  answers per second/ { answers = $4 }
    /^  cut off idle, in header, in request/ { idle = $8 + 0; header = $9 + 0; request = $10 + 0 }
    /^  slow clients: cut off, early, never/ { early = $8 + 0; never = $9 + 0 }
    END { exit !(answers > 0 && idle >= 200 && header > 0 && request > 0 && early == 0 && never == 0) }
  ' out || fail "the figures are not those of a server that cuts off slow clients"
}

few="--connections 200 --slow 30 --idle 1500 --request 600"

case $2 in
  help)
    run 0 --help
    for option in connections slow rate seconds idle header request timers compare trace; do
      shows "--$option "
    done
    ;;
  bad_options)
    complains --no-such-option
    complains no-such-argument
    complains --seconds soon
    complains --seconds 0
    complains --connections 0
    complains --connections -1
    complains --rate -1
    complains --idle 9
    complains --timers best
    complains --compare --timers rondo
    complains --compare --trace trace.json
    complains --timers asio --trace trace.json
    (
      ulimit -n 100
      complains --connections 100
      grep -q ' the system allows 100 ' err || fail "does not say which limit: $(cat err)"
    )
    ;;
  rondo | asio)
    run 0 $few --rate 1000 --seconds 2 --header 300 --timers "$2"
    served
    shows "^ *$2 *\$"
    ;;
  trace)
    run 0 $few --rate 1000 --seconds 1 --header 300 --trace trace.json
    served
    python3 -c '
import json
events = json.load(open("trace.json"))["traceEvents"]
runs = [e for e in events if e["ph"] == "X" and "late" in e.get("args", {})]
assert len(runs) >= 200, len(runs)
' || fail "the trace does not have the timeouts"
    ;;
  closed_loop)
    run 0 $few --rate 0 --seconds 1 --header 300
    served
    ;;
  compare)
    run 0 $few --rate 1000 --seconds 1 --header 300 --compare
    served
    shows '^Processor time per request, asio / rondo: [0-9.]*$'
    ;;
  slow_header)
    # The timeout of the whole request also ends a slow header.
    run 0 $few --rate 1000 --seconds 1 --header 5000
    ! grep '^FAILED' out || fail "it found faults"
    ;;
  *)
    fail "no such case: $2"
    ;;
esac
