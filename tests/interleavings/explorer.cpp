#include "interleavings/explorer.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <ios>
#include <map>
#include <memory>
#include <semaphore>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#endif

#include "failing_new.hpp"
#include "interleavings/memory.hpp"
#include "interleavings/plain_data.hpp"
#include "interleavings/schedule_tree.hpp"

namespace rondo::test {
namespace {

constexpr std::size_t most_steps = 5'000;  // a schedule with more steps is taken to be endless

constexpr std::size_t most_schedules = 200'000;

/// In a long run with wide bounds, the number of schedules after which an exploration ends: 0 if there is none.
std::size_t enough_schedules() {
  static const char* const text = std::getenv("RONDO_TEST_SCHEDULES");
  return text == nullptr ? 0 : std::stoul(text);
}

/// Only one thread runs at a time, and on one processor they take turns in half the time.
void stay_on_this_processor() {
#if defined(__linux__)
  cpu_set_t this_one;
  CPU_ZERO(&this_one);
  CPU_SET(static_cast<std::size_t>(std::max(sched_getcpu(), 0)), &this_one);
  sched_setaffinity(0, sizeof this_one, &this_one);
#endif
}

/// What a thread waits for until it is its turn. std::binary_semaphore looks a few times before it sleeps, which is in vain
/// if all threads are on one processor.
#if defined(__linux__)
class turn {
 public:
  turn() noexcept { sem_init(&given_, 0, 0); }
  ~turn() { sem_destroy(&given_); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

  void release() noexcept { sem_post(&given_); }
  void acquire() noexcept {
    while (sem_wait(&given_) != 0) {  // a signal has interrupted it
    }
  }

 private:
  sem_t given_{};
};
#else
class turn : public std::binary_semaphore {
 public:
  turn() : std::binary_semaphore(0) {}
};
#endif

/// The memory of a thread's stack.
struct stack {
  std::less<> before;
  const void* begin = nullptr;
  const void* end = nullptr;

  bool contains(const void* p) const noexcept { return !before(p, begin) && before(p, end); }
};

stack stack_of_this_thread() {
  stack s;
#if defined(__linux__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return s;
  void* begin = nullptr;
  std::size_t bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &bytes);
  pthread_attr_destroy(&attributes);
  s.begin = begin;
  s.end = static_cast<const char*>(begin) + bytes;
#endif
  return s;
}

/// As addr2line takes it.
std::ptrdiff_t code_address(const void* code) {
  const void* begin = nullptr;
#if defined(__linux__)
  Dl_info found;
  if (dladdr(code, &found) != 0) begin = found.dli_fbase;
#endif
  return reinterpret_cast<std::intptr_t>(code) - reinterpret_cast<std::intptr_t>(begin);
}

class explorer;

explorer* exploring = nullptr;          // one at a time
thread_local std::size_t own = nobody;  // which of the scenario's threads this is
thread_local std::size_t not_watched = 0;
thread_local std::size_t at_work = 0;

/// While one lives, the calling thread works for the explorer, whose own memory is none of the scenario's.
class working {
 public:
  working() noexcept { ++at_work; }
  ~working() { --at_work; }
  working(const working&) = delete;
  working& operator=(const working&) = delete;

 private:
  const unwatched here_;
};

class explorer {
 public:
  explorer(std::optional<std::size_t> preemptions, std::size_t stale) : tree_(preemptions), stale_(stale) {}
  ~explorer() {
    for (auto& w : workers_) {
      w->body = nullptr;
      w->go_on.release();
    }
    for (auto& w : workers_) w->thread.join();
  }
  explorer(const explorer&) = delete;
  explorer& operator=(const explorer&) = delete;

  bool advance() { return tree_.advance(); }
  bool seen() const { return tree_.seen(); }
  /// Whether threads wait for something that will never happen.
  bool stuck() const { return stuck_; }

  void run(scenario& s) {
    names_.clear();
    trace_.clear();
    failure_.clear();
    stale_left_ = stale_;
    accesses.begin();
    plain_.begin();
    if (workers_.empty()) engage(s.threads.size());
    for (std::size_t i = 0; i != workers_.size(); ++i) {
      worker& w = *workers_[i];
      names_.push_back(s.threads[i].name);
      w.body = s.threads[i].body;
      w.ended = false;
    }
    workers_.front()->go_on.release();
    explorer_goes_on_.acquire();
    under_way_ = false;
    if (tree_.astray()) expect(false, "the threads do not do the same after the same choices");
    if (!stuck_) s.check();
  }

