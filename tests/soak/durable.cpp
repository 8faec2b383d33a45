// Soak of durable tasks. Processes that share the tasks of a database are killed, halted and stopped at random, and the
// PostgreSQL server is restarted, while tasks are submitted, cancelled, moved and replaced. At the end every task must
// be accounted for.
//
//     durable_soak --seconds 600 --seed 1 --store sqlite|postgresql
//
// The exit code is 1 if an invariant was violated, and 77 if the database is not available.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/worker.hpp"
#ifdef WITH_POSTGRESQL
#include "durable/postgresql_server.hpp"
#endif

namespace {

using namespace std::chrono_literals;
using namespace durable_test;
using rondo::durable::key_taken;
using rondo::durable::store;
using rondo::durable::store_error;
using std::chrono::steady_clock;

constexpr auto lease = 2s;

struct wishes {
  double seconds = 10;
  std::uint64_t seed = std::random_device{}();
  std::string store = "sqlite";
};

/// What is known about a task in addition to the journal.
struct fate {
  steady_clock::time_point due;
  bool may_vanish = false;  // cancelled or replaced during a run, which may have been the last
  steady_clock::time_point cancelled = steady_clock::time_point::max();  // no run begins later
};

class soaking {
 public:
  soaking(const wishes& w, const std::string& folder) : wishes_(w), random_(w.seed) {
    settings_.journal = folder + "/journal";
    settings_.url = "sqlite:" + folder + "/tasks.db";
    settings_.lease = lease;
#ifdef WITH_POSTGRESQL
    if (w.store == "postgresql") settings_.url = postgresql_server::get()->new_database();
#endif
    tasks_ = store::open(settings_.url);
    for (int i = 0; i != 4; ++i) workers_.emplace_back(settings_);
  }

  /// Returns what went wrong; empty if nothing did.
  std::string run() {
    const auto end = steady_clock::now() + std::chrono::duration<double>(wishes_.seconds);
    while (steady_clock::now() < end) {
      try {
        do_something();
      } catch (const store_error& e) {
        ++refused_;
        if (e.perhaps_done()) ++unknown_;
      }
      end_halts(steady_clock::now());
      std::this_thread::sleep_for(std::chrono::microseconds(up_to(6000)));
    }
    end_halts(steady_clock::time_point::max());
    if (!wait_for_all()) return "tasks are left";
    for (worker_process& each : workers_)
      if (!each.stop()) return "a worker did not end in good order";
    return balance();
  }

 private:
  std::int64_t up_to(std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random_);
  }
  std::size_t some_worker() { return static_cast<std::size_t>(up_to(3)); }
  std::int64_t some_task() { return recent_.at(static_cast<std::size_t>(up_to(99)) % recent_.size()); }

  void do_something() {
    const auto what = up_to(999);
    if (what < 700 || recent_.empty()) return submit();
    if (what < 800) return cancel(some_task());
    if (what < 900) return move(some_task());
    if (what < 906) return kill();
    if (what < 910) return stop();
    if (what < 914) return halt();
    if (what < 915) return restart_server();
  }

  void submit() {
    const auto delay = std::chrono::milliseconds(up_to(3) == 0 ? 0 : up_to(3000));
    rondo::durable::submission s{.payload = std::to_string(up_to(30))};
    if (up_to(9) == 0) s.payload += " fails";
    if (up_to(4) == 0) {
      s.key = "key " + std::to_string(up_to(9));
      s.replace = up_to(1) == 0;
    }
    // It is not known which task is replaced, as a task may have ended by itself.
    if (s.replace) may_vanish(s.key);
    try {
      const auto now = steady_clock::now();
      const auto id = tasks_->submit_after(delay, s);
      fates_[id].due = now + delay;
      if (!s.key.empty()) of_key_[s.key].push_back(id);
      recent_.push_back(id);
      if (recent_.size() > 100) recent_.erase(recent_.begin());
    } catch (const key_taken& e) {
      if (!fates_.contains(e.id()) && unknown_ == 0) throw std::runtime_error("a key is an unknown task's");
    }
  }

  void may_vanish(const std::string& key) {
    for (const auto id : of_key_[key]) fates_[id].may_vanish = true;
  }

  void cancel(std::int64_t id) {
    fate& f = fates_[id];
    const bool waits = !f.may_vanish && f.due > steady_clock::now();
    f.may_vanish = true;
    if (tasks_->cancel(id)) {
      f.cancelled = steady_clock::now();
      ++cancelled_;
    } else if (waits && f.due > steady_clock::now()) {
      throw std::runtime_error("a task that was not due yet could not be cancelled");
    }
  }

