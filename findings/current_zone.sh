#!/bin/sh
# libstdc++ 16.2: std::chrono::current_zone() does not look at TZ.
#
# Expected: the "current" zone is that of the process: with TZ=Asia/Tokyo, current_zone() and localtime() of one program
#   mean Tokyo, as with libc++ (23.1, tried at the same time).
# Seen: libstdc++ follows the link /etc/localtime. localtime() says JST, current_zone() says what the machine is set to.
# Why it matters: a service or a container whose zone is set by TZ, as is usual, logs one time and schedules by another,
#   and a test that sets TZ tests nothing. Take a zone by name, from the program's own settings.
# Source: tzdb::current_zone in src/c++20/tzdb.cc.

. "$(dirname "$0")/suite_root"
unpack sid g++-16=16.2.0-4 libc6-dev tzdata

mkdir -p "$work/root/etc"
ln -s /usr/share/zoneinfo/Europe/Berlin "$work/root/etc/localtime"
cat > "$work/root/tmp/zone.cpp" << 'END'
#include <chrono>
#include <ctime>
#include <iostream>

int main() {
  const std::time_t now = std::time(nullptr);
  std::cout << std::chrono::current_zone()->name() << ' ' << std::localtime(&now)->tm_zone << '\n';
}
END
in_root g++-16 -std=c++20 -o /tmp/zone /tmp/zone.cpp || cannot "it does not compile"

export TZ=Asia/Tokyo
compare "Asia/Tokyo JST" "Europe/Berlin JST" "$(in_root /tmp/zone)"