  /// Empty if there is none.
  std::string failure() const {
    if (failure_.empty()) return {};
    std::ostringstream text;
    text << failure_ << '\n';
    printer print{names_, {}, {}};
    for (const taken& t : trace_) print.step(text, t);
    for (std::size_t i = 0; stuck_ && i != workers_.size(); ++i)
      if (!workers_[i]->ended) print.step(text << "never: ", {i, *workers_[i]->next, {}});
    return text.str();
  }

  bool is_exploring() noexcept { return exploring != nullptr; }

  void expect(bool good, const char* what) {
    if (!good && failure_.empty()) failure_ = what;
  }

  // Called by the running thread.
  void await_turn(const operation& next, const std::function<bool()>& possible,
                  std::optional<time_point> until) {
    worker& me = *workers_[own];
    me.next = &next;
    me.possible = &possible;
    me.until = until;
    if (begin_others_or_hand_over(own) != own) me.go_on.acquire();
  }
  void note(long long value) {
    if (!trace_.empty()) trace_.back().value = value;
  }
  void note_released(const void* lock) { tree_.released(own, lock); }
  void note_woke(std::size_t thread) { tree_.woke(own, thread); }

  /// An access to memory, atomic or not.
  void watch(const void* begin, std::size_t bytes, bool is_atomic, bool writes, const void* code) {
    if (is_on_a_stack(begin)) return;
    const plain_data::use now{code, accesses.next_step(own), static_cast<std::uint8_t>(own), 0, writes};
    const memory::clock& known = accesses.known(own);
    const auto race =
        is_atomic ? plain_.find(now, known, begin, bytes) : plain_.note(now, known, begin, bytes);
    if (race && failure_.empty()) failure_ = race_message(*race, now, is_atomic);
  }
  /// Other objects may be there now.
  void forget(const void* begin, std::size_t bytes) {
    accesses.forget(begin, bytes);
    plain_.forget(begin, bytes);
  }

  time_point time;
  memory accesses{
      {[this] { return under_way_ && stale_left_ != 0; }, [this](std::size_t count) { return pick(count); }}};

 private:
  struct worker {
    std::thread thread;
    turn go_on;
    stack own_stack;
    std::function<void()> body;  // null to end the thread
    bool ended = true;
    const operation* next = nullptr;
    const std::function<bool()>* possible = nullptr;
    std::optional<time_point> until;
  };

  struct taken {
    std::size_t thread;
    operation step;
    std::optional<long long> value;
    bool is_stale = false;
  };

  /// Numbers the objects of each sort in the order in which they occur.
  struct printer {
    const std::vector<std::string>& names;
    std::map<std::string, int> counts;
    std::map<const void*, int> numbers;

    void step(std::ostream& out, const taken& t) {
      out << names[t.thread] << ": " << t.step.what;
      if (t.step.object() != nullptr) {
        const auto [place, is_new] = numbers.try_emplace(t.step.object());
        if (is_new) place->second = ++counts[t.step.of];
        out << ' ' << t.step.of << ' ' << place->second;
      }
      if (t.value) out << " = " << *t.value;
      if (t.is_stale) out << ", not the latest";
      out << '\n';
    }
  };

  void engage(std::size_t threads) {
    stay_on_this_processor();
    for (std::size_t i = 0; i != threads; ++i) workers_.push_back(std::make_unique<worker>());
    for (std::size_t i = 0; i != threads; ++i) workers_[i]->thread = std::thread([this, i] { work(i); });
  }

  void work(std::size_t number) {
    own = number;
    worker& me = *workers_[number];
    me.own_stack = stack_of_this_thread();
    for (;;) {
      const working here;
      me.go_on.acquire();
      if (me.body == nullptr) break;
      not_watched = at_work = 0;
      me.body();
      not_watched = at_work = 1;
      me.body = [] {};
      me.ended = true;
      me.next = nullptr;
      begin_others_or_hand_over(number);
    }
    own = nobody;
  }

