// Checked builds and builds without NDEBUG detect undefined behaviour and abort. So each case runs in a child process.
#if defined(RONDO_CHECKS) || !defined(NDEBUG)

#include <doctest/doctest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "recording.hpp"

namespace wheel_misuse {

using namespace wheel_test;

/// To be called in the child: sends errors to the pipe, and disables the handler of SIGABRT and the core file.
void become_quiet(int error_output) {
  std::signal(SIGABRT, SIG_DFL);
  const rlimit no_core_file{0, 0};
  setrlimit(RLIMIT_CORE, &no_core_file);
  dup2(error_output, STDERR_FILENO);
}

std::string read_all(int file) {
  std::string text;
  char part[256];
  for (ssize_t got = 0; (got = read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  return text;
}

/// Whether the wheel aborts with a diagnostic. Other crashes do not count.
template <class Misuse>
bool is_caught(Misuse misuse, const char* what = "inside its own callback") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child != -1);
  if (child == 0) {
    become_quiet(ends[1]);
    misuse();
    _exit(0);
  }
  close(ends[1]);
  const std::string said = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && said.find("rondo: ") == 0 &&
         said.find(what) != std::string::npos;
}

TEST_CASE("advancing a wheel inside its own callback is caught") {
  CHECK(is_caught([] {
    wheel w(8);
    timer a;
    w.schedule(a, 5);
    w.advance(10, [&](timer&) { w.advance(10, [](timer&) {}); });
  }));
}

TEST_CASE("destroying a wheel inside its own callback is caught") {
  CHECK(is_caught([] {
    auto w = std::make_unique<wheel>(8);
    timer a;
    w->schedule(a, 5);
    w->advance(10, [&](timer&) { w.reset(); });
  }));
}

#if defined(RONDO_CHECKS)
TEST_CASE("a broken wheel is detected after one of the next calls") {
  CHECK(is_caught(
      [] {
        rondo::detail::wheel_core w(8);
        w.size = 1;
        for (int calls = 0; calls != 2; ++calls) w.check_periodically("a call");
      },
      "after a call of a wheel: it holds 0 nodes, but counts 1"));
}
#endif

TEST_CASE("advance() after a callback has thrown is not a nested advance") {
  CHECK_FALSE(is_caught([] {
    wheel w(8);
    timer a;
    w.schedule(a, 5);
    try {
      w.advance(10, [](timer&) { throw 1; });
    } catch (int) {
    }
    w.advance(10, [](timer&) {});
  }));
}

}  // namespace wheel_misuse

#endif
