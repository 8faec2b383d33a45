#!/bin/sh
# test.sh PROGRAM CASE: one check of cache_refresh from outside. Exit status 0 if it passes.
set -eu
. "$(dirname "$0")/../common/test_functions"
arguments="--origin sqlite:origin.db --catalogue catalogue"

# A catalogue of 100 packages with 5 fields each.
i=0
while [ "$i" -lt 100 ]; do
  i=$((i + 1))
  printf 'Package: p%s\nVersion: 1.%s\nArchitecture: all\nSection: misc\nDescription: a package\n of two lines\n\n' "$i" "$i"
done > catalogue

case $2 in
  help)
    run 0 --help
    for option in origin catalogue rows list load keys readers reads pick edits mode soft-ttl hard-ttl refresh-at jitter \
      load-deadline longest-retry forget-after workers chaos fail-percent compare csv svg listen stale-limit seconds seed \
      plain; do
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
    complains --mode never
    complains --chaos much
    complains --soft-ttl 0
    complains --csv table.csv
    complains --compare --listen 127.0.0.1:0
    complains --compare --mode expire
    complains --rows 0
    complains --origin file:. --rows 10
    complains --list 'SELECT key FROM mine'
    [ ! -e origin.db ] || fail "a database was created despite a bad option"
    ;;
  bad_origin)
    arguments="--catalogue catalogue"
    complains --origin nowhere:at/all
    complains --origin sqlite:
    complains --origin file:no/such/folder
    mkdir empty
    complains --origin file:empty
    echo 'this is no database, and long enough not to be taken for an empty one' > text
    complains --origin sqlite:text
    complains --origin "sqlite:$folder"
    complains --origin sqlite:no/such/folder/origin.db
    cp catalogue before
    complains --origin sqlite:catalogue
    cmp -s before catalogue || fail "it wrote to a file that is not its own"
    # Each message names the origin, and does not show a password.
    complains --origin file:no/such/folder
    grep -q '^cache_refresh: file:no/such/folder: ' err || fail "it does not name the origin"
    complains --origin postgresql://me:secret@127.0.0.1:1/none
    ! grep -q secret err || fail "it shows the password"
    complains --origin 'postgresql://127.0.0.1:1/none?user=me&password=secret'
    ! grep -q secret err || fail "it shows the password"
    complains --origin 'postgresql://127.0.0.1:1/none?user=me&password=at@secret'
    ! grep -q secret err || fail "it shows a part of the password"
    # Nobody listens on port 1.
    complains --origin http://127.0.0.1:1/
    complains --origin postgresql://127.0.0.1:1/none
    ;;
  bad_catalogue)
    complains --catalogue no_such_file
    : > empty
    complains --catalogue empty
    complains --catalogue "$script"
    ;;
  summary)
    run 0 --seconds 2
    shows '^Origin: origin.db.* 500 keys; seed '
    shows '^ *1 s | keys fresh '
    shows '^Summary of 2.* 500 keys, refresh-ahead'
    shows '^  served .* current .* worst'
    shows ', 0 without a value, 0 wrong$'
    ! grep -n '^.\{101\}' out || fail "a line is longer than 100 columns"
    run 0 --seconds 1 --keys 10 --pick uniform
    shows ' 10 keys; seed '
    complains --rows 1000
    ;;
  no_edits)
    # Nothing changes at the origin: all values are equal at the end, and no reader waited.
    run 0 --seconds 2 --edits 0 --fail-percent 0
    shows ' failed 0;'
    shows '  at the end 500 equal to the origin, 0 older, '
    ;;
  edits)
    # Many values change and some loads fail: reads are behind at times, but everything gets loaded.
    run 0 --seconds 3 --edits 500 --keys 50 --fail-percent 10
    shows 'current [1-9][0-9.]* %, behind the origin p99 [1-9]'
    ! grep -q 'current 100 %' out || fail "edits went unnoticed"
    shows 'failed [1-9]'
    shows ', 0 without a value, 0 wrong$'
    ;;
  files)
    mkdir values
    for i in 1 2 3; do echo "value $i" > "values/$i"; done
    arguments=
    run 0 --origin file:values --seconds 1 --soft-ttl 0.3
    ! grep -q '\[edit ' values/* || fail "a file was edited without --edits"
    run 0 --origin file:values --seconds 2 --soft-ttl 0.5 --edits 20
    shows ' 3 keys; seed '
    shows ', 0 without a value, 0 wrong$'
    grep -q '\[edit ' values/1 || fail "no file was edited"
    ;;
  own_database)
    command -v sqlite3 > /dev/null || exit 77
    sqlite3 mine.db "CREATE TABLE user (name TEXT, mail TEXT, changed INTEGER); INSERT INTO user VALUES ('ada', 'a@b', 1)"
    arguments=
    run 0 --origin sqlite:mine.db --list 'SELECT name FROM user' --seconds 1 --soft-ttl 0.3 \
      --load 'SELECT mail, changed FROM user WHERE name = ?1'
    shows ' 1 keys; seed '
    shows '  at the end 1 equal to the origin, 0 older, 0 without a value, 0 wrong'
    ;;
  outage)
    # The origin never answers: nothing is served, everything is retried.
    run 0 --seconds 1 --fail-percent 100
    shows 'without a value [1-9]'
    shows 'new 0, not modified 0, failed [1-9]'
    shows '^  the latest failure: failed on purpose'
    shows ', 500 without a value, 0 wrong$'
    ;;
  chaos)
    # Five good seconds, then two bad ones: stale values are served all the time.
    run 0 --seconds 8 --chaos flap --fail-percent 0 --edits 0 --soft-ttl 1 --hard-ttl 60
    shows 'without a value 0$'
    shows 'failed [1-9]'
    shows '^  the latest failure: down on purpose'
    shows '  at the end 500 equal to the origin, '
    ;;
  wrong)
    run 0 --seconds 7 --chaos wrong --fail-percent 0 --soft-ttl 1
    shows 'failed [1-9]'
    shows '^  the latest failure: an answer '
    shows ', 0 without a value, 0 wrong$'
    ;;
  modes)
    run 0 --seconds 3 --mode expire --soft-ttl 0.5 --keys 50 --fail-percent 0
    shows '^Summary of 3.* expire-then-load'
    shows 'waited [1-9][0-9]*, stale 0 '
    run 0 --seconds 3 --mode on-read --soft-ttl 0.5 --keys 50 --fail-percent 0
    shows '^Summary of 3.* refresh-on-read'
    # A read waits only until its key has its first value: none after the first second.
    waited=$(sed -n 's/^ *1 s .* waited \([0-9]*\) .*/\1/p' out)
    shows "waited $waited, stale [1-9]"
    ;;
  compare)
    run 0 --compare --seconds 2 --csv table.csv --svg chart.svg
    shows '^ *expire-then-load *refresh-on-read *refresh-ahead$'
    shows '^loads in the busiest second: 10000 without jitter, [0-9]* with 5 % of jitter; '
    [ "$(wc -l < table.csv)" -eq 4 ] || fail "not a line for each mode"
    [ "$(awk -F, 'NF != 15' table.csv | wc -l)" -eq 0 ] || fail "not as many columns everywhere"
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' chart.svg || fail "no XML"
    status=0
    "$program" $arguments --compare --seconds 1 --csv no/such/folder/table.csv > out 2> err || status=$?
    [ "$status" -eq 2 ] && [ "$(wc -l < err)" -eq 1 ] || fail "a file that cannot be written: status $status"
    ;;
  overload)
    # Loads that cannot keep up, and a comparison that ends anyway.
    run 0 --rows 20000 --workers 1 --soft-ttl 0.05 --compare --seconds 1
    shows '^ *expire-then-load *refresh-on-read *refresh-ahead$'
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
  quit)
    # On a terminal, q ends the program early.
    command -v script > /dev/null || exit 77
    { sleep 2; printf q; sleep 1; } |
      TERM=xterm script -qec "'$program' $arguments --seconds 60; stty -a" /dev/null > out
    shows ' icanon '
    shows ' echo '
    shows '^Summary of '
    ! grep -q '^Summary of 60 s' out || fail "q did not end it"
    ;;
  *)
    fail "no such case: $2"
    ;;
esac
