// The main program of the tests that need a server. It is skipped if there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "durable/postgresql_server.hpp"
#include "durable/worker.hpp"

/// With --odd-settings, our connections are of a role with settings that nobody expects.
int main(int argc, char** argv) {
  durable_test::be_worker_if_asked(argc, argv);
  doctest::Context context(argc, argv);
  const bool only_asked = context.shouldExit();
  if (!only_asked && durable_test::postgresql_server::get() == nullptr) return 77;  // skipped, to Meson
  if (std::any_of(argv, argv + argc,
                  [](const char* word) { return std::strcmp(word, "--odd-settings") == 0; }))
    std::cout << durable_test::postgresql_server::get()->use_odd_settings() << " odd settings\n";
  return context.run();
}
