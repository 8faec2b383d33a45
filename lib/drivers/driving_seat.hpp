// For drivers that several threads might drive at a time.
#pragma once

#include <condition_variable>
#include <mutex>

namespace rondo::detail {

/// Lets one call at a time drive. No lock is held meanwhile, as tasks run.
class driving_seat {
 public:
  class turn {
   public:
    explicit turn(driving_seat& seat) : seat_(seat) {
      std::unique_lock hold(seat_.mutex_);
      seat_.free_again_.wait(hold, [this] { return !seat_.taken_; });
      seat_.taken_ = true;
    }
    ~turn() {
      const std::lock_guard hold(seat_.mutex_);
      seat_.taken_ = false;
      seat_.free_again_.notify_all();  // one would do, but glibc before 2.41 can lose that (its bug 25847)
    }
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;

   private:
    driving_seat& seat_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable free_again_;
  bool taken_ = false;
};

}  // namespace rondo::detail
