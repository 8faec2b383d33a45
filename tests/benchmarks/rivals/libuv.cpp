#include <uv.h>

#include "virtual_clock.hpp"
#include "rivals.hpp"

namespace {

class libuv_timers {
 public:
  libuv_timers(std::uint32_t n, firings& fired) : timers_(n), fired_(fired) {
    uv_loop_init(&loop_);
    loop_.data = this;
    for (std::uint32_t i = 0; i != n; ++i) {
      uv_timer_init(&loop_, &timers_[i].handle);
      timers_[i].number = i;
    }
  }
  ~libuv_timers() {
    for (timer& t : timers_) uv_close(reinterpret_cast<uv_handle_t*>(&t.handle), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  libuv_timers(const libuv_timers&) = delete;
  libuv_timers& operator=(const libuv_timers&) = delete;

  void set(std::uint32_t number, std::int64_t due) {
    uv_timer_start(&timers_[number].handle, on_due, static_cast<std::uint64_t>(due - now_), 0);
  }
  void cancel(std::uint32_t number) { uv_timer_stop(&timers_[number].handle); }
  void advance(std::int64_t to) {
    now_ = to;
    clock_.move_to(to);
    uv_run(&loop_, UV_RUN_NOWAIT);
  }

 private:
  struct timer {
    uv_timer_t handle;
    std::uint32_t number;
  };

  static void on_due(uv_timer_t* handle) {
    auto& self = *static_cast<libuv_timers*>(handle->loop->data);
    self.fired_(self, reinterpret_cast<timer*>(handle)->number);
  }

  virtual_clock clock_;
  uv_loop_t loop_;
  std::vector<timer> timers_;
  std::int64_t now_ = 0;
  firings& fired_;
};

}  // namespace

const rival libuv{"libuv", run_with<libuv_timers>};
