// How programs are traced.
#pragma once

#include <string>

#include <rondo/scheduler.hpp>

#include "model/recurrence_model.hpp"
#include "model/scheduler_model.hpp"

namespace rondo::test {

inline std::string in_ns(ns t) { return t == never ? "never" : std::to_string(t) + "ns"; }

/// The time argument of a call.
inline std::string when(bool relative, ns delay) {
  if (!relative) return "now() + " + in_ns(delay);
  return delay == never ? "duration::max()" : in_ns(delay);
}

/// Every third timer has a name. This needs no choice, so the programs in the corpus stay the same.
inline std::string name_of(std::size_t timer) {
  return timer % 3 == 2 ? "t" + std::to_string(timer) : std::string();
}

/// The argument for the options, if there are any.
inline std::string text_of_options(std::size_t timer, runs_on where, ns slack) {
  const bool own = where == runs_on::own_executor;
  const std::string name = name_of(timer);
  if (name.empty() && slack == 0) return own ? ", on(executor)" : "";
  std::string text = own ? ", .run_on = executor" : "";
  if (!name.empty()) text += ", .name = \"" + name + '"';
  if (slack != 0) text += ", .slack = " + in_ns(slack);
  return ", {" + text.substr(2) + '}';
}

inline std::string text_of(cancel_result r) {
  return r == cancel_result::cancelled ? "cancelled" : r == cancel_result::running ? "running" : "gone";
}
inline std::string text_of(bool b) { return b ? "true" : "false"; }
inline std::string text_of(time_point t) {
  return t == time_point::max() ? "never" : in_ns(t.time_since_epoch().count());
}
inline std::string text_of(const std::string& s) { return s; }
template <class Number>
std::string text_of(Number n) {
  return std::to_string(n);
}

}  // namespace rondo::test
