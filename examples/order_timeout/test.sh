#!/bin/sh
# test.sh PROGRAM CASE [STORE]: one check of order_timeout from outside, on SQLite or on an empty database of PostgreSQL.
# Exit status 0 if it passes.
set -eu
. "$(dirname "$0")/../common/test_functions"
arguments="--store ${3:-sqlite:shop.db}"

# adds_up: the line of "out" that accounts for all orders adds up, including the open ones.
adds_up() {
  shows '^[0-9]* orders, [0-9]* closed, [0-9]* paid, 0 lost, [0-9]* run again after a lease ran out$'
  awk '/^[0-9]* orders,/ { all = $1; rest = $3 + $5 } / more are open/ { rest += $1 } END { exit all != rest }' out ||
    fail "the orders do not add up"
}

case $2 in
  help)
    run 0 --help
    for option in store seconds rate limit pay-percent work lease threads plain; do
      shows "--$option "
    done
    ;;
  bad_options)
    complains --no-such-option
    complains no-such-argument
    complains --seconds soon
    complains --pay-percent 101
    complains --threads 0
    complains --lease 1
    [ ! -e shop.db ] || fail "a database was created despite a bad option"
    ;;
  bad_store)
    echo 'this is no database, and long enough not to be taken for an empty one' > text
    cp text before
    complains --store sqlite:text
    cmp -s before text || fail "it wrote to a file that is not its own"
    complains --store "sqlite:$folder"
    complains --store sqlite:no/such/folder/shop.db
    complains --store mysql://localhost/shop
    complains --store "postgresql:///shop?host=$folder"
    ;;
  summary)
    run 0 --seconds 4 --limit 1000 --rate 50
    adds_up
    shows '^ *1 s | orders all [1-9]'
    shows '| .* held [0-9]* running [0-9]'
    shows ' 0 lost, 0 run again after a lease ran out$'
    shows '^  [1-9][0-9]* reports, [0-9]* sent, 0 of them before an earlier one$'
    ;;
  two)
    # Both run until the second one, however late it starts, has run something. It has no customers, so these were
    # orders of the first one.
    begin first --limit 1000 --rate 50
    first=$pid
    begin second --limit 1000 --rate 0
    waits_for second '| run here fired [1-9]'
    for node in "$first" "$pid"; do
      kill -INT "$node"
      ends "$node"
    done
    grep -q '^  this node  [1-9][0-9]* fired' second.out || fail "the second node has run nothing"
    run 0 --seconds 1 --limit 100 --rate 0
    adds_up
    shows ', 0 lost, 0 run again'
    ;;
  killed)
    # Killed in the middle of runs, which take long. The next start continues with what was left. (On a busy machine, none
    # may be paid for by then.)
    begin first --seconds 60 --limit 500 --rate 50 --work 300 --lease 1000
    waits_for first '^ *3 s |'
    kill -9 "$pid"
    wait "$pid" 2> /dev/null || true
    run 0 --seconds 8 --limit 500 --rate 0 --work 0 --lease 1000 --threads 16
    adds_up
    shows ', [1-9][0-9]* closed, [0-9]* paid, 0 lost, [1-9][0-9]* run again after a lease ran out$'
    ! grep -q 'more are open' out || fail "orders were left open"
    ;;
  interrupt)
    begin first --seconds 60
    waits_for first '^ *1 s |'
    kill -INT "$pid"
    ends "$pid"
    ;;
  table)
    on_a_terminal --seconds 2
    shows "^$escape\[[5-9]A"
    shows '^Summary of '
    ;;
  *)
    fail "no such case: $2"
    ;;
esac
