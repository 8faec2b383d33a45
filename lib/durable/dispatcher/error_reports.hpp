// Reports errors to the user.
#pragma once

#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "durable/text.hpp"

namespace rondo::durable::detail {

/// Calls dispatcher_options::on_error. All members may be called from any thread.
class error_reports {
 public:
  explicit error_reports(std::function<void(const std::string&)> to) : to_(std::move(to)) {}

  /// `words()` returns the line; what it quotes may contain line breaks. If memory for it runs out, or on_error throws,
  /// the report is lost.
  template <class Words>
  void say(const Words& words) const noexcept {
    try {
      if (to_)
        to_(on_one_line(words()));
      else
        std::cerr << "rondo: " + on_one_line(words()) + '\n';
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

 private:
  std::function<void(const std::string&)> to_;
};

}  // namespace rondo::durable::detail
