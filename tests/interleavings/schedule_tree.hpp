// Decides which schedules are run.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interleavings/operation.hpp"

namespace rondo::test {

/// The schedules of a few threads, depth first. Each is run from the start: it repeats a prefix of the previous
/// schedule's choices, makes another choice, and then runs by default choices.
///
/// Two schedules that differ only in the order of independent steps are indistinguishable to the threads, so one of
/// them is enough. Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson and Sagonas, "Optimal
/// dynamic partial order reduction", 2014) tries another thread first only if that reverses the order of two dependent
/// steps. Sleep sets cut off schedules that have been seen in another order.
///
/// A step may have several results, if memory is not sequentially consistent: see pick(). All of them are tried.
///
/// With a bound, all schedules are run that preempt a thread which could continue at most that often (Musuvathi and
/// Qadeer, 2007). The reduction is not used then, as it would leave out some of them.
class schedule_tree {
 public:
  /// For each thread, the step that it is about to take; null if it has ended.
  using next_steps = std::array<const operation*, most_threads>;

  explicit schedule_tree(std::optional<std::size_t> preemptions = {}) : bound_(preemptions) {}

  /// Goes to the next schedule. Returns false if there is none.
  bool advance();

  /// Returns the thread whose step is next. `enabled` are the threads that can take their steps. Precondition: it is
  /// not empty.
  std::size_t choose(const next_steps&, thread_set enabled);

  /// Returns which of the results 0 … `count` - 1 the step in progress has. May be called several times in a step.
  std::size_t pick(std::size_t count);

  /// Whether the schedule in progress can be cut off, because what follows has been seen in another order.
  bool seen() const noexcept { return seen_; }
  /// Whether the threads behave differently than before after the same choices. Such threads cannot be explored.
  bool astray() const noexcept { return astray_; }

  // Ordering of steps, in addition to the order of dependent steps.
  /// `thread` has released a lock within its step.
  void released(std::size_t thread, const void* lock);
  /// `by` has let `whom` continue within its step.
  void woke(std::size_t by, std::size_t whom) { join(clocks_[whom], clocks_[by]); }
  /// No thread could continue before this.
  void all_have_met(const next_steps&);

 private:
  /// For each thread, how many steps of the schedule had been taken when it took its last step that is known here.
  using clock = std::array<std::size_t, most_threads>;

  struct pick_made {
    std::size_t result;
    std::size_t count;
  };

  struct step {
    thread_set enabled;
    thread_set asleep;      // threads whose step has been tried first, and no step since then depended on it
    thread_set to_explore;  // threads to be tried here
    thread_set explored;
    std::size_t thread;  // the one being tried
    operation taken;
    clock known;  // what the thread knows afterwards
    std::vector<pick_made> picks = {};
  };

  struct history {
    clock reads{}, writes{};
  };

  static void join(clock& to, const clock& from) noexcept;
  std::size_t fall_back(thread_set enabled) const noexcept;
  static bool has_another_result(step&) noexcept;
  thread_set to_try_first(thread_set enabled, std::size_t favourite) const noexcept;
  void push(thread_set enabled);
  void take(step&);
  void find_races(const step& last, const clock& before);
  void find_races_of_blocked(const next_steps&, thread_set enabled);
  clock known_with(clock before, const operation& next);
  thread_set first_steps(std::size_t index) const;
  void put_to_sleep(const step&, const next_steps&);

  const std::optional<std::size_t> bound_;
  std::vector<step> path_;
  bool started_ = false;

  // Of the schedule in progress.
  std::size_t depth_ = 0;
  std::size_t picks_ = 0;     // in the step in progress
  std::size_t new_from_ = 0;  // steps before this were the same in the previous schedule
  std::size_t running_ = nobody;
  std::size_t preemptions_ = 0;
  bool seen_ = false;
  bool astray_ = false;
  thread_set asleep_ = 0;
  std::array<clock, most_threads> clocks_{};
  std::unordered_map<const void*, history> histories_;
};

}  // namespace rondo::test
