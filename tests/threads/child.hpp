// Runs tests in a child process, which ends by itself and reports what failed there.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <string>

#include <doctest/doctest.h>

// The threads and locks of these sanitizers do not survive a fork if the child creates threads. They also report a
// thread that ended before the fork as leaked, because the child cannot join it.
#if defined(__SANITIZE_THREAD__)
#define RONDO_TEST_CHILD_HAS_NO_THREADS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RONDO_TEST_CHILD_HAS_NO_THREADS
#endif
#endif

namespace rondo::test {

/// Runs body() in a child. Returns the first word of the failure there, or "" if there was none.
template <class Body>
std::string in_child(Body&& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(60);  // kills the child if it hangs; on a busy machine it may take long
    int wrong = 0;
    try {
      wrong = body();
    } catch (...) {
      wrong = 99;
    }
    _exit(wrong);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "check " + std::to_string(WEXITSTATUS(status));
}

/// For in_child(): the number of the first check that is false.
inline int first_wrong(std::initializer_list<bool> checks) {
  int number = 1;
  for (const bool right : checks) {
    if (!right) return number;
    ++number;
  }
  return 0;
}

}  // namespace rondo::test
