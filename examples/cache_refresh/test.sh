#!/bin/sh
# test.sh PROGRAM CASE: one look at cache_refresh from outside. Exit status 0 if what it did is right.
set -eu
. "$(dirname "$0")/../common/test_functions"
arguments="--db origin.db --catalogue catalogue"

# A catalogue of 100 packages with 5 fields each.
i=0
while [ "$i" -lt 100 ]; do
  i=$((i + 1))
  printf 'Package: p%s\nVersion: 1.%s\nArchitecture: all\nSection: misc\nDescription: a package\n of two lines\n\n' "$i" "$i"
done > catalogue

case $2 in
  help)
    run 0 --help
    for option in db catalogue keys readers reads pick edits workers fail-percent seconds seed plain; do
      shows "--$option "
    done
    ;;
  bad_options)
    complains --no-such-option
    complains no-such-argument
    complains --seconds
    complains --seconds soon
    complains --readers 0
    complains --reads -1
    complains --fail-percent 101
    complains --pick best
    [ ! -e origin.db ] || fail "a bad option made a database"
    ;;
  bad_database)
    echo 'this is no database, and long enough not to be taken for an empty one' > text
    complains --db text
    complains --db "$folder"
    complains --db no/such/folder/origin.db
    cp catalogue before
    complains --db catalogue
    cmp -s before catalogue || fail "a file of somebody else's was written to"
    ;;
  bad_catalogue)
    complains --catalogue no_such_file
    : > empty
    complains --catalogue empty
    complains --catalogue "$script"
    ;;
  summary)
    run 0 --seconds 2
    shows 'filled from catalogue, 500 rows'
    shows '^ *1 s | keys all 500 '
    shows '^Summary of 2'
    shows '^  served .* current .* worst'
    shows 'two at once for one key 0$'
    shows ', 0 never loaded, 0 wrong$'
    run 0 --seconds 1 --keys 10 --pick uniform
    shows 'as it was left, 10 rows'
    ;;
  no_edits)
    # Nothing changes at the origin: every value served is current, and all are equal at the end.
    run 0 --seconds 2 --edits 0 --fail-percent 0
    shows 'current 100 %, behind the origin p99 0 us, worst 0 us$'
    shows 'failed and retried 0,'
    shows '  at the end 500 equal to the origin, 0 older, '
    ;;
  edits)
    # Much changes and some loads fail: reads are behind at times, and everything gets loaded all the same.
    run 0 --seconds 3 --edits 500 --keys 50 --fail-percent 10
    shows 'current [1-9][0-9.]* %, behind the origin p99 [1-9]'
    ! grep -q 'current 100 %' out || fail "edits went unnoticed"
    shows 'failed and retried [1-9]'
    shows ', 0 never loaded, 0 wrong$'
    ;;
  outage)
    # The origin never answers: nothing is served, everything is retried.
    run 0 --seconds 1 --fail-percent 100
    shows '  served     0: '
    shows '  refreshes  0: failed and retried [1-9]'
    shows ', 500 never loaded, 0 wrong$'
    ;;
  interrupt)
    for signal in INT TERM; do
      begin interrupted --seconds 20
      waits_for interrupted '^ *1 s |'
      kill -"$signal" "$pid"
      ends "$pid"
      mv interrupted.out out
      shows '^Summary of '
      ! grep -q '^Summary of 20 s' out || fail "SIG$signal did not end it"
    done
    ;;
  table)
    on_a_terminal --seconds 2
    shows "^$escape\[6A"
    shows '^Summary of '
    ;;
  *)
    fail "no such case: $2"
    ;;
esac