  // What is on a thread's stack is used by others only while it waits for them.
  bool is_on_a_stack(const void* p) const noexcept {
    return std::any_of(workers_.begin(), workers_.end(),
                       [p](const auto& w) { return w->own_stack.contains(p); });
  }

  std::string race_message(const plain_data::use& before, const plain_data::use& now, bool is_atomic) const {
    std::ostringstream text;
    text << std::hex << std::showbase << "a data race: " << names_[now.thread]
         << (now.writes ? " writes " : " reads ") << (is_atomic ? "(atomic) " : "") << "at "
         << code_address(now.code) << " what " << names_[before.thread] << " uses at "
         << code_address(before.code);
    return text.str();
  }

  std::size_t pick(std::size_t count) {
    const std::size_t result = tree_.pick(count);
    if (result != 0) {
      --stale_left_;
      trace_.back().is_stale = true;
    }
    return result;
  }

  /// Before the first turn, one thread after the other runs up to its first step.
  std::size_t begin_others_or_hand_over(std::size_t caller) {
    if (!under_way_ && caller + 1 != workers_.size()) {
      workers_[caller + 1]->go_on.release();
      return nobody;
    }
    under_way_ = true;
    return hand_over(caller);
  }

  /// Lets the thread whose turn it is run, and returns which one that is. If it is the caller, only the result says so.
  std::size_t hand_over(std::size_t caller) {
    if (std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w->ended; })) {
      explorer_goes_on_.release();
      return nobody;
    }
    schedule_tree::next_steps next{};
    for (std::size_t i = 0; i != workers_.size(); ++i) next[i] = workers_[i]->next;
    thread_set enabled = able();
    while (enabled == 0 && let_time_pass(next)) enabled = able();
    if (enabled == 0) return give_up("nobody can go on: a deadlock, or a lost wake-up");
    if (trace_.size() == most_steps) return give_up("it does not come to an end");
    const std::size_t chosen = tree_.choose(next, enabled);
    trace_.push_back({chosen, *next[chosen], {}});
    if (chosen != caller) workers_[chosen]->go_on.release();
    return chosen;
  }

  thread_set able() const {
    thread_set set = 0;
    for (std::size_t i = 0; i != workers_.size(); ++i) {
      const worker& w = *workers_[i];
      if (!w.ended && (!*w.possible || (*w.possible)())) set |= only(i);
    }
    return set;
  }

  /// Moves the time to the earliest moment that a thread waits for. Returns false if none waits. Meanwhile, what was
  /// stored before has become visible to those that waited for it.
  bool let_time_pass(const schedule_tree::next_steps& next) {
    std::optional<time_point> earliest;
    for (const auto& w : workers_)
      if (!w->ended && w->until && *w->until > time && (!earliest || *w->until < *earliest))
        earliest = w->until;
    if (!earliest) return false;
    time = *earliest;
    for (std::size_t i = 0; i != workers_.size(); ++i)
      if (!workers_[i]->ended && workers_[i]->until && *workers_[i]->until <= time) accesses.catch_up(i);
    tree_.all_have_met(next);
    return true;
  }

  std::size_t give_up(const char* why) {
    failure_ = why;
    stuck_ = true;
    explorer_goes_on_.release();
    return nobody;
  }

  plain_data plain_;
  schedule_tree tree_;
  const std::size_t stale_;
  std::size_t stale_left_ = 0;
  std::vector<std::unique_ptr<worker>> workers_;
  std::vector<std::string> names_;
  std::vector<taken> trace_;
  std::string failure_;
  bool under_way_ = false;
  bool stuck_ = false;
  turn explorer_goes_on_;
};

/// What remains of a stuck schedule, whose threads still sleep and refer to it.
struct wreck {
  std::unique_ptr<explorer> crew;
  scenario what;
};

void leave_behind(wreck w) {
  static auto& wrecks = *new std::vector<wreck>;  // never destroyed
  wrecks.push_back(std::move(w));
}

}  // namespace

bool memory_is_weak = false;

