// The workloads that measure rondo-durable, and the database of one engine.
#pragma once

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "durable/sql_database.hpp"
#include "durable_processes.hpp"
#include "held_bytes.hpp"
#include "measure.hpp"

namespace durable_workloads {

using namespace std::chrono_literals;
using rondo::durable::dispatcher;
using rondo::durable::dispatcher_options;
using rondo::durable::dispatcher_statistics;

/// A database, with the rows that a workload starts from. Plain SQL inserts them faster than the library would.
class place {
 public:
  place(std::string name, std::unique_ptr<durable_test::sql_database> database, bool is_sqlite)
      : name_(std::move(name)),
        database_(std::move(database)),
        store_(rondo::durable::store::open(database_->url())),
        is_sqlite_(is_sqlite) {}

  const std::string& name() const { return name_; }
  rondo::durable::store& store() { return *store_; }
  std::string url() const { return database_->url(); }
  std::unique_ptr<durable_test::their_connection> connect() { return database_->connect(); }
  std::string ask(const std::string& sql) { return database_->ask(sql); }

  /// Inserts n tasks. The first is due in `first`, each following one `gap` later. They are spread over that many lanes;
  /// if none, they have no lane. Their payloads are their numbers, or empty: a crew adds up the numbers.
  void fill(std::size_t n, std::chrono::microseconds first, std::chrono::microseconds gap = 0us,
            std::size_t lanes = 0, bool numbered = true) {
    const std::string lane = lanes == 0 ? "NULL" : "'lane ' || (i % " + std::to_string(lanes) + ")";
    const std::string count = std::to_string(n), from = std::to_string(first.count()),
                      each = std::to_string(gap.count()), payload = numbered ? "CAST(i AS TEXT)" : "''";
    if (is_sqlite_)
      ask("INSERT INTO rondo_task (queue, lane, place, state, due, inline_payload) WITH RECURSIVE n(i) AS"
          " (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < " +
          count + "), t(i, lane, due) AS (SELECT i, " + lane +
          ", CAST((julianday('now') - 2440587.5) * 86400e6 AS INTEGER) + " + from + " + i * " + each +
          " FROM n) SELECT 'default', lane, iif(lane IS NULL, NULL, due), iif(lane IS NULL, 0, 5), due,"
          " CAST(" +
          payload + " AS BLOB) FROM t");
    else
      ask("INSERT INTO rondo_task (queue, lane, due, inline_payload) SELECT 'default', " + lane +
          ", now() + (" + from + " + i * " + each + ") * interval '1 microsecond', convert_to(" + payload +
          ", 'UTF8') FROM generate_series(0, " + count + "::bigint - 1) AS i");
  }

  /// Removes the tasks that are due within two years; the far-off ones stay.
  void clear() {
    ask(is_sqlite_ ? "DELETE FROM rondo_task WHERE due < (unixepoch() + 2 * 365 * 86400) * 1000000"
                   : "DELETE FROM rondo_task WHERE due < now() + interval '2 years'");
    ask(is_sqlite_ ? "PRAGMA wal_checkpoint(RESTART)" : "VACUUM rondo_task");
  }

  void fill_far_off(std::size_t n) {
    fill(n, std::chrono::hours(24 * 365 * 10), 1ms);
    ask("ANALYZE");
    // A new server creates each segment of its log when it needs it, during somebody's commit, which took 50 to 190 ms. A
    // checkpoint leaves segments to use again, as a server has them that has run for a while.
    if (!is_sqlite_) ask("CHECKPOINT");
  }

 private:
  std::string name_;
  std::unique_ptr<durable_test::sql_database> database_;
  std::unique_ptr<rondo::durable::store> store_;
  bool is_sqlite_;
};

/// Several dispatchers, each with its own scheduler, as if each were a separate process.
class crew {
 public:
  crew(place& at, std::size_t dispatchers, const dispatcher_options& options = {}) {
    for (std::size_t i = 0; i != dispatchers; ++i) {
      timers_.push_back(std::make_unique<rondo::timer>());
      members_.push_back(std::make_unique<dispatcher>(
          *timers_.back(), at.store(),
          [this](const rondo::durable::task& t) {
            sum_ += t.payload.empty() ? 0 : std::stoull(t.payload) + 1;
          },
          options));
    }
  }

