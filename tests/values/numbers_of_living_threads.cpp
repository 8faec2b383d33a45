// The number of a thread is given to no other thread while it lives. A program of its own, without doctest: with MinGW, a
// number that is kept in a freed thread_local variable is overwritten only in a program that allocates little.
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

#include "sync/thread_numbers.hpp"

using rondo::detail::thread_numbers;

int main() {
  // Nearly all numbers, so that an end that gives back a wrong one is noticed.
  constexpr std::size_t living = thread_numbers::exclusive - 1;
  std::vector<std::size_t> kept(living);
  std::atomic<std::size_t> begun{0};
  std::atomic<bool> may_end{false};
  std::vector<std::thread> threads;
  for (std::size_t& number : kept)
    threads.emplace_back([&] {
      number = thread_numbers::of_this_thread();
      ++begun;
      while (!may_end) std::this_thread::yield();
    });
  while (begun < living) std::this_thread::yield();
  const std::set<std::size_t> taken(kept.begin(), kept.end());
  int given_twice = taken.size() == living ? 0 : 1;
  for (int round = 0; round != 200; ++round) {
    std::size_t number = 0;
    std::thread([&] { number = thread_numbers::of_this_thread(); }).join();
    if (taken.contains(number)) ++given_twice;
  }
  may_end = true;
  for (std::thread& each : threads) each.join();
  std::printf("%d times, a number was given to a second thread\n", given_twice);
  return given_twice == 0 ? 0 : 1;
}
