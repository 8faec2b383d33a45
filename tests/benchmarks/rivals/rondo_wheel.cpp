#include <rondo/wheel.hpp>

#include "rivals.hpp"

namespace {

struct timer : rondo::wheel_node {
  std::uint32_t number = 0;
};

class rondo_timers {
 public:
  rondo_timers(std::uint32_t n, firings& fired) : timers_(n), fired_(fired) {
    for (std::uint32_t i = 0; i != n; ++i) timers_[i].number = i;
  }
  void set(std::uint32_t number, std::int64_t due) { wheel_.schedule(timers_[number], due); }
  void cancel(std::uint32_t number) { wheel_.cancel(timers_[number]); }
  void advance(std::int64_t to) {
    wheel_.advance(to, [this](timer& t) { fired_(*this, t.number); });
  }

 private:
  std::vector<timer> timers_;  // outlives the wheel
  rondo::wheel<timer> wheel_{turn};
  firings& fired_;
};

}  // namespace

const rival rondo_wheel{"rondo::wheel", run_with<rondo_timers>};