  template <class Condition>
  void wait_until(const Condition& holds) const {
    const auto end = std::chrono::steady_clock::now() + 5min;
    while (!holds(total())) {
      if (std::chrono::steady_clock::now() >= end)
        throw std::runtime_error("after five minutes only " + std::to_string(total().completed) +
                                 " tasks have been completed");
      std::this_thread::sleep_for(1ms);
    }
  }
  void stop() {
    for (const auto& each : members_) each->stop();
  }

  struct totals {
    std::uint64_t completed = 0, held = 0, fired = 0, turns = 0;
  };
  totals total() const {
    totals all;
    for (const auto& each : members_) {
      const dispatcher_statistics s = each->stats();
      all.completed += s.completed;
      all.held += s.held;
      all.fired += s.fired;
      all.turns += s.turns;
    }
    return all;
  }
  dispatcher_statistics first() const { return members_.front()->stats(); }
  std::uint64_t sum() const { return sum_; }

 private:
  std::atomic<std::uint64_t> sum_{0};  // of the tasks that were run
  std::vector<std::unique_ptr<rondo::timer>> timers_;
  std::vector<std::unique_ptr<dispatcher>> members_;
};

inline double microseconds_each(measure::clock::time_point start, std::size_t n) {
  return measure::per_operation(start, n) / 1000;
}

/// Submits n tasks, `batch` of them per transaction. If `batch` is 1, each call has its own transaction.
inline measure::sample submit(place& at, std::size_t n, std::size_t batch) {
  const auto caller = at.connect();
  std::uint64_t made = 0;
  const auto start = measure::now();
  for (std::size_t i = 0; i != n; ++i) {
    const rondo::durable::submission what{.payload = std::to_string(i)};
    if (batch == 1) {
      made += at.store().submit_after(1h, what) > 0 ? 1u : 0u;
      continue;
    }
    if (i % batch == 0) caller->execute("BEGIN");
    made += at.store().submit_after(caller->handle(), 1h, what) > 0 ? 1u : 0u;
    if (i % batch == batch - 1 || i == n - 1) caller->execute("COMMIT");
  }
  const double each = microseconds_each(start, n);
  at.clear();
  return {each, made};
}

/// Submits n tasks as one list.
inline measure::sample submit_list(place& at, std::size_t n) {
  std::vector<rondo::durable::planned> all(n);
  for (std::size_t i = 0; i != n; ++i) all[i] = {.what = {.payload = std::to_string(i)}, .when = 1h};
  const auto start = measure::now();
  const std::size_t made = at.store().submit_all(all).size();
  const double each = microseconds_each(start, n);
  at.clear();
  return {each, made};
}

/// Runs n due tasks until all have been completed and removed.
inline measure::sample run_all(place& at, std::size_t n, std::size_t dispatchers, std::size_t lanes = 0) {
  at.fill(n, -1s, 0us, lanes);
  const auto start = measure::now();
  crew workers(at, dispatchers);
  workers.wait_until([n](const crew::totals& t) { return t.completed >= n; });
  const double each = microseconds_each(start, n);
  workers.stop();
  at.clear();
  return {each, workers.sum()};
}

/// The same with the dispatchers of these processes.
inline measure::sample run_all(place& at, std::size_t n, worker_processes& workers) {
  at.fill(n, -1s);
  workers.open(at.url());
  const auto start = measure::now();
  workers.start();
  while (workers.completed() < n) std::this_thread::sleep_for(1ms);
  const double each = microseconds_each(start, n);
  workers.stop();
  at.clear();
  return {each, workers.sum()};
}

/// Runs n due tasks without a lane, beside two tasks in each of so many lanes. These are due, too, but later.
inline measure::sample run_beside_lanes(place& at, std::size_t n, std::size_t lanes) {
  at.fill(2 * lanes, -1s, 0us, lanes, false);
  at.fill(n, -2s);
  const std::uint64_t all = std::uint64_t{n} * (n + 1) / 2;  // the sum of their numbers
  const auto start = measure::now();
  crew workers(at, 1);
  workers.wait_until([&](const crew::totals&) { return workers.sum() == all; });
  const double each = microseconds_each(start, n);
  workers.stop();
  at.clear();
  return {each, workers.sum()};
}

/// n tasks that become due one after another, the first of them in `first`.
struct timetable {
  std::size_t n, per_second;
  std::chrono::milliseconds first;
};
inline void fill(place& at, const timetable& t) {
  at.fill(t.n, t.first, std::chrono::microseconds(1'000'000 / t.per_second));
}

/// Tasks that are submitted while others are due, and are not due themselves.
struct far_off {
  std::size_t per_minute = 0, in_a_list = 1;
};

/// Submits far-off tasks at that rate, from another thread, until this object is destroyed. What comes too late because
/// a call took long is made up for.
class far_off_submissions {
 public:
  far_off_submissions(place& at, const far_off& what) {
    if (what.per_minute == 0) return;
    thread_ = std::jthread([&at, what](const std::stop_token& over) {
      const std::vector<rondo::durable::planned> list(
          what.in_a_list, {.what = {.payload = "far"}, .when = std::chrono::hours(24 * 365)});
      auto next = std::chrono::steady_clock::now();
      for (; !over.stop_requested(); next += what.in_a_list * 60'000'000us / what.per_minute) {
        std::this_thread::sleep_until(next);
        at.store().submit_all(list);
      }
    });
  }

