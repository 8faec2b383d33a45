// The floor: the cost of appending a timer to the array of its tick and calling it back, with nothing else to keep
// track of: neither the next tick nor a timer's round. Holes stay where they are.
#include <cstddef>

#include "rivals.hpp"

namespace {

class plain_arrays_of_timers {
 public:
  plain_arrays_of_timers(std::uint32_t n, firings& fired) : timers_(n), arrays_(turn), fired_(fired) {
    for (std::uint32_t i = 0; i != n; ++i) timers_[i].number = i;
    // Twice the likely size, because growing is not part of the minimum cost.
    for (auto& array : arrays_) array.reserve(2 * std::size_t{n} / arrays_.size() + 16);
  }

  void set(std::uint32_t number, std::int64_t due) {
    timer& t = timers_[number];
    auto& array = array_of(due);
    t.owner = this;
    t.due = due;
    t.position = static_cast<std::uint32_t>(array.size());
    array.push_back(&t);
  }

  void cancel(std::uint32_t number) {
    timer& t = timers_[number];
    t.owner = nullptr;
    array_of(t.due)[t.position] = nullptr;
  }

  void advance(std::int64_t to) {
    while (now_ != to) {
      auto& array = array_of(++now_);
      taken_.swap(array);  // a callback may set a timer one turn ahead
      for (std::size_t i = 0; i != taken_.size(); ++i) {
        if (i + prefetch_distance < taken_.size()) __builtin_prefetch(taken_[i + prefetch_distance], 1);
        timer* t = taken_[i];
        if (t == nullptr) continue;
        t->owner = nullptr;
        fired_(*this, t->number);
      }
      taken_.clear();
      if (array.empty()) taken_.swap(array);  // keeps its memory
    }
  }

 private:
  static constexpr std::size_t prefetch_distance = 8;  // as rondo::wheel

  struct timer {  // as rondo::wheel_node
    void* owner;
    std::int64_t due;
    std::uint32_t position;
    std::uint32_t number;
  };

  std::vector<timer*>& array_of(std::int64_t due) { return arrays_[static_cast<std::size_t>(due % turn)]; }

  std::vector<timer> timers_;
  std::vector<std::vector<timer*>> arrays_;
  std::vector<timer*> taken_;
  std::int64_t now_ = 0;
  firings& fired_;
};

}  // namespace

const rival plain_arrays{"floor: plain arrays", run_with<plain_arrays_of_timers>};
