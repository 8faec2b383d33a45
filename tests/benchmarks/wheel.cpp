// rondo::wheel beside the two structures that timers are otherwise kept in, on the same work in one process.
// Arguments: --small, a run of a moment, as a test.
#include <rondo/wheel.hpp>

#include <cstddef>
#include <map>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "measure.hpp"

namespace {

struct timer_node : rondo::wheel_node {
  std::uint32_t payload = 0;
};

/// The interface of the three contenders: timers are numbered, ticks are counted from 0.
class wheel {
 public:
  explicit wheel(std::size_t timers) : nodes_(timers) {
    for (std::size_t i = 0; i != timers; ++i) nodes_[i].payload = static_cast<std::uint32_t>(i);
  }
  void set(std::uint32_t timer, std::int64_t due) { wheel_.schedule(nodes_[timer], due); }
  void cancel(std::uint32_t timer) { wheel_.cancel(nodes_[timer]); }
  template <class OnDue>
  void advance(std::int64_t to, OnDue&& on_due) {
    wheel_.advance(to, [&](timer_node& n) { on_due(n.payload, wheel_.now()); });
  }

 private:
  std::vector<timer_node> nodes_;  // outlives the wheel
  rondo::wheel<timer_node> wheel_;
};

class multimap {
 public:
  explicit multimap(std::size_t timers) : places_(timers) {}
  void set(std::uint32_t timer, std::int64_t due) { places_[timer] = queue_.emplace(due, timer); }
  void cancel(std::uint32_t timer) { queue_.erase(places_[timer]); }
  template <class OnDue>
  void advance(std::int64_t to, OnDue&& on_due) {
    while (!queue_.empty() && queue_.begin()->first <= to) {
      const auto [due, timer] = *queue_.begin();
      queue_.erase(queue_.begin());
      on_due(timer, due);
    }
  }

 private:
  std::multimap<std::int64_t, std::uint32_t> queue_;
  std::vector<std::multimap<std::int64_t, std::uint32_t>::iterator> places_;
};

/// A binary heap from which nothing is removed: a cancelled entry is passed over when it comes up.
class lazy_heap {
 public:
  explicit lazy_heap(std::size_t timers) : versions_(timers) {}
  void set(std::uint32_t timer, std::int64_t due) {
    queue_.push({due, sequence_++, timer, versions_[timer]});
  }
  void cancel(std::uint32_t timer) { ++versions_[timer]; }
  template <class OnDue>
  void advance(std::int64_t to, OnDue&& on_due) {
    while (!queue_.empty() && queue_.top().due <= to) {
      const entry e = queue_.top();
      queue_.pop();
      if (e.version == versions_[e.timer]) on_due(e.timer, e.due);
    }
  }

