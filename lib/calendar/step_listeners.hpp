// The listeners that a clock notifies of its steps.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace rondo::detail {

/// All members may be called from any thread. No lock is held while a listener is called.
class step_listeners {
 public:
  class listener;
  /// The listeners at one moment, to be notified later.
  using list = std::vector<std::shared_ptr<listener>>;

  /// As wall_clock::on_step().
  std::shared_ptr<void> add(std::function<void()> stepped);
  list all() const;
  /// Calls each listener that has not ended. If one throws, calls the others too and then rethrows.
  static void tell(const list& all);

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<listener>> listeners_;
};

}  // namespace rondo::detail
