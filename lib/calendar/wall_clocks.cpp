#include <utility>

#include <rondo/calendar.hpp>

#include "calendar/step_listeners.hpp"
#include "calendar/step_watch.hpp"

namespace rondo {

namespace {

class system_clock_itself final : public wall_clock {
 public:
  wall_time now() const noexcept override { return std::chrono::system_clock::now(); }
  std::shared_ptr<void> on_step(std::function<void()> stepped) override {
    return detail::watch_steps(std::move(stepped));
  }
};

}  // namespace

wall_clock::~wall_clock() = default;

wall_clock& system_wall_clock() noexcept {
  static system_clock_itself clock;
  return clock;
}

manual_wall_clock::manual_wall_clock(const scheduler& goes_with, any_wall_time t)
    : goes_with_(goes_with),
      shown_(t),
      since_(goes_with.now()),
      listeners_(std::make_shared<detail::step_listeners>()) {}

manual_wall_clock::~manual_wall_clock() = default;

wall_time manual_wall_clock::now() const noexcept {
  const std::lock_guard hold(mutex_);
  const time_point shown(shown_.time_since_epoch());
  return wall_time(saturating_add(shown, saturating_difference(goes_with_.now(), since_)).time_since_epoch());
}

std::shared_ptr<void> manual_wall_clock::on_step(std::function<void()> stepped) {
  return listeners_->add(std::move(stepped));
}

void manual_wall_clock::set(any_wall_time t) {
  detail::step_listeners::list to_be_told;
  {
    const std::lock_guard hold(mutex_);  // so that who registers from here on sees the new time
    to_be_told = listeners_->all();
    shown_ = t;
    since_ = goes_with_.now();
  }
  detail::step_listeners::tell(to_be_told);
}

void manual_wall_clock::set_silently(any_wall_time t) {
  const std::lock_guard hold(mutex_);
  shown_ = t;
  since_ = goes_with_.now();
}

}  // namespace rondo
