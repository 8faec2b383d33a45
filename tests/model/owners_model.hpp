// What keyed timers and a scope should do, as simply as possible: lists of all timers that they ever had.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "model/scheduler_model.hpp"

namespace rondo::test {

/// The timers of a keyed_timers whose keys are 0, 1, 2 …
class keyed_model {
 public:
  static constexpr std::size_t keys = 4;

  explicit keyed_model(scheduler_model& all) : all_(&all) {}

  bool contains(std::size_t key) const { return !of_[key].empty() && all_->pending(of_[key].back()); }
  std::optional<ns> due(std::size_t key) const {
    return of_[key].empty() ? std::nullopt : all_->due(of_[key].back());
  }
  std::size_t size() const {
    std::size_t count = 0;
    for (std::size_t key = 0; key != keys; ++key) count += contains(key);
    return count;
  }
  /// Whether a task that was set for the key is in progress, be it a replaced one.
  bool running(std::size_t key) const {
    return std::any_of(of_[key].begin(), of_[key].end(), [this](std::size_t t) { return all_->running(t); });
  }
  bool running() const {
    bool any = false;
    for (std::size_t key = 0; key != keys; ++key) any = any || running(key);
    return any;
  }

  /// `timer` is about to be scheduled. The key's last one is cancelled. Its run is asked to stop, unless it is one of those
  /// that the caller is inside.
  void set(std::size_t key, std::size_t timer, const std::vector<std::size_t>& inside) {
    std::vector<std::size_t>& of = of_[key];
    if (!of.empty())
      all_->cancel(of.back(), std::find(inside.begin(), inside.end(), of.back()) == inside.end());
    of.push_back(timer);
  }
  cancel_result cancel(std::size_t key) {
    const auto result = of_[key].empty() ? cancel_result::gone : all_->cancel(of_[key].back());
    return result == cancel_result::gone && running(key) ? cancel_result::running : result;
  }
  /// As cancel(), but waits for replaced timers, too, unless the caller is inside one of the key's.
  cancel_result cancel_and_wait(std::size_t key, const std::vector<std::size_t>& inside) {
    const auto result = cancel(key);
    const auto is_of_key = [&](std::size_t t) {
      return std::find(of_[key].begin(), of_[key].end(), t) != of_[key].end();
    };
    if (std::none_of(inside.begin(), inside.end(), is_of_key)) ask(key);
    return result;
  }
  bool reschedule(std::size_t key, ns due) {
    return !of_[key].empty() && all_->reschedule(of_[key].back(), due);
  }
  void clear() {
    for (std::size_t key = 0; key != keys; ++key) {
      cancel(key);
      ask(key);
    }
  }

 private:
  /// Asks also replaced timers to stop.
  void ask(std::size_t key) {
    for (const std::size_t timer : of_[key]) all_->cancel(timer);
  }

  scheduler_model* all_;
  std::array<std::vector<std::size_t>, keys> of_;  // the timers of each key, the last one at the end
};

/// The timers of a timer_scope.
class scope_model {
 public:
  explicit scope_model(scheduler_model& all) : all_(&all) {}

  bool has(std::size_t timer) const { return std::find(of_.begin(), of_.end(), timer) != of_.end(); }
  bool pending(std::size_t timer) const { return has(timer) && all_->pending(timer); }
  std::size_t pending() const {
    return static_cast<std::size_t>(
        std::count_if(of_.begin(), of_.end(), [this](std::size_t t) { return all_->pending(t); }));
  }
  bool running() const {
    return std::any_of(of_.begin(), of_.end(), [this](std::size_t t) { return all_->running(t); });
  }
  bool closed() const { return closed_; }

  void add(std::size_t timer) { of_.push_back(timer); }
  cancel_result cancel(std::size_t timer) { return has(timer) ? all_->cancel(timer) : cancel_result::gone; }
  bool reschedule(std::size_t timer, ns due) { return has(timer) && all_->reschedule(timer, due); }
  void cancel_all() {
    for (const std::size_t timer : of_) all_->cancel(timer);
  }
  void close() {
    closed_ = true;
    cancel_all();
  }

 private:
  scheduler_model* all_;
  bool closed_ = false;
  std::vector<std::size_t> of_;
};

}  // namespace rondo::test
