// A small shop whose payment limits, confirmations and price plans outlive the process: they are durable tasks, in the
// same database as the orders. Several processes on one store share the work.
//
//   options      the command line
//   database     the shop's own connections to the store's database (sqlite_database, postgresql_database);
//                connections: a pool of them; change: a transaction
//   tables       the shop's tables; attempts: notes in them
//   orders       placed, paid, closed, confirmed: each step is one transaction with the task that belongs to it
//   price_plans  prices that change at a given time, likewise
//   reports      a report each night, whatever node is up, and its mail to the owner
//   customers    place orders and pay some of them
//   node         the dispatcher, which runs what is due
//   account      the state of all orders in the store; display shows it, and the summary at the end
//   messages     errors, until they are shown
// Code shared with other examples is in ../common.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "common/interrupt.hpp"
#include "customers.hpp"
#include "display.hpp"
#include "node.hpp"
#include "tables.hpp"

namespace order_timeout {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// A run of the shop. Its doors close early, so that the limits of the last orders pass before the end.
class shop {
 public:
  shop(const options& chosen, const common::interrupt& interrupted)
      : chosen_(chosen), interrupted_(interrupted), table_(chosen.plain) {}

  // Returns the exit status.
  int run() {
    create_tables(database_);
    prices_.plan_next();
    reports_.declare();
    node node(database_, *tasks_, {orders_, prices_, reports_}, chosen_, messages_);
    customers customers(orders_, chosen_, messages_);
    if (wait_until(doors_close(), node)) {
      customers.stop_placing();
      settle(node);
    }
    customers.stop_placing();
    node.stop();
    show(node);
    const account all = take_account(database_);
    print_summary(clock::now() - start_, all, node.stats());
    return all.adds_up() ? 0 : 1;
  }

 private:
  clock::time_point end() const {
    return chosen_.seconds == 0 ? clock::time_point::max() : start_ + std::chrono::seconds(chosen_.seconds);
  }
  clock::time_point doors_close() const {
    if (chosen_.seconds == 0) return end();
    const std::chrono::milliseconds whole = std::chrono::seconds(chosen_.seconds);
    return start_ + std::max(whole / 2, whole - chosen_.limit - 1s);
  }

  // Waits until the end, and then while orders placed so far are open, up to a time limit or until interrupted.
  void settle(const node& node) {
    const std::int64_t last = last_order(database_);
    const clock::time_point latest = std::max(end(), clock::now() + chosen_.limit) + chosen_.lease + 5s;
    if (!wait_until(end(), node)) return;
    while (open_up_to(database_, last) > 0 && clock::now() < latest)
      if (!wait_until(clock::now() + table_.interval(), node)) return;
  }

  // Returns false as soon as a signal has arrived.
  bool wait_until(clock::time_point when, const node& node) {
    while (clock::now() < when) {
      if (interrupted_.wait_until(std::min(when, clock::now() + table_.interval()))) return false;
      show(node);
    }
    return true;
  }

  void show(const node& node) {
    try {
      rows_ = figures(take_account(database_), waiting(database_), take_holdings(database_), node.stats());
    } catch (const std::exception& bad) {
      messages_.add(bad.what());  // shows the previous figures once more
    }
    table_.show(clock::now() - start_, rows_, messages_.take());
  }

  const options chosen_;
  const common::interrupt& interrupted_;
  const std::unique_ptr<rondo::durable::store> tasks_ = rondo::durable::store::open(chosen_.store);
  connections database_{chosen_.store};
  orders orders_{database_, *tasks_, chosen_.limit};
  price_plans prices_{database_, *tasks_};
  reports reports_{database_, *tasks_};
  messages messages_;
  common::live_table table_;
  std::vector<common::figure_row> rows_;
  const clock::time_point start_ = clock::now();
};

}  // namespace
}  // namespace order_timeout

int main(int argc, char** argv) {
  const common::interrupt interrupted;
  const auto [chosen, exit_status] = order_timeout::read_command_line(argc, argv);
  if (exit_status) return *exit_status;
  try {
    return order_timeout::shop(chosen, interrupted).run();
  } catch (const std::exception& bad) {
    fmt::print(stderr, "order_timeout: {}\n", order_timeout::one_line(bad.what()));
    return 2;
  }
}
