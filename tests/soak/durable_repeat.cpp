// Trial by fire of a repeated task: it is due every 100 ms, three processes share it, a random one of them is killed and
// replaced each second, and the PostgreSQL server is crashed twice.
//
//     durable_repeat_soak --seconds 300 --seed 1 --store sqlite|postgresql
//
// At the end each point must have been run, no two runs may have overlapped, and a second run of a point must be explained
// by the death of the process that had the first, or of the server. The exit code is 1 if that is not so, and 77 if the
// database is not available.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/worker.hpp"
#ifdef WITH_POSTGRESQL
#include "durable/postgresql_server.hpp"
#endif

namespace {

using namespace std::chrono_literals;
using namespace durable_test;
using rondo::durable::store;
using rondo::durable::store_error;
using std::chrono::steady_clock;

constexpr auto period = 100ms;
constexpr auto lease = 2s;

struct wishes {
  double seconds = 10;
  std::uint64_t seed = std::random_device{}();
  std::string store = "sqlite";
};

std::int64_t microseconds_of(rondo::durable::wall_time t) {
  return std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count();
}

class trial {
 public:
  trial(const wishes& w, const std::string& folder) : wishes_(w), random_(w.seed) {
    settings_.journal = folder + "/journal";
    settings_.url = "sqlite:" + folder + "/tasks.db";
    settings_.lease = lease;
#ifdef WITH_POSTGRESQL
    if (w.store == "postgresql") settings_.url = postgresql_server::get()->new_database();
#endif
    tasks_ = store::open(settings_.url);
    declare();
    first_ = microseconds_of(*tasks_->find("default", "tick")->point);
    for (int i = 0; i != 3; ++i) workers_.emplace_back(settings_);
  }

  /// Returns what went wrong; empty if nothing did.
  std::string run() {
    const auto begin = steady_clock::now();
    const auto whole = std::chrono::duration<double>(wishes_.seconds);
    int crashes = 0;
    for (auto next = begin + 1s; next < begin + whole; next = std::max(next + 1s, steady_clock::now())) {
      std::this_thread::sleep_until(next);
      kill_one();
      if (crashes != 2 && steady_clock::now() - begin > whole * (crashes + 1) / 3) crash_server(), ++crashes;
      declare();  // as each node does when it starts
    }
    if (!catches_up()) return "the task did not catch up";
    for (worker_process& each : workers_)
      if (!each.stop()) return "a worker did not end in good order";
    return verdict();
  }

 private:
  /// Waits while the server restarts.
  template <class Call>
  auto patiently(Call call) {
    for (int i = 0;; ++i) {
      try {
        return call();
      } catch (const store_error&) {
        if (i == 600) throw;
        std::this_thread::sleep_for(50ms);
      }
    }
  }

  void declare() {
    patiently([&] {
      return tasks_->repeat({.key = "tick",
                             .payload = "10",  // a run takes 10 ms
                             .when = rondo::durable::schedule::every(period),
                             .missed = rondo::durable::missed_points::run_all});
    });
  }

  void kill_one() {
    worker_process& one = workers_[std::uniform_int_distribution<std::size_t>(0, 2)(random_)];
    const pid_t id = one.id();
    killed_.emplace(id, steady_clock::now());
    one.kill();
    one = worker_process(settings_);
  }

  void crash_server() {
#ifdef WITH_POSTGRESQL
    if (wishes_.store != "postgresql") return;
    const auto from = steady_clock::now();
    postgresql_server::get()->restart(postgresql_server::how::immediate);
    crashes_.emplace_back(from, steady_clock::now());
#endif
  }

  /// Waits until the task waits for a point to come, and ends it.
  bool catches_up() {
    for (const auto end = steady_clock::now() + 1min; steady_clock::now() < end;
         std::this_thread::sleep_for(5ms)) {
      const auto t = patiently([&] { return tasks_->find("default", "tick"); });
      if (!t) return false;
      if (*t->point > std::chrono::system_clock::now()) {
        end_ = microseconds_of(*t->point);
        tasks_->cancel("default", "tick");
        return true;
      }
    }
    return false;
  }

