// The main program of the tests that need a server. It is skipped if there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "durable/postgresql_server.hpp"
#include "durable/worker.hpp"

int main(int argc, char** argv) {
  durable_test::be_worker_if_asked(argc, argv);
  doctest::Context context(argc, argv);
  const bool only_asked = context.shouldExit();
  if (!only_asked && durable_test::postgresql_server::get() == nullptr) return 77;  // skipped, to Meson
  return context.run();
}
