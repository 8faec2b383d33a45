#include "tables.hpp"

namespace order_timeout {

void create_tables(connections& from) {
  std::unique_ptr<database> setup = from.take();
  setup->begin_setup();
  // open → paid → confirmed, or open → closed. `task` is the one that waits for the order, if any.
  const std::string orders = std::string("CREATE TABLE IF NOT EXISTS shop_order (id ") + setup->identity() +
                             ", state TEXT NOT NULL, price BIGINT NOT NULL, task BIGINT)";
  setup->ask(orders.c_str());
  // Times in seconds since 1970.
  setup->ask(
      "CREATE TABLE IF NOT EXISTS shop_price_plan"
      " (starts BIGINT PRIMARY KEY, price BIGINT NOT NULL, started INTEGER NOT NULL)");
  // The place of a report among those sent, if it has been.
  setup->ask(
      "CREATE TABLE IF NOT EXISTS shop_report"
      " (night BIGINT PRIMARY KEY, orders BIGINT NOT NULL, closed BIGINT NOT NULL, sent BIGINT)");
  // Tasks that had to run again, with the attempt that succeeded; and the attempts that failed.
  setup->ask("CREATE TABLE IF NOT EXISTS shop_again (task BIGINT PRIMARY KEY, attempt INTEGER NOT NULL)");
  setup->ask(
      "CREATE TABLE IF NOT EXISTS shop_failed"
      " (task BIGINT, attempt INTEGER, PRIMARY KEY (task, attempt))");
  setup->ask("COMMIT");
  from.give_back(std::move(setup));
}

}  // namespace order_timeout
