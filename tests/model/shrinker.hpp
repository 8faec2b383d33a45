// Makes a list of choices that goes wrong as simple as it can be.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "model/choices.hpp"

namespace rondo::test {

/// A list is simpler than another if it is shorter, or as long and the first number in which they differ is
/// smaller. Whatever is found simpler and still fails is where the search goes on from, so it ends; at the
/// latest when the time is up.
class shrinker {
 public:
  /// What remains of the choices if they still fail: those that were made.
  using failing = std::function<std::optional<choices::list>(const choices::list&)>;

  shrinker(failing still_fails, std::chrono::milliseconds limit)
      : still_fails_(std::move(still_fails)), end_(clock::now() + limit) {}

  /// `first` fails.
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
