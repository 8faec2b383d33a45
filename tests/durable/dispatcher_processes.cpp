// Several processes with dispatchers on one database, which are killed, halted and cut off from it. The tests run in
// real time: lower bounds are exact, upper bounds generous.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "durable/sql_database.hpp"
#include "durable/postgresql_server.hpp"
#include "durable/worker.hpp"
#include "threads/child.hpp"
#include "threads/patience.hpp"

namespace durable_dispatcher_processes {

using namespace durable_test;
using namespace std::chrono_literals;
using rondo::durable::store;
using std::chrono::steady_clock;

class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "rondo-workers-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// A database of either engine, with processes that use it.
class site {
 public:
  explicit site(bool with_server) {
    if (with_server) server_ = new_sql_database();
    settings.url = with_server ? server_->url() : "sqlite:" + folder_.file("tasks.db");
    settings.journal = folder_.file("journal");
    tasks = store::open(settings.url);
  }

  worker_process::settings settings;
  std::unique_ptr<store> tasks;
  std::vector<worker_process> workers;
  std::map<std::int64_t, steady_clock::time_point> due;  // no run may begin earlier

  void start(int count) {
    for (int i = 0; i != count; ++i) workers.emplace_back(settings);
  }
  std::int64_t submit(rondo::duration delay, const std::string& payload) {
    const auto from = steady_clock::now();
    const auto id = tasks->submit_after(delay, {.payload = payload});
    due.emplace(id, from + delay);
    return id;
  }
  account now() const { return account(settings.journal); }

