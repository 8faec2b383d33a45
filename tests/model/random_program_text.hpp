// How programs are written down.
#pragma once

#include <string>

#include <rondo/scheduler.hpp>

#include "model/recurrence_model.hpp"

namespace rondo::test {

inline std::string in_ns(ns t) { return t == never ? "never" : std::to_string(t) + "ns"; }

/// The argument that says when.
inline std::string when(bool relative, ns delay) {
  if (!relative) return "now() + " + in_ns(delay);
  return delay == never ? "duration::max()" : in_ns(delay);
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
