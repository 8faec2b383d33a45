// basic_core: telling the user what went wrong, and calling his handlers.
#pragma once

#include <algorithm>
#include <iostream>
#include <stdexcept>
#include <string>

#include "scheduler/core.hpp"
#include "values/readable.hpp"

namespace rondo::detail {

inline std::string text_of(const std::exception_ptr& thrown) {
  std::string text = "something that is no std::exception";
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// One line.
inline void report_on_cerr(const char* who, const std::exception_ptr& thrown) noexcept {
  try {
    try {
      std::cerr << std::string("rondo: ") + who + " threw: " + text_of(thrown) + '\n';
    } catch (const std::bad_alloc&) {
      std::cerr << "rondo: " << who << " threw, and there is no memory to say what\n";
    }
  } catch (...) {  // std::cerr itself is set to throw: there is nobody left to tell
  }
}

template <class Sync>
const char* basic_core<Sync>::name_of(thrower who) noexcept {
  switch (who) {
    case thrower::task:
      return "a task";
    case thrower::executor:
      return "the executor";
    case thrower::on_slow:
      return "on_slow";
    default:
      return "on_earlier";
  }
}

/// Precondition: user code is on the stack, as far as frames tell.
template <class Sync>
void basic_core<Sync>::report(thrower who, std::exception_ptr thrown, const firing& fact) noexcept {
  const auto user = current_handlers();
  if (user == nullptr || !user->on_error) {
    report_on_cerr(name_of(who), thrown);
    return;
  }
  try {
    user->on_error(std::move(thrown), fact);
  } catch (...) {
    report_on_cerr("on_error", std::current_exception());
  }
}

inline void report_slow_on_cerr(const slow_run& slow) noexcept {
  try {
    std::string text = "rondo: a task ran for " + readable(slow.run_time);
    if (const call_site at = slow.scheduled_at)
      text += ", scheduled at " + std::string(at.file) + ':' + std::to_string(at.line);
    std::cerr << text + '\n';
  } catch (...) {  // no memory, or std::cerr itself is set to throw
  }
}

/// Precondition: user code is on the stack, as far as frames tell.
template <class Sync>
void basic_core<Sync>::report_slow(const slow_run& slow) noexcept {
  const auto user = current_handlers();
  if (user == nullptr || !user->on_slow) {
    report_slow_on_cerr(slow);
    return;
  }
  try {
    user->on_slow(slow);
  } catch (...) {
    report(thrower::on_slow, std::current_exception(), slow.what);
  }
}

template <class Sync>
std::shared_ptr<const typename basic_core<Sync>::handlers> basic_core<Sync>::current_handlers()
    const noexcept {
  const std::lock_guard hold(handlers_mutex_);
  return handlers_;
}

template <class Sync>
void basic_core<Sync>::call_out(const void* whom, const std::function<void()>& handler) noexcept {
  const activity in_progress(*this);
  if (stopped()) return;
  const frame here(frame::kind::user_code, this, whom);
  try {
    handler();
  } catch (...) {
    report(thrower::on_earlier, std::current_exception(), {});
  }
}

template <class Sync>
void basic_core<Sync>::refuse_inside(const char* call) const {
  if (frame::inside(this))
    throw std::logic_error(std::string("rondo: ") + call + "() was called from inside a task");
}

}  // namespace rondo::detail
