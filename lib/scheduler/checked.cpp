#include "scheduler/checked.hpp"

#include <iostream>
#include <string>

#include "values/readable.hpp"

namespace rondo::detail {
namespace {

thread_local std::uint64_t runs_on_this_thread = 0;

template <class Text>
void say(Text&& text) noexcept {
  try {
    std::cerr << "rondo: " + text() + '\n';
  } catch (...) {  // no memory, or std::cerr itself is set to throw
  }
}

}  // namespace

void warn_of_wait(const char* call) noexcept {
  say([=] {
    return std::string(call) + " has waited " + readable(suspicious_wait) +
           " for tasks in progress: it waits forever if its caller holds a mutex that one of them takes";
  });
}

void count_run_on_this_thread() noexcept { ++runs_on_this_thread; }

watched_executor_call::watched_executor_call() noexcept
    : begin_(std::chrono::steady_clock::now()), runs_(runs_on_this_thread) {}

void watched_executor_call::check(const firing& fact) const noexcept {
  const duration took = std::chrono::steady_clock::now() - begin_;
  if (took < suspicious_executor_call || runs_ != runs_on_this_thread) return;
  say([&] {
    return "the executor blocked for " + readable(took) + " with the job of " + readable(fact.id, fact.name) +
           ", and all other timers waited";
  });
}

}  // namespace rondo::detail
