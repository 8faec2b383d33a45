#include "scheduler/user_handlers.hpp"

#include <algorithm>
#include <iostream>
#include <new>
#include <string>
#include <utility>

#include "values/readable.hpp"

namespace rondo::detail {
namespace {

const char* name_of(error_source who) noexcept {
  switch (who) {
    case error_source::task:
      return "a task";
    case error_source::executor:
      return "the executor";
    case error_source::on_slow:
      return "on_slow";
    case error_source::on_rejected:
      return "on_rejected";
    default:
      return "on_earlier";
  }
}

std::string text_of(const std::exception_ptr& thrown) {
  std::string text = "something that is not a std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Which run it was, if it was one.
std::string run_of(const firing& fact) {
  return fact.id == timer_id() ? "" : " (" + readable(fact.id, fact.name) + ')';
}

/// Writes one line.
void report_on_cerr(const char* who, const std::exception_ptr& thrown, const firing& fact) noexcept {
  try {
    try {
      std::cerr << std::string("rondo: ") + who + run_of(fact) + " threw: " + text_of(thrown) + '\n';
    } catch (const std::bad_alloc&) {
      std::cerr << "rondo: " << who << " threw, but there is no memory to say what\n";
    }
  } catch (...) {  // std::cerr itself is set to throw: there is nobody left to tell
  }
}

void report_slow_on_cerr(const slow_run& slow) noexcept {
  try {
    std::string text = "rondo: a task" + run_of(slow.what) + " ran for " + readable(slow.run_time);
    if (const call_site at = slow.scheduled_at)
      text += ", scheduled at " + std::string(at.file) + ':' + std::to_string(at.line);
    std::cerr << text + '\n';
  } catch (...) {  // no memory, or std::cerr itself is set to throw
  }
}

}  // namespace

void report(const user_handlers* user, error_source who, std::exception_ptr thrown,
            const firing& fact) noexcept {
  if (user == nullptr || !user->on_error) return report_on_cerr(name_of(who), thrown, fact);
  try {
    user->on_error(std::move(thrown), fact);
  } catch (...) {
    report_on_cerr("on_error", std::current_exception(), fact);
  }
}

void report_slow(const user_handlers* user, const slow_run& slow) noexcept {
  if (user == nullptr || !user->on_slow) return report_slow_on_cerr(slow);
  try {
    user->on_slow(slow);
  } catch (...) {
    report(user, error_source::on_slow, std::current_exception(), slow.what);
  }
}

void report_rejected(const user_handlers* user, const firing& fact) noexcept {
  if (user == nullptr || !user->on_rejected) return;
  try {
    user->on_rejected(fact);
  } catch (...) {
    report(user, error_source::on_rejected, std::current_exception(), fact);
  }
}

}  // namespace rondo::detail