 private:
  std::jthread thread_;
};

/// How late the tasks are.
inline dispatcher_statistics run_in_time(place& at, const timetable& t, const far_off& load = {}) {
  fill(at, t);
  crew workers(at, 1);
  std::optional<far_off_submissions> others(std::in_place, at, load);
  workers.wait_until([n = t.n](const crew::totals& all) { return all.completed >= n; });
  others.reset();
  dispatcher_statistics result = workers.first();
  workers.stop();
  at.clear();
  return result;
}

/// How late tasks are that are submitted 20 ms before they are due, so that something must wake the dispatcher.
inline dispatcher_statistics run_soon(place& at, std::size_t n) {
  crew workers(at, 1);
  for (std::size_t i = 0; i != n; ++i) {
    at.store().submit_after(20ms, {.payload = std::to_string(i)});
    std::this_thread::sleep_for(10ms);
  }
  workers.wait_until([n](const crew::totals& t) { return t.completed >= n; });
  dispatcher_statistics result = workers.first();
  workers.stop();
  at.clear();
  return result;
}

/// How late t.n tasks are that are submitted t.first before they are due, in a list for every ten milliseconds. They are
/// due at an even rate, whenever the dispatcher comes to them.
inline dispatcher_statistics run_from_lists(place& at, const timetable& t, const far_off& load) {
  crew workers(at, 1);
  std::optional<far_off_submissions> others(std::in_place, at, load);
  const std::size_t in_a_list = t.per_second / 100;
  const auto begin = std::chrono::steady_clock::now();
  const auto begin_by_the_wall_clock = std::chrono::system_clock::now();
  for (std::size_t i = 0; i < t.n; i += in_a_list) {
    std::vector<rondo::durable::planned> list;
    for (std::size_t j = i; j != i + in_a_list; ++j)
      list.push_back({.what = {.payload = std::to_string(j)},
                      .when = std::chrono::time_point_cast<rondo::durable::wall_time::duration>(
                          begin_by_the_wall_clock + t.first + j * 1'000'000us / t.per_second)});
    std::this_thread::sleep_until(begin + i * 1'000'000us / t.per_second);
    at.store().submit_all(list);
  }
  workers.wait_until([n = t.n](const crew::totals& all) { return all.completed >= n; });
  others.reset();
  dispatcher_statistics result = workers.first();
  workers.stop();
  at.clear();
  return result;
}

/// The heap memory in use for each task that is claimed and waits on the wheel, with a payload of up to six bytes.
inline double bytes_held(place& at, std::size_t n) {
  at.fill(n, 30min);
  const std::size_t before = held_bytes();
  dispatcher_options all_of_them;
  all_of_them.window = 1h;
  all_of_them.max_held = n;
  crew workers(at, 1, all_of_them);
  workers.wait_until([n](const crew::totals& t) { return t.held >= n; });
  const std::size_t held = held_bytes() - before;
  workers.stop();
  at.clear();
  return static_cast<double>(held) / static_cast<double>(n);
}

}  // namespace durable_workloads
