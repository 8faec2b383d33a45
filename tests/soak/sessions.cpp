#include <array>
#include <type_traits>

#include <rondo/keyed_timers.hpp>

#include "periodic.hpp"
#include "producers.hpp"

namespace soak {

namespace {

class keyed_sessions {
 public:
  keyed_sessions(station& s, dice chance) : station_(s), chance_(chance), timers_(s.timers()) {}
  ~keyed_sessions() {
    for (std::size_t key = 0; key != latest_.size(); ++key) cancel(key);
  }
  keyed_sessions(const keyed_sessions&) = delete;
  keyed_sessions& operator=(const keyed_sessions&) = delete;

  void do_something() {
    const std::size_t key = chance_.below(latest_.size());
    const std::uint64_t what = chance_.below(100);
    if (what < 50) return set_once(key);
    if (what < 60) return set_again_and_again(key);
    if (what < 70) return try_set(key);
    if (what < 85) return say_something(key);
    cancel(key);
  }

  void look_around() {
    always().check(invariant::one_per_key, timers_.size() <= latest_.size());
    if (!chance_.percent(2)) return;
    timers_.clear();
    for (latest& each : latest_) check_replaced(each);
    if (!station_.books().ending) always().check(invariant::one_per_key, timers_.size() == 0);
  }

 private:
  struct latest {
    std::shared_ptr<life> what = nullptr;
    bool recurs = false;
  };

  void set_once(std::size_t key) {
    const auto delay = chance_.percent(50) ? 30s : chance_.up_to(20ms);
    const auto made = std::make_shared<one_shot>(station_, delay, chance_);
    set(key, made, [&](auto callable) { timers_.set_after(key, delay, std::move(callable)); });
  }

  void set_again_and_again(std::size_t key) {
    const pattern p = draw_pattern(chance_);
    const auto made = std::make_shared<periodic>(station_, p, chance_());
    set(key, made, [&](auto callable) { timers_.set(key, p.when, std::move(callable)); });
  }

  template <class Made, class Set>
  void set(std::size_t key, const std::shared_ptr<Made>& made, Set&& call) {
    if (!attempt([&] { call(watched<Made>(station_.books(), made)); })) return;
    check_replaced(latest_[key]);
    latest_[key] = {made, std::is_same_v<Made, periodic>};
  }

  void try_set(std::size_t key) {
    const auto delay = chance_.up_to(20ms);
    const auto made = std::make_shared<one_shot>(station_, delay, chance_);
    bool is_set = false;
    try {
      is_set = timers_.try_set_after(key, delay, watched<one_shot>(station_.books(), made));
    } catch (const rondo::capacity_error&) {
    } catch (const rondo::stopped_error&) {
    }
    if (!is_set) return;
    ++station_.books().scheduled;
    check_replaced(latest_[key]);  // the key no longer had a timer
    latest_[key] = {made};
  }

  /// At the limit a timer may be taken over, or cancelled in vain. The account cannot know which.
  template <class Call>
  bool attempt(Call&& call) {
    account& books = station_.books();
    if (!station_.is_moody()) return booked(books, call);
    ++books.unsure;
    try {
      call();
      return true;
    } catch (const rondo::capacity_error&) {
    } catch (const rondo::stopped_error&) {
    }
    return false;
  }

  void say_something(std::size_t key) {
    const latest& has = latest_[key];
    if (has.what == nullptr || has.recurs) return;
    const auto later = from_now(30s).time_since_epoch().count();
    if (timers_.reschedule_after(key, 30s)) has.what->earliest = later;
  }

  void cancel(std::size_t key) {
    if (latest_[key].what == nullptr) return;
    const auto said = timers_.cancel(key);
    if (said == rondo::cancel_result::cancelled) check_cancel(station_.books(), *latest_[key].what, said);
    check_replaced(latest_[key]);
  }

  /// Checks a timer that is no longer its key's timer: it is gone, unless it had begun.
  void check_replaced(latest& old) {
    account& books = station_.books();
    // If it was replaced just as it began, the scheduler counts a run without a call of the task.
    if (old.what != nullptr && old.what->may_have_begun() && (old.recurs || !old.what->has_begun))
      ++books.unsure;
    if (old.what != nullptr && !books.ending)
      always().check(invariant::one_per_key, old.what->destroyed || old.what->may_have_begun());
    old = {};
  }

  station& station_;
  dice chance_;
  std::array<latest, 64> latest_;  // the last timer of each key
  rondo::keyed_timers<std::size_t> timers_;
};

}  // namespace

void sessions(station& s, dice chance, const orders& o) {
  keyed_sessions all(s, chance);
  while (!o.over) {
    for (std::size_t i = 0; i != o.batch; ++i) all.do_something();
    all.look_around();
    o.rest();
  }
}

}  // namespace soak
