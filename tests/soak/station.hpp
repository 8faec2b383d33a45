// A scheduler under load, with its driver, its executor and its account.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <rondo/polled_timer.hpp>
#include <rondo/timer.hpp>

#include "account.hpp"
#include "dice.hpp"
#include "polled_loop.hpp"
#include "threads/pool.hpp"

namespace soak {

using namespace std::chrono_literals;

/// on_driver: a timer whose tasks run on its thread; on_pool: a timer whose tasks run on two other threads; polled: a
/// polled_timer in a loop; moody: a timer with a limit, and an executor that now and then throws or drops the job.
enum class kind { on_driver, on_pool, polled, moody };
inline constexpr std::array kinds{kind::on_driver, kind::on_pool, kind::polled, kind::moody};

class station {
 public:
  station(kind k, std::uint64_t seed) : what_(k), chance_(seed) {
    if (k == kind::polled) {
      auto timer = std::make_unique<rondo::polled_timer>(wishes());
      loop_ = std::make_unique<polled_loop>(*timer);
      timer_ = std::move(timer);
    } else {
      timer_ = std::make_unique<rondo::timer>(wishes());
    }
    timers_ = timer_.get();
  }

  rondo::scheduler& timers() noexcept { return *timers_; }
  account& books() noexcept { return account_; }
  kind what() const noexcept { return what_; }
  const char* name() const noexcept {
    constexpr std::array names{"timer", "timer, pool", "polled_timer", "timer, moody"};
    return names[static_cast<std::size_t>(what_)];
  }
  /// Tasks run one after another on the driver, except those that are sent elsewhere().
  bool runs_inline() const noexcept { return what_ == kind::on_driver || what_ == kind::polled; }
  /// The pool, for individual timers.
  const rondo::on& elsewhere() const noexcept { return elsewhere_; }
  /// Whether timers may be refused, and runs dropped.
  bool is_moody() const noexcept { return what_ == kind::moody; }
  std::size_t limit() const noexcept { return is_moody() ? 600 : rondo::unlimited; }

  /// Makes a loop replace its callback.
  void listen_again() {
    if (loop_ != nullptr) loop_->listen();
  }

  /// Destroys the scheduler. The pool may still have jobs, which are then discarded.
  void close() {
    loop_.reset();
    timer_.reset();
    pool_.shut_down();
  }

 private:
  rondo::options wishes() {
    rondo::options o;
    o.tick = what_ == kind::on_driver ? 100us : 1000us;
    o.buckets = what_ == kind::polled ? 64 : 512;
    o.max_pending = limit();
    o.on_error = [this](std::exception_ptr, const rondo::firing&) { ++account_.told; };
    o.on_rejected = [this](const rondo::firing&) { ++account_.told_of_rejected; };
    if (what_ == kind::on_pool) o.run_on = pool_.executor();
    if (what_ == kind::moody) o.run_on = [this](rondo::job j) { run_in_a_mood(std::move(j)); };
    return o;
  }

  void run_in_a_mood(rondo::job j) {
    const std::uint64_t mood = chance_.below(100);
    if (mood == 0) {
      ++account_.threw;
      throw std::runtime_error("not now");
    }
    if (mood == 1)
      ++account_.dropped;
    else
      pool_.post(std::move(j));
  }

  const kind what_;
  account account_;
  dice chance_;  // used only by the driver, which calls the executor
  rondo::test::pool pool_{2};
  const rondo::on elsewhere_{pool_.executor()};
  std::unique_ptr<rondo::scheduler> timer_;
  rondo::scheduler* timers_ = nullptr;  // the same object; tasks use it even while it is being destroyed
  std::unique_ptr<polled_loop> loop_;
};

}  // namespace soak
