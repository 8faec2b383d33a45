// The main program of the tests of the simulated database: it runs them all with each kind of locking.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "durable/database.hpp"
#include "durable/simulated_database.hpp"

namespace durable_test {

namespace {

locking how_to_lock = locking::rows;

class database_in_memory final : public database {
 public:
  std::shared_ptr<rondo::durable::detail::engine> open() override { return data_.open(); }
  void pass(rondo::duration time) override {
    now_ += std::chrono::duration_cast<rondo::durable::wall_time::duration>(time);
  }
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
  int failed = 0;
  for (const auto& [how, name] : {std::pair(durable_test::locking::rows, "rows"),
                                  std::pair(durable_test::locking::database, "the database")}) {
    durable_test::how_to_lock = how;
    doctest::Context context(argc, argv);
    if (!context.shouldExit()) std::cout << "Transactions lock " << name << ".\n";
    failed |= context.run();
    if (context.shouldExit()) break;
  }
  return failed;
}
