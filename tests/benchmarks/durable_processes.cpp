#include "durable_processes.hpp"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

namespace durable_workloads {

namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

/// Reads up to the end of a line, which is left out.
std::string read_line(int from) {
  std::string line;
  for (char c = 0; c != '\n'; line += c)
    if (read(from, &c, 1) != 1) throw std::runtime_error("a worker process has ended");
  line.pop_back();
  return line;
}

void write_all(int to, const std::string& text) {
  if (write(to, text.data(), text.size()) != static_cast<ssize_t>(text.size())) fail("write");
}

bool has_command(int from) {
  pollfd one{from, POLLIN, 0};
  return poll(&one, 1, 1) != 0;
}

}  // namespace

worker_processes::worker_processes(std::size_t n) {
  void* shared = mmap(nullptr, n * sizeof(told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");
  told_ = static_cast<told*>(shared);  // zeros
  std::fflush(stdout);                 // or each would write what is left
  for (std::size_t i = 0; i != n; ++i) {
    int commands[2], answers[2];
    if (pipe(commands) != 0 || pipe(answers) != 0) fail("pipe");
    const pid_t self = getpid(), id = fork();
    if (id < 0) fail("fork");
    if (id == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(1);
      work(commands[0], answers[1], told_[i]);
    }
    close(commands[0]);
    close(answers[1]);
    all_.push_back({id, commands[1], answers[0]});
  }
}

worker_processes::~worker_processes() {
  for (const process& p : all_) {
    kill(p.id, SIGKILL);
    waitpid(p.id, nullptr, 0);
    close(p.commands);
    close(p.answers);
  }
  munmap(told_, all_.size() * sizeof(told));
}

/// Lines are a URL to open, "start" and "stop". Each is answered.
void worker_processes::work(int commands, int answers, told& to) {
  try {
    for (;;) {
      const auto store = rondo::durable::store::open(read_line(commands));
      write_all(answers, "open\n");
      read_line(commands);
      to.completed = to.sum = 0;
      rondo::timer timer;
      rondo::durable::dispatcher runs(
          timer, *store, [&](const rondo::durable::task& t) { to.sum += std::stoull(t.payload) + 1; });
      write_all(answers, "started\n");
      while (!has_command(commands)) to.completed = runs.stats().completed;
      read_line(commands);
      runs.stop();
      to.completed = runs.stats().completed;
      write_all(answers, "stopped\n");
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "A worker process: %s\n", e.what());
  }
  _exit(1);
}

void worker_processes::send_all(const std::string& line) const {
  for (const process& p : all_) write_all(p.commands, line + '\n');
  for (const process& p : all_) read_line(p.answers);
}

void worker_processes::open(const std::string& url) { send_all(url); }
void worker_processes::start() { send_all("start"); }
void worker_processes::stop() { send_all("stop"); }

std::uint64_t worker_processes::completed() const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i != all_.size(); ++i) all += told_[i].completed;
  return all;
}

std::uint64_t worker_processes::sum() const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i != all_.size(); ++i) all += told_[i].sum;
  return all;
}

}  // namespace durable_workloads
