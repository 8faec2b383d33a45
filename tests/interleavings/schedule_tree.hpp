// Which schedules are to be run.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interleavings/operation.hpp"

namespace rondo::test {

/// The schedules of a few threads, depth first. Each is run from the start, as a prefix of choices of the one
/// before, another choice, and what comes of itself.
///
/// Two schedules that differ but in the order of independent steps are one to everybody in them, so one of
/// them is enough. Dynamic partial-order reduction with source sets (Abdulla, Aronis, Jonsson and Sagonas,
/// "Optimal dynamic partial order reduction", 2014) tries another thread first only where two dependent steps
/// come in the other order by it, and sleep sets cut off what has been seen in another order.
///
/// With a bound all schedules are run that take the processor from a thread which could go on at most so
/// often (Musuvathi and Qadeer, 2007): without the reduction, with which some of these would be left out.
class schedule_tree {
 public:
  /// Of each thread the step that it is about to take; null: it has ended.
  using next_steps = std::array<const operation*, most_threads>;

  explicit schedule_tree(std::optional<std::size_t> preemptions = {}) : bound_(preemptions) {}

  /// Goes to the next schedule. False: there is none.
  bool advance();

  /// Which thread's step is next. Precondition: `enabled`, those that can take theirs, is not empty.
  std::size_t choose(const next_steps&, thread_set enabled);

  /// Whether the schedule, which has come so far, need not go on: what follows has been seen in another order.
  bool seen() const noexcept { return seen_; }
  /// Whether the threads do not do the same as before, after the same choices. Such cannot be explored.
  bool astray() const noexcept { return astray_; }

  // What comes before what, besides dependent steps in their order.
  /// `thread` has, within its step, let go of a lock.
  void released(std::size_t thread, const void* lock);
  /// `by` has, within its step, made `whom` go on.
  void woke(std::size_t by, std::size_t whom) { join(clocks_[whom], clocks_[by]); }
  /// Nobody could go on before this.
  void all_have_met(const next_steps&);

 private:
  /// Of each thread, how many steps of the schedule were made when it made the last one that is known here.
  using clock = std::array<std::size_t, most_threads>;

  struct step {
    thread_set enabled;
    thread_set asleep;      // their step has been tried first, and nothing since depended on it
    thread_set to_explore;  // which thread is to be tried here
    thread_set explored;
    std::size_t thread;  // which is being tried
    operation taken;
    clock known;  // to the thread afterwards
  };

  struct history {
    clock reads{}, writes{};
  };

  static void join(clock& to, const clock& from) noexcept;
  std::size_t fall_back(thread_set enabled) const noexcept;
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
  std::size_t new_from_ = 0;  // what comes before was the same in the schedule before
  std::size_t running_ = nobody;
  std::size_t preemptions_ = 0;
  bool seen_ = false;
  bool astray_ = false;
  thread_set asleep_ = 0;
  std::array<clock, most_threads> clocks_{};
  std::unordered_map<const void*, history> histories_;
};

}  // namespace rondo::test
