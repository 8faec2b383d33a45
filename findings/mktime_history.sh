#!/bin/sh
# glibc 2.43: the result of mktime() depends on the call before it.
#
# Expected: with tm_isdst = -1, a time that clocks show twice when summer time ends is always taken as the same one of
#   the two, be it the first or the second: the C standard leaves open which.
# Seen: mktime() starts its search from the UTC offset of the last result in this process. After a time in summer, 01:30
#   is the first one; after a time in winter it is the second, an hour later. The offset is a static variable, so
#   another thread's call changes the answer too.
# Why it matters: "the next 01:30" of two processes, or of one before and after a restart, differ by an hour, and a job
#   that computes it twice may run twice. Tests see it only if their order changes.
# Source: localtime_offset in time/mktime.c of glibc. Perl's POSIX::mktime calls mktime(), so no compiler is needed.

. "$(dirname "$0")/suite_root"
unpack sid libc6=2.43-7 perl-base tzdata

export TZ=America/New_York
# The arguments of POSIX::mktime are those of struct tm: the last one is tm_isdst.
# shellcheck disable=SC2016  # Perl's variables
seen=$(in_root perl -MPOSIX -e '
  sub local_time { my ($month, $day, $hour, $minute) = @_;
                   return mktime(0, $minute, $hour, $day, $month - 1, 126, 0, 0, -1); }
  for my $month (7, 12, 7) {
    local_time($month, 1, 12, 0);
    print strftime("%H:%M ", gmtime(local_time(11, 1, 1, 30)));
  }' | xargs)

compare "05:30 05:30 05:30 (or three times 06:30)" "05:30 06:30 05:30" "$seen"