  /// Whether the process of this run was killed, or the server crashed, between these two times.
  bool is_excused(const record& run, steady_clock::time_point until) const {
    const auto death = killed_.find(run.process);
    if (death != killed_.end() && death->second >= run.at - 1s && death->second < until) return true;
    return std::ranges::any_of(crashes_,
                               [&](const auto& c) { return c.first < until && c.second > run.at - 1s; });
  }

  std::string verdict() const {
    std::vector<record> all = read_journal(settings_.journal);
    std::ranges::stable_sort(all, {}, &record::at);
    std::map<std::int64_t, std::vector<record>> of_point;
    std::optional<record> in_progress;
    std::string wrong;
    for (const record& r : all) {
      if (r.kind == record::end && in_progress && in_progress->process == r.process) in_progress.reset();
      if (r.kind != record::begin) continue;
      if (in_progress && !was_killed_before(in_progress->process, r.at))
        wrong = "two runs overlap, of points " + std::to_string(in_progress->point) + " and " +
                std::to_string(r.point);
      in_progress = r;
      auto& runs = of_point[r.point];
      if (!runs.empty() && !is_excused(runs.back(), r.at))
        wrong = "point " + std::to_string(r.point) + " was run twice, and nobody died";
      if (!of_point.empty() && r.point < of_point.rbegin()->first)
        wrong = "point " + std::to_string(r.point) + " was run after a later one";
      runs.push_back(r);
    }
    return balance(of_point, wrong);
  }

  bool was_killed_before(pid_t process, steady_clock::time_point t) const {
    const auto death = killed_.find(process);
    return death != killed_.end() && death->second < t;
  }

  std::string balance(const std::map<std::int64_t, std::vector<record>>& of_point, std::string wrong) const {
    if (of_point.empty()) return "no point was run";
    const std::int64_t step = std::chrono::microseconds(period).count();
    const std::int64_t last = of_point.rbegin()->first;
    std::size_t again = 0;
    for (const auto& [point, runs] : of_point) again += runs.size() - 1;
    std::printf("%zu points, %zu of them run again; %zu processes killed, %zu crashes of the server\n",
                of_point.size(), again, killed_.size(), crashes_.size());
    for (std::int64_t p = first_; p < end_; p += step)
      if (!of_point.contains(p)) return "point " + std::to_string(p) + " was not run";
    if (static_cast<std::int64_t>(of_point.size()) != (last - first_) / step + 1)
      return "a point is not on the grid";
    return wrong;
  }

  const wishes wishes_;
  std::mt19937_64 random_;
  worker_process::settings settings_;
  std::unique_ptr<store> tasks_;
  std::vector<worker_process> workers_;
  std::map<pid_t, steady_clock::time_point> killed_;
  std::vector<std::pair<steady_clock::time_point, steady_clock::time_point>> crashes_;
  std::int64_t first_ = 0, end_ = 0;  // the first point, and the first that need not be run
};

bool understood(int argc, char** argv, wishes& w) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    if (option == "--seconds")
      w.seconds = std::atof(argv[i + 1]);
    else if (option == "--seed")
      w.seed = std::strtoull(argv[i + 1], nullptr, 10);
    else if (option == "--store")
      w.store = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1 && w.seconds > 0 && (w.store == "sqlite" || w.store == "postgresql");
}

bool is_there(const std::string& database) {
#ifdef WITH_POSTGRESQL
  return database != "postgresql" || postgresql_server::get() != nullptr;
#else
  return database != "postgresql";
#endif
}

}  // namespace

int main(int argc, char** argv) {
  be_worker_if_asked(argc, argv);
  wishes w;
  if (!understood(argc, argv, w)) {
    std::fprintf(stderr, "usage: durable_repeat_soak [--seconds N] [--seed N] [--store sqlite|postgresql]\n");
    return 2;
  }
  if (!is_there(w.store)) return 77;
  std::printf("seed %llu\n", static_cast<unsigned long long>(w.seed));
  std::fflush(stdout);
  std::string folder = (std::filesystem::temp_directory_path() / "rondo-soak-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  std::string wrong;
  try {
    wrong = trial(w, folder).run();
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  if (wrong.empty()) {
    std::filesystem::remove_all(folder);
    return 0;
  }
  std::printf("Wrong: %s. The journal is in %s\n", wrong.c_str(), folder.c_str());
  return 1;
}