  bool eventually(const std::function<bool(const account&)>& holds) const {
    const auto end = steady_clock::now() + 60s;
    while (!holds(now())) {
      if (steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }
  bool all_ended() const {
    return eventually([&](const account& a) {
      return std::ranges::all_of(due, [&](const auto& task) { return a.ended(task.first) != 0; });
    });
  }
  /// No task is left, so the ends have been reported too.
  bool all_gone() const {
    return eventually([&](const account&) {
      return std::ranges::none_of(due, [&](const auto& task) { return tasks->find(task.first).has_value(); });
    });
  }
  /// Stops all workers. Returns whether all succeeded.
  bool stop() {
    bool right = true;
    for (worker_process& w : workers) right = w.stop() && right;
    return right;
  }
  /// Checks what must be true whatever happened.
  void check_runs(const std::vector<interruption>& interruptions = {}) const {
    const account a = now();
    CHECK(a.wrong_runs(settings.lease, interruptions) == "");
    for (const auto& [id, runs] : a.tasks) {
      REQUIRE(due.contains(id));
      for (const record& r : runs.begun) CHECK(r.at >= due.at(id));
    }
  }

 private:
  folder folder_;
  std::unique_ptr<sql_database> server_;
};

template <class Test>
void on_both(const Test& test) {
  for (const bool with_server : {false, true}) {
    CAPTURE(with_server);
    site s(with_server);
    test(s);
  }
}

TEST_CASE("several processes share the tasks of a database; each runs once, and none early") {
  on_both([](site& s) {
    s.start(3);
    for (int i = 0; i != 150; ++i) s.submit((i * 37 % 1500) * 1ms, i % 10 == 0 ? "20" : "0");
    REQUIRE(s.all_ended());
    REQUIRE(s.stop());
    const account a = s.now();
    for (const auto& [id, runs] : a.tasks) CHECK(runs.begun.size() == 1);
    CHECK(a.tasks.size() == 150);
    for (const auto& [process, r] : a.stopped) CHECK(r.id == 0);  // leases lost
    s.check_runs();
    CHECK(s.all_gone());
  });
}

TEST_CASE("when a process is killed during its runs, they are delayed by the lease, and none is lost") {
  on_both([](site& s) {
    s.settings.lease = 1500ms;
    s.start(3);
    for (int i = 0; i != 60; ++i) s.submit((i * 20) * 1ms, "100");
    pid_t victim = 0;  // a process that is running one: the first to start may have claimed all tasks
    const auto somebody_runs = [&](const account& a) {
      for (const auto& [id, runs] : a.tasks)
        if (runs.ended == 0) victim = runs.begun.back().process;
      return victim != 0;
    };
    REQUIRE(s.eventually(somebody_runs));
    for (worker_process& w : s.workers)
      if (w.id() == victim) w.kill();
    REQUIRE(s.all_ended());
    REQUIRE(s.all_gone());
    const account a = s.now();
    for (const auto& [id, runs] : a.tasks)
      if (runs.begun.size() > 1) CHECK(runs.begun[0].process == victim);
    s.check_runs();
  });
}

TEST_CASE("what a killed process had claimed and not begun is run by others long before its lease ends") {
  on_both([](site& s) {
    s.settings.lease = 5min;
    s.settings.window = 5s;
    s.start(1);
    for (int i = 0; i != 40; ++i) s.submit(4s, "0");
    REQUIRE(s.eventually([&](const account&) {
      return s.tasks->list("default", rondo::durable::task_state::held).size() == 40;
    }));
    s.workers[0].kill();
    s.start(2);
    REQUIRE(s.all_ended());
    CHECK(s.all_gone());
    for (const auto& [id, runs] : s.now().tasks) CHECK(runs.begun.size() == 1);
    REQUIRE(s.workers[1].stop());
    REQUIRE(s.workers[2].stop());
    s.check_runs();
  });
}

/// The tasks in this state of each process.
std::map<pid_t, std::set<std::int64_t>> tasks_of_processes(store& tasks, rondo::durable::task_state in) {
  std::map<pid_t, std::set<std::int64_t>> all;
  for (const auto& t : tasks.list("default", in, 0, 10'000)) {
    const auto end = t.owner.rfind(':'), begin = t.owner.rfind(':', end - 1) + 1;
    all[std::stoi(t.owner.substr(begin, end - begin))].insert(t.id);
  }
  return all;
}

TEST_CASE(
    "at 250 tasks a second on three processes, what a killed one had not begun is not late by the lease") {
  using rondo::durable::task_state;
  constexpr int count = 2000;
  on_both([](site& s) {
    s.settings.window = 5s;  // as in a dispatcher's default options, and so is the lease
    s.start(3);
    std::vector<rondo::durable::planned> all;
    for (int i = 0; i != count; ++i) all.push_back({.what = {.payload = "0"}, .when = 4s + i * 4ms});
    const auto from = steady_clock::now();
    const auto ids = s.tasks->submit_all(all);
    for (std::size_t i = 0; i != ids.size(); ++i)
      s.due.emplace(ids[i], from + std::get<rondo::duration>(all[i].when));
    REQUIRE(s.eventually([](const account& a) { return a.tasks.size() >= count / 4; }));
    const auto held = tasks_of_processes(*s.tasks, task_state::held);
    REQUIRE(!held.empty());
    const pid_t victim =
        std::ranges::max_element(held, {}, [](const auto& of) { return of.second.size(); })->first;
    for (worker_process& w : s.workers)
      if (w.id() == victim) w.kill();
    // The death may have been between the record that a run begins and the call of the handler.
    const auto begun = tasks_of_processes(*s.tasks, task_state::running)[victim];
    REQUIRE(s.eventually([&](const account& a) {
      return std::ranges::all_of(ids, [&](auto id) { return begun.contains(id) || a.ended(id) != 0; });
    }));
    std::chrono::milliseconds latest{0};
    for (const auto& [id, runs] : s.now().tasks) {
      if (begun.contains(id)) continue;
      CHECK(runs.begun.size() == 1);
      latest =
          std::max(latest, std::chrono::ceil<std::chrono::milliseconds>(runs.begun[0].at - s.due.at(id)));
    }
    MESSAGE(held.at(victim).size() << " tasks were held and " << begun.size()
                                   << " begun; the latest of the others was late by " << latest.count()
                                   << " ms");
    CHECK(latest < s.settings.lease / 2);
    s.check_runs();
  });
}

TEST_CASE("when a process is halted for longer than its lease and continues, the end of its run is refused") {
  on_both([](site& s) {
    s.settings.lease = 1s;
    s.start(1);
    const auto id = s.submit(0s, "300");
    REQUIRE(s.eventually([&](const account& a) { return !a.tasks.empty(); }));
    s.workers[0].send(SIGSTOP);
    s.start(1);
    REQUIRE(s.eventually([&](const account& a) { return a.ended(id) == 1; }));
    const auto runs = s.now().tasks.at(id).begun;
    REQUIRE(runs.size() == 2);
    CHECK(runs[0].process == s.workers[0].id());
    CHECK(runs[1].process == s.workers[1].id());
    CHECK(runs[1].attempt == 2);
    const pid_t halted = s.workers[0].id(), other = s.workers[1].id();
    REQUIRE(s.workers[1].stop());
    s.workers[0].send(SIGCONT);
    REQUIRE(s.eventually([&](const account& a) { return a.ended(id) == 2; }));
    REQUIRE(s.workers[0].stop());
    const account a = s.now();
    CHECK(a.stopped.at(halted).id == 1);     // lost a lease
    CHECK(a.stopped.at(halted).fence == 0);  // has completed nothing
    CHECK(a.stopped.at(other).id == 0);
    CHECK(a.stopped.at(other).fence == 1);
    s.check_runs();
  });
}

TEST_CASE("a restart of the server under load costs only time") {
  for (const auto how : {postgresql_server::how::fast, postgresql_server::how::immediate}) {
    site s(true);
    s.settings.lease = 3s;
    s.start(3);
    for (int i = 0; i != 200; ++i) s.submit((i * 10) * 1ms, "5");
    std::vector<interruption> crashes;
    for (const std::size_t ran : {30U, 90U}) {
      REQUIRE(s.eventually([&](const account& a) { return a.tasks.size() >= ran; }));
      const auto from = steady_clock::now();
      postgresql_server::get()->restart(how);
      if (how == postgresql_server::how::immediate) crashes.push_back({0, from, steady_clock::now()});
    }
    REQUIRE(s.all_ended());
    s.check_runs(crashes);
    CHECK(s.all_gone());
  }
}

TEST_CASE("with a server, a node's wall clock may be set forward and back") {
  site s(true);
  s.start(2);
  for (int i = 0; i != 100; ++i) s.submit((i * 20) * 1ms, "1");
  for (std::size_t n = 1; n != 9; ++n) {
    REQUIRE(s.eventually([&](const account& a) { return a.tasks.size() >= n * 10; }));
    s.workers[0].send(n % 3 == 0 ? worker_process::clock_back : worker_process::clock_forward);
  }
  REQUIRE(s.all_ended());
  REQUIRE(s.stop());
  const account a = s.now();
  for (const auto& [id, runs] : a.tasks) {
    CHECK(runs.begun.size() == 1);
    CHECK(runs.begun[0].at - s.due.at(id) < 30s);  // with the fault it would be an hour
  }
  s.check_runs();
  CHECK(s.all_gone());
}

TEST_CASE("dispatchers that start at once on an empty database share it") {
  on_both([](site& s) {
    s.tasks.reset();
    if (s.settings.url.starts_with("sqlite:")) std::filesystem::remove(s.settings.url.substr(7));
    s.start(4);
    s.tasks = store::open(s.settings.url);
    for (int i = 0; i != 40; ++i) s.submit(0s, "1");
    REQUIRE(s.all_ended());
    REQUIRE(s.stop());
    CHECK(s.now().tasks.size() == 40);
    s.check_runs();
  });
}

TEST_CASE("in a child made by fork, a dispatcher and a store can be destroyed, and the parent's continue") {
  on_both([](site& s) {
    rondo::timer timer;
    rondo::test::gate running, may_end, ran;
    std::optional<rondo::durable::dispatcher> d(
        std::in_place, timer, *s.tasks, [&](const rondo::durable::task& t) {
          if (t.payload == "second") return ran.open();
          running.open();  // so that a thread is busy when the process forks
          CHECK(may_end.wait());
        });
    s.tasks->submit_after(0s, {.payload = "first"});
    REQUIRE(running.wait());
    CHECK(rondo::test::in_child([&] {
            bool is_refused = false;
            try {
              s.tasks->submit_after(0s, {.payload = "third"});
            } catch (const rondo::durable::store_error& e) {
              is_refused = std::string(e.what()).find("fork") != std::string::npos;
            }
            d->stop();
            d.reset();
            s.tasks.reset();
            return rondo::test::first_wrong({is_refused});
          }) == "");
    may_end.open();
    s.tasks->submit_after(0s, {.payload = "second"});
    CHECK(ran.wait());
    d->stop();
    CHECK(d->stats().completed == 2);
    CHECK(d->stats().failures == 0);
  });
}

TEST_CASE("a store that a child made by fork destroys without a dispatcher stays connected in the parent") {
  on_both([](site& s) {
    const auto id = s.tasks->submit_after(1h, {});
    CHECK(rondo::test::in_child([&] {
            s.tasks.reset();
            return 0;
          }) == "");
    // The parent's connection would be broken, and the transaction with it: the first call after that reports it.
    CHECK(s.tasks->find(id).has_value());
    CHECK(s.tasks->cancel(id));
  });
}

}  // namespace durable_dispatcher_processes
