#!/bin/sh
# date 3.0.3 of Debian (Howard Hinnant's): summer time ends for ever in 2037.
#
# Expected: this library is where <chrono>'s time zones come from, and both read the same package, tzdata. So they agree
#   on the UTC offset of New York in July 2040: -4 hours.
# Seen: -5 hours from November 2037 on. Debian builds it with USE_OS_TZDB, so that it reads the compiled files of
#   /usr/share/zoneinfo. These list the changes until 2037 and have the rule for later years in their last line, which
#   the library does not read. libstdc++ reads the source of the rules, tzdata.zi.
# Why it matters: a recurrence, or an expiry of a long certificate, is an hour late; and code that moves from date to
#   <chrono> "without a change" moves its far due times.
# Source: the footer of RFC 9636, section 3.3; issue 563 of the library, open since 2020.

. "$(dirname "$0")/suite_root"
unpack sid g++-16=16.2.0-4 libhowardhinnant-date-dev=3.0.3+ds-2+b2 libc6-dev tzdata

cat > "$work/root/tmp/offsets.cpp" << 'END'
#include <chrono>
#include <iostream>

#include <date/tz.h>

int main() {
  for (const int year : {2037, 2040}) {
    const auto by_date = date::locate_zone("America/New_York")->get_info(date::sys_days{date::year{year} / 7 / 1});
    const auto by_std = std::chrono::locate_zone("America/New_York")
                            ->get_info(std::chrono::sys_days{std::chrono::year{year} / 7 / 1});
    std::cout << year << " date " << by_date.offset.count() / 3600 << " std " << by_std.offset.count() / 3600 << ' ';
  }
}
END
in_root g++-16 -std=c++20 -DUSE_OS_TZDB=1 -o /tmp/offsets /tmp/offsets.cpp -ldate-tz || cannot "it does not compile"

compare "2037 date -4 std -4 2040 date -4 std -4" "2037 date -4 std -4 2040 date -5 std -4" \
  "$(in_root /tmp/offsets | xargs)"
