// The main program of the tests that need a server, and their databases. It is skipped if there is no server.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "durable/postgresql_database.hpp"
#include "durable/postgresql_server.hpp"
#include "durable/worker.hpp"

namespace durable_test {

namespace {

// If there is no server, main() has ended the program before any test.
postgresql_server& server() {
  auto* const there = postgresql_server::get();
  if (there == nullptr) throw std::runtime_error("PostgreSQL is not installed");
  return *there;
}

}  // namespace

std::unique_ptr<sql_database> new_sql_database() { return std::make_unique<postgresql_database>(server()); }

std::unique_ptr<sql_database> new_sql_database(std::function<rondo::durable::wall_time()> clock) {
  return std::make_unique<postgresql_database>(server(), std::move(clock));
}

std::unique_ptr<database> new_database() { return new_sql_database(); }

}  // namespace durable_test

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