 private:
  struct entry {
    std::int64_t due;
    std::uint64_t sequence;
    std::uint32_t timer;
    std::uint32_t version;
    bool operator<(const entry& other) const noexcept {
      return std::pair(due, sequence) > std::pair(other.due, other.sequence);
    }
  };
  std::priority_queue<entry> queue_;
  std::vector<std::uint32_t> versions_;
  std::uint64_t sequence_ = 0;
};

constexpr std::uint64_t turn = 512;

/// Mixes who fired when into one number; order matters.
struct trace {
  std::uint64_t sum = 0;
  void operator()(std::uint32_t timer, std::int64_t due) noexcept {
    sum = (sum ^ (timer + 1ULL)) * 0x100000001b3ULL + static_cast<std::uint64_t>(due);
  }
};

template <class Timers>
measure::sample set_all(std::uint32_t n) {
  Timers timers(n);
  measure::random random(1);
  const auto start = measure::now();
  for (std::uint32_t i = 0; i != n; ++i) timers.set(i, random.up_to(turn));
  const double time = measure::per_operation(start, n);
  trace fired;
  timers.advance(turn, fired);
  return {time, fired.sum};
}

template <class Timers>
measure::sample churn(std::uint32_t n, std::uint32_t pairs) {
  Timers timers(n);
  measure::random random(2);
  for (std::uint32_t i = 0; i != n; ++i) timers.set(i, random.up_to(turn));
  const auto start = measure::now();
  for (std::uint32_t i = 0; i != pairs; ++i) {
    const auto timer = static_cast<std::uint32_t>(random() % n);
    timers.cancel(timer);
    timers.set(timer, random.up_to(turn));
  }
  const double time = measure::per_operation(start, pairs);
  trace fired;
  timers.advance(turn, fired);
  return {time, fired.sum};
}

template <class Timers>
measure::sample fire(std::uint32_t n) {
  Timers timers(n);
  measure::random random(3);
  for (std::uint32_t i = 0; i != n; ++i) timers.set(i, random.up_to(turn));
  trace fired;
  const auto start = measure::now();
  for (std::int64_t tick = 1; tick <= static_cast<std::int64_t>(turn); ++tick) timers.advance(tick, fired);
  return {measure::per_operation(start, n), fired.sum};
}

template <class Timers>
measure::sample periodic(std::uint32_t n, std::int64_t ticks) {
  Timers timers(n);
  measure::random random(4);
  for (std::uint32_t i = 0; i != n; ++i) timers.set(i, random.up_to(100));
  trace fired;
  std::uint64_t count = 0;
  const auto start = measure::now();
  for (std::int64_t tick = 1; tick <= ticks; ++tick) {
    timers.advance(tick, [&](std::uint32_t timer, std::int64_t due) {
      fired(timer, due);
      ++count;
      timers.set(timer, due + random.up_to(100));
    });
  }
  return {measure::per_operation(start, count), fired.sum};
}

template <class Timers>
measure::sample long_span(std::uint32_t n, std::uint64_t ticks) {
  Timers timers(n);
  measure::random random(5);
  for (std::uint32_t i = 0; i != n; ++i) timers.set(i, random.up_to(ticks));
  trace fired;
  const auto start = measure::now();
  timers.advance(static_cast<std::int64_t>(ticks), fired);
  return {measure::per_operation(start, n), fired.sum};
}

/// `run.template operator()<Timers>()` is one repetition of the workload.
template <class Run>
bool compare(const char* what, const char* unit, int repetitions, Run run) {
  return measure::compare(what, unit,
                          {{"rondo::wheel", [=] { return run.template operator()<wheel>(); }},
                           {"std::multimap", [=] { return run.template operator()<multimap>(); }},
                           {"std::priority_queue", [=] { return run.template operator()<lazy_heap>(); }}},
                          repetitions);
}

}  // namespace

int main(int argc, char** argv) {
  const bool small = argc > 1 && std::string_view(argv[1]) == "--small";
  const std::vector<std::uint32_t> sizes =
      small ? std::vector<std::uint32_t>{1'000} : std::vector<std::uint32_t>{10'000, 100'000, 1'000'000};
  const int repetitions = small ? 1 : 5;
  bool right = true;
  for (const std::uint32_t n : sizes) {
    std::printf("%u timers, 512 buckets\n", n);
    right &= compare("set, 1 … 512 ticks ahead", "ns a timer", repetitions,
                     [=]<class Timers>() { return set_all<Timers>(n); });
    right &= compare("cancel one and set another", "ns a pair", repetitions,
                     [=]<class Timers>() { return churn<Timers>(n, small ? n : 1'000'000); });
    right &= compare("fire all, tick by tick", "ns a timer", repetitions,
                     [=]<class Timers>() { return fire<Timers>(n); });
    right &= compare("fire all of 2,000 turns, one jump", "ns a timer", repetitions,
                     [=]<class Timers>() { return long_span<Timers>(n, 1'000'000); });
  }
  const std::uint32_t n = small ? 100 : 10'000;
  std::printf("%u timers re-arming themselves 1 … 100 ticks ahead\n", n);
  right &= compare("fire and re-arm", "ns a firing", repetitions,
                   [=]<class Timers>() { return periodic<Timers>(n, small ? 1'000 : 10'000); });
  return right ? 0 : 1;
}
