#include <map>

#include "rivals.hpp"

namespace {

class multimap_timers {
 public:
  multimap_timers(std::uint32_t n, firings& fired) : places_(n), fired_(fired) {}
  void set(std::uint32_t number, std::int64_t due) { places_[number] = queue_.emplace(due, number); }
  void cancel(std::uint32_t number) { queue_.erase(places_[number]); }
  void advance(std::int64_t to) {
    while (!queue_.empty() && queue_.begin()->first <= to) {
      const std::uint32_t timer = queue_.begin()->second;
      queue_.erase(queue_.begin());
      fired_(*this, timer);
    }
  }

 private:
  std::multimap<std::int64_t, std::uint32_t> queue_;
  std::vector<decltype(queue_)::iterator> places_;
  firings& fired_;
};

}  // namespace

const rival multimap{"std::multimap", run_with<multimap_timers>};
