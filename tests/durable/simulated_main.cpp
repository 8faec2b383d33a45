// The main program of the tests of the simulated database. Its first argument says what transactions lock: "rows" or
// "database".
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "durable/database.hpp"
#include "durable/simulated_database.hpp"

namespace durable_test {

namespace {

locking how_to_lock = locking::rows;

class database_in_memory final : public database {
 public:
  std::shared_ptr<rondo::durable::detail::engine> open() override { return data_.open(); }
  void pass(rondo::duration time) override { now_ += time; }
  rondo::durable::wall_time now() override { return now_; }
  std::vector<row> rows() override { return data_.rows(); }
  std::vector<std::string> owners() override { return data_.owners(); }

 private:
  rondo::durable::wall_time now_{std::chrono::hours(500'000)};
  simulated_database data_{[this] { return now_; }, how_to_lock};
};

}  // namespace

std::unique_ptr<database> new_database() { return std::make_unique<database_in_memory>(); }

}  // namespace durable_test

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "database")
    durable_test::how_to_lock = durable_test::locking::database;
  return doctest::Context(argc, argv).run();
}
