// Makes a failing list of choices as simple as possible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "model/choices.hpp"

namespace rondo::test {

/// A list is simpler than another if it is shorter, or if it is as long and the first number in which they differ is
/// smaller. The search continues from each simpler list that still fails. So it ends, at the latest when the time is
/// up.
class shrinker {
 public:
  /// If the choices still fail, returns those that were actually made.
  using failing = std::function<std::optional<choices::list>(const choices::list&)>;

  shrinker(failing still_fails, std::chrono::milliseconds limit)
      : still_fails_(std::move(still_fails)), end_(clock::now() + limit) {}

  /// Expects that `first` fails.
  choices::list shrink(choices::list first);

 private:
  using clock = std::chrono::steady_clock;
  using number = choices::list::value_type;

  bool try_out(choices::list);
  bool has_time() const { return clock::now() < end_; }
  void remove_chunks();
  void clear_chunks();
  void lower_each();
  void lower_one_and_remove();

  template <class Change>
  bool try_with(Change&& change) {
    choices::list changed = best_;
    change(changed);
    return try_out(std::move(changed));
  }

  failing still_fails_;
  clock::time_point end_;
  choices::list best_;
};

/// The simplest list that could be found.
inline choices::list shrunk(choices::list failing, shrinker::failing still_fails,
                            std::chrono::milliseconds limit = std::chrono::seconds(20)) {
  return shrinker(std::move(still_fails), limit).shrink(std::move(failing));
}

}  // namespace rondo::test
