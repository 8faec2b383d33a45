#include "calendar/step_listeners.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>

namespace rondo::detail {

class step_listeners::listener {
 public:
  explicit listener(std::function<void()> stepped) : stepped_(std::move(stepped)) {}

  void call() {
    {
      const std::lock_guard hold(mutex_);
      if (ended_) return;
      callers_.push_back(std::this_thread::get_id());
    }
    const struct ending {
      listener& l;
      ~ending() { l.leave(); }
    } at_end{*this};
    stepped_();
  }

  /// Afterwards no call begins, and none is in progress on another thread.
  void end() {
    std::unique_lock hold(mutex_);
    ended_ = true;
    left_.wait(hold, [&] {
      return std::all_of(callers_.begin(), callers_.end(),
                         [](std::thread::id caller) { return caller == std::this_thread::get_id(); });
    });
  }

 private:
  void leave() {
    const std::lock_guard hold(mutex_);
    callers_.erase(std::find(callers_.begin(), callers_.end(), std::this_thread::get_id()));
    left_.notify_all();
  }

  const std::function<void()> stepped_;
  std::mutex mutex_;
  std::condition_variable left_;
  std::vector<std::thread::id> callers_;
  bool ended_ = false;
};

std::shared_ptr<void> step_listeners::add(std::function<void()> stepped) {
  const auto added = std::make_shared<listener>(std::move(stepped));
  std::shared_ptr<void> handle(added.get(), [added](void*) { added->end(); });
  const std::lock_guard hold(mutex_);
  std::erase_if(listeners_, [](const auto& l) { return l.expired(); });
  listeners_.push_back(added);
  return handle;
}

step_listeners::list step_listeners::all() const {
  list result;
  const std::lock_guard hold(mutex_);
  for (const auto& weak : listeners_)
    if (auto l = weak.lock()) result.push_back(std::move(l));
  return result;
}

void step_listeners::tell(const list& all) {
  std::exception_ptr thrown;
  for (const auto& l : all) {
    try {
      l->call();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace rondo::detail
