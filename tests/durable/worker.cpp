#include "durable/worker.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

namespace {

std::atomic<std::int64_t> wall_clock_shift{0};  // s

}  // namespace

// Replaces the C library's function in the entire program.
extern "C" int clock_gettime(clockid_t clock, timespec* t) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, t));
  if (result == 0 && clock == CLOCK_REALTIME) t->tv_sec += wall_clock_shift;
  return result;
}

namespace durable_test {

using namespace std::chrono_literals;
using rondo::durable::task;

const int worker_process::clock_forward = SIGUSR1, worker_process::clock_back = SIGUSR2;

namespace {

class journal {
 public:
  explicit journal(const char* file) : file_(::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), file);
  }

  /// Writes a line in one piece, even if other processes write too.
  void write(char kind, std::int64_t id, std::int64_t fence, int attempt, std::int64_t point) const {
    char line[200];
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const int length =
        std::snprintf(line, sizeof line, "%c %d %" PRId64 " %" PRId64 " %d %lld %" PRId64 "\n", kind,
                      static_cast<int>(getpid()), id, fence, attempt, static_cast<long long>(now), point);
    if (::write(file_, line, static_cast<std::size_t>(length)) != length) std::abort();
  }
  void write(char kind, const task& t) const {
    const auto point = t.point.value_or(rondo::durable::wall_time()).time_since_epoch();
    write(kind, t.id, t.fence, t.attempt,
          std::chrono::duration_cast<std::chrono::microseconds>(point).count());
  }

 private:
  int file_;
};

void handle(const task& t, const journal& to) {
  to.write(record::begin, t);
  std::this_thread::sleep_for(std::atoi(t.payload.c_str()) * 1ms);
  if (t.attempt == 1 && t.payload.ends_with(" fails")) {
    to.write(record::failure, t);
    throw std::runtime_error("as it was told");
  }
  to.write(record::end, t);
}

sigset_t block_termination() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return ends;
}

/// Returns what `make` returns. Waits for a server that is being restarted.
template <class Make>
auto patiently(Make make) {
  for (int i = 0;; ++i) {
    try {
      return make();
    } catch (const rondo::durable::store_error& e) {
      if (i == 300 || std::string(e.what()).find("connection") == std::string::npos) throw;
      std::this_thread::sleep_for(100ms);
    }
  }
}

/// --worker URL JOURNAL LEASE WINDOW THREADS
int work(char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(worker_process::clock_forward, [](int) { wall_clock_shift += 3600; });
  std::signal(worker_process::clock_back, [](int) { wall_clock_shift -= 7200; });
  const sigset_t ends = block_termination();
  const journal out(argv[3]);
  rondo::durable::dispatcher_options options;
  options.lease = std::atoi(argv[4]) * 1ms;
  options.window = std::atoi(argv[5]) * 1ms;
  options.threads = static_cast<std::size_t>(std::atoi(argv[6]));
  options.max_attempts = 1'000'000;
  options.first_retry = 50ms;
  options.longest_retry = 200ms;
  options.on_error = [](const std::string&) {};
  const auto store = patiently([&] { return rondo::durable::store::open(argv[2]); });
  rondo::timer time;
  const auto runs = patiently([&] {
    return std::make_unique<rondo::durable::dispatcher>(
        time, *store, [&](const task& t) { handle(t, out); }, options);
  });
  int signal = 0;
  sigwait(&ends, &signal);
  runs->stop();
  const auto s = runs->stats();
  out.write(record::stop, static_cast<std::int64_t>(s.leases_lost), static_cast<std::int64_t>(s.completed), 0,
            0);
  return 0;
}

}  // namespace

void be_worker_if_asked(int argc, char** argv) {
  if (argc != 7 || std::string(argv[1]) != "--worker") return;
  int result = 1;
  try {
    result = work(argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "A worker: %s\n", e.what());
  }
  _exit(result);
}

worker_process::worker_process(const settings& s) {
  const std::string numbers[] = {std::to_string(s.lease.count()), std::to_string(s.window.count()),
                                 std::to_string(s.threads)};
  const char* const arguments[] = {
      "worker",           "--worker",         s.url.c_str(),      s.journal.c_str(),
      numbers[0].c_str(), numbers[1].c_str(), numbers[2].c_str(), nullptr};
  // Blocked before the child begins. Otherwise the signal for an orderly stop would kill a process that is just
  // starting.
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  block_termination();
  id_ = fork();
  if (id_ != 0) {
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (id_ < 0) throw std::system_error(error, std::generic_category(), "fork");
    return;
  }
  execv("/proc/self/exe", const_cast<char* const*>(arguments));
  _exit(127);
}

worker_process::~worker_process() { kill(); }

worker_process::worker_process(worker_process&& other) noexcept : id_(std::exchange(other.id_, 0)) {}

worker_process& worker_process::operator=(worker_process&& other) noexcept {
  kill();
  id_ = std::exchange(other.id_, 0);
  return *this;
}

void worker_process::send(int signal) const {
  if (id_ != 0) ::kill(id_, signal);
}

void worker_process::kill() {
  if (id_ == 0) return;
  send(SIGKILL);
  waitpid(std::exchange(id_, 0), nullptr, 0);
}

bool worker_process::stop() {
  if (id_ == 0) return false;
  send(SIGTERM);
  int status = 0;
  waitpid(std::exchange(id_, 0), &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<record> read_journal(const std::string& file) {
  std::vector<record> all;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    record r{};
    int process = 0;
    long long at = 0;
    if (std::sscanf(line.c_str(), "%c %d %" SCNd64 " %" SCNd64 " %d %lld %" SCNd64, &r.kind, &process, &r.id,
                    &r.fence, &r.attempt, &at, &r.point) != 7)
      throw std::runtime_error("a line of the journal: " + line);
    r.process = process;
    r.at = std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(at));
    all.push_back(r);
  }
  return all;
}

account::account(const std::string& journal) {
  for (const record& r : read_journal(journal)) {
    if (r.kind == record::begin) tasks[r.id].begun.push_back(r);
    if (r.kind == record::end) ++tasks[r.id].ended;
    if (r.kind == record::failure) ++tasks[r.id].failed;
    if (r.kind == record::stop) stopped.emplace(r.process, r);
  }
}

int account::ended(std::int64_t id) const {
  const auto t = tasks.find(id);
  return t == tasks.end() ? 0 : t->second.ended;
}

std::string account::wrong_runs(std::chrono::milliseconds lease,
                                const std::vector<interruption>& interruptions) const {
  for (const auto& [id, all] : tasks) {
    for (std::size_t i = 1; i < all.begun.size(); ++i) {
      const record &one = all.begun[i - 1], &next = all.begun[i];
      const std::string which =
          "task " + std::to_string(id) + ", runs " + std::to_string(i) + " and the next";
      if (next.fence <= one.fence) return which + ": the fence is not greater";
      const auto is_between = [&](const interruption& it) {
        return (it.process == 0 || it.process == one.process) && it.from < next.at && it.to > one.at - lease;
      };
      const bool may_be_soon =
          (one.attempt == 1 && all.failed != 0) || std::ranges::any_of(interruptions, is_between);
      const auto between = next.at - one.at;
      if (!may_be_soon && between < lease * 2 / 3)
        return which + ": only " +
               std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(between).count()) +
               " ms between them";
    }
  }
  return "";
}

}  // namespace durable_test