  void move(std::int64_t id) {
    const auto delay = std::chrono::milliseconds(up_to(2000));
    const auto due = std::min(fates_[id].due, steady_clock::now() + delay);
    try {
      if (tasks_->reschedule_after(id, delay)) fates_[id].due = due;
    } catch (const store_error& e) {
      if (e.perhaps_done()) fates_[id].due = due;
      throw;
    }
  }

  void kill() {
    const auto i = some_worker();
    halted_until_.erase(workers_[i].id());
    end_interruption(workers_[i].id());
    workers_[i].kill();
    workers_[i] = worker_process(settings_);
    ++killed_;
  }

  void stop() {
    const auto i = some_worker();
    if (halted_until_.contains(workers_[i].id())) return;
    if (!workers_[i].stop()) throw std::runtime_error("a worker did not end in good order");
    workers_[i] = worker_process(settings_);
    ++stopped_;
  }

  void halt() {
    const pid_t id = workers_[some_worker()].id();
    if (!halted_until_.emplace(id, steady_clock::now() + std::chrono::milliseconds(up_to(4000))).second)
      return;
    interruptions_.push_back({id, steady_clock::now(), steady_clock::time_point::max()});
    ::kill(id, SIGSTOP);
    ++halts_;
  }

  void end_halts(steady_clock::time_point until) {
    std::erase_if(halted_until_, [&](const auto& halt) {
      if (halt.second > until) return false;
      ::kill(halt.first, SIGCONT);
      end_interruption(halt.first);
      return true;
    });
  }

  void end_interruption(pid_t id) {
    for (interruption& i : interruptions_)
      if (i.process == id) i.to = std::min(i.to, steady_clock::now());
  }

  void restart_server() {
#ifdef WITH_POSTGRESQL
    if (wishes_.store != "postgresql") return;
    using how = postgresql_server::how;
    const auto from = steady_clock::now();
    const how h = up_to(1) == 0 ? how::fast : how::immediate;
    postgresql_server::get()->restart(h);
    if (h == how::immediate) interruptions_.push_back({0, from, steady_clock::now()});
    ++restarts_;
#endif
  }

  bool wait_for_all() {
    const auto end = steady_clock::now() + 2min;
    for (const auto& [id, fate] : fates_) {
      for (;;) {
        try {
          if (!tasks_->find(id)) break;
        } catch (const store_error&) {  // from a server that was just restarted
        }
        if (steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(10ms);
      }
    }
    return true;
  }

  std::string balance() const {
    const account all(settings_.journal);
    std::size_t ended = 0, again = 0, lost = 0, unknown = 0;
    std::string wrong;
    for (const auto& [id, fate] : fates_) {
      if (all.ended(id) != 0)
        ++ended;
      else if (!fate.may_vanish)
        ++lost, wrong = "task " + std::to_string(id) + " was lost";
    }
    for (const auto& [id, runs] : all.tasks) {
      const auto fate = fates_.find(id);
      if (fate == fates_.end() && ++unknown != 0) continue;
      again += runs.begun.size() - 1;
      for (const record& r : runs.begun) {
        if (r.at < fate->second.due) wrong = "task " + std::to_string(id) + " ran early";
        if (r.at > fate->second.cancelled) wrong = "task " + std::to_string(id) + " ran although cancelled";
      }
    }
    if (unknown > unknown_) wrong = "tasks ran that nobody has submitted";
    const std::string runs = all.wrong_runs(lease, interruptions_);
    std::printf(
        "%zu tasks submitted, %zu ended, %zu cancelled, %zu lost, %zu run again; %zu workers killed, %zu "
        "halted, %zu "
        "stopped; %zu restarts of the server, %zu calls refused\n",
        fates_.size(), ended, cancelled_, lost, again, killed_, halts_, stopped_, restarts_, refused_);
    return wrong.empty() ? runs : wrong;
  }

  const wishes wishes_;
  std::mt19937_64 random_;
  worker_process::settings settings_;
  std::unique_ptr<store> tasks_;
  std::vector<worker_process> workers_;
  std::map<std::int64_t, fate> fates_;
  std::map<std::string, std::vector<std::int64_t>> of_key_;
  std::vector<std::int64_t> recent_;
  std::map<pid_t, steady_clock::time_point> halted_until_;
  std::vector<interruption> interruptions_;
  std::size_t cancelled_ = 0, killed_ = 0, stopped_ = 0, halts_ = 0, restarts_ = 0, refused_ = 0,
              unknown_ = 0;
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
    std::fprintf(stderr, "usage: durable_soak [--seconds N] [--seed N] [--store sqlite|postgresql]\n");
    return 2;
  }
  if (!is_there(w.store)) return 77;
  std::printf("seed %llu\n", static_cast<unsigned long long>(w.seed));
  std::fflush(stdout);
  std::string folder = (std::filesystem::temp_directory_path() / "rondo-soak-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  std::string wrong;
  try {
    wrong = soaking(w, folder).run();
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