exploration explore(const std::function<scenario()>& make, std::optional<std::size_t> preemptions,
                    std::size_t stale) {
  exploration result;
  auto crew = std::make_unique<explorer>(preemptions, stale);
  watch_blocks = &watch_block;
  while (crew->advance()) {
    crew->time = {};
    exploring = crew.get();
    memory_is_weak = stale != 0;
    scenario s = make();
    crew->run(s);
    memory_is_weak = false;
    exploring = nullptr;
    ++(crew->seen() ? result.repeated : result.schedules);
    if (result.schedules == enough_schedules()) break;
    if (result.schedules + result.repeated == most_schedules)
      crew->expect(false, "there are too many schedules: does this need a bound?");
    result.failure = crew->failure();
    if (crew->stuck()) {
      leave_behind({std::move(crew), std::move(s)});
      break;
    }
    if (!result.failure.empty()) break;
  }
  return result;
}

bool is_exploring() noexcept { return exploring != nullptr; }

bool is_step() noexcept { return own != nobody; }
bool is_weak_step() noexcept { return memory_is_weak && is_step(); }

unwatched::unwatched() noexcept { ++not_watched; }
unwatched::~unwatched() { --not_watched; }

void handing_over::give() {
  take();  // what was given before remains
  step_in_memory::release_lock(this);
}
void handing_over::take() const { step_in_memory::acquire_lock(this); }

bool this_thread_is_watched() noexcept { return is_step() && not_watched == 0; }

void watch_plain(const void* begin, std::size_t bytes, bool writes, const void* code) noexcept {
  const working here;
  exploring->watch(begin, bytes, false, writes, code);
}

void watch_atomic(const void* begin, std::size_t bytes, bool writes, const void* code) noexcept {
  const working here;
  exploring->watch(begin, bytes, true, writes, code);
}

void watch_block(const void* begin, std::size_t bytes, bool released) noexcept {
  if (!is_weak_step() || at_work != 0) return;
  const bool watched = not_watched == 0;
  const working here;
  if (!released) return exploring->forget(begin, bytes);
  if (watched) exploring->watch(begin, bytes, false, true, __builtin_return_address(0));
  exploring->accesses.forget(begin, bytes);
}

void expect(bool good, const char* what) {
  const working here;
  if (exploring != nullptr) exploring->expect(good, what);
}

void await_turn(const operation& next, const std::function<bool()>& possible,
                std::optional<time_point> until) {
  const working here;
  if (is_step()) return exploring->await_turn(next, possible, until);
  if (exploring != nullptr && possible && !possible())
    throw std::logic_error("outside of the scenario's threads, this would wait forever");
}

void note(long long value) {
  const working here;
  if (is_step()) exploring->note(value);
}

void note_released(const void* lock) {
  const working here;
  if (is_step()) exploring->note_released(lock);
}

void note_woke(std::size_t thread) {
  const working here;
  if (is_step()) exploring->note_woke(thread);
}

std::size_t this_thread() noexcept { return own; }

namespace step_in_memory {

word load(const void* object, word latest, order o) {
  const working here;
  return exploring->accesses.load(own, object, latest, o);
}

void store(const void* object, word& latest, word value, order o) {
  const working here;
  exploring->accesses.store(own, object, latest, value, o);
}

word update(const void* object, word& latest, const std::function<word(word)>& change, order o) {
  const working here;
  return exploring->accesses.update(own, object, latest, change, o);
}

bool compare_exchange(const void* object, word& latest, word& expected, word value, order success,
                      order failure) {
  const working here;
  return exploring->accesses.compare_exchange(own, object, latest, expected, value, success, failure);
}

void fence(order o) {
  if (!is_weak_step()) return;
  const working here;
  exploring->accesses.fence(own, o);
}

void acquire_lock(const void* lock) {
  if (!is_weak_step()) return;
  const working here;
  exploring->accesses.acquire(own, lock);
}

void release_lock(const void* lock) {
  if (!is_weak_step()) return;
  const working here;
  exploring->accesses.release(own, lock);
}

void begin(const void* object) noexcept {
  if (!is_weak_step()) return;
  const working here;
  exploring->accesses.forget(object, 1);
}

}  // namespace step_in_memory

namespace virtual_time {

time_point now() {
  const working here;
  await_turn({"read", "time", {reading()}});
  return exploring->time;
}

void move_to(time_point t) {
  const working here;
  await_turn({"move", "time", {access{&exploring->time, true}}});
  exploring->time = t;
}

bool has_come(time_point t) noexcept { return exploring->time >= t; }

access reading() noexcept { return {&exploring->time, false}; }

}  // namespace virtual_time

}  // namespace rondo::test
