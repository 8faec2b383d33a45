#include "account.hpp"

namespace order_timeout {
namespace {

std::vector<row> look(connections& database, const char* sql, const row& parameters = {}) {
  std::unique_ptr<class database> open = database.take();
  std::vector<row> answer = open->ask(sql, parameters);
  database.give_back(std::move(open));
  return answer;
}

// One statement, so all counts are of one moment. The schema of rondo_task is in lib/durable/operators.md; state 3 is
// dead.
constexpr const char* accounting = R"(
  SELECT
    count(*),
    count(CASE WHEN state = 'open' THEN 1 END),
    count(CASE WHEN state = 'closed' THEN 1 END),
    count(CASE WHEN state IN ('paid', 'confirmed') THEN 1 END),
    count(CASE WHEN state = 'confirmed' THEN 1 END),
    count(CASE WHEN state IN ('open', 'paid') AND NOT EXISTS (
      SELECT 1 FROM rondo_task WHERE rondo_task.id = shop_order.task AND rondo_task.state <> 3) THEN 1 END),
    (SELECT coalesce(sum(attempt - 1), 0) FROM shop_again) - (SELECT count(*) FROM shop_failed WHERE EXISTS (
      SELECT 1 FROM shop_again WHERE shop_again.task = shop_failed.task AND shop_again.attempt > shop_failed.attempt)),
    (SELECT count(*) FROM shop_price_plan WHERE started = 1),
    (SELECT count(*) FROM shop_report),
    (SELECT count(sent) FROM shop_report),
    (SELECT count(*) FROM shop_report AS report WHERE sent IS NOT NULL AND EXISTS (
      SELECT 1 FROM shop_report AS earlier WHERE earlier.night < report.night AND coalesce(earlier.sent > report.sent, true)))
  FROM shop_order)";

}  // namespace

account take_account(connections& database) {
  const row counts = look(database, accounting).at(0);
  const auto count = [&](std::size_t column) { return std::int64_t{std::stoll(counts.at(column))}; };
  return {count(0), count(1), count(2), count(3), count(4), count(5),
          count(6), count(7), count(8), count(9), count(10)};
}

std::int64_t last_order(connections& database) {
  return std::stoll(look(database, "SELECT coalesce(max(id), 0) FROM shop_order").at(0).at(0));
}

std::int64_t open_up_to(connections& database, std::int64_t order) {
  return std::stoll(look(database, "SELECT count(*) FROM shop_order WHERE state = 'open' AND id <= $1",
                         {std::to_string(order)})
                        .at(0)
                        .at(0));
}

std::vector<holding> take_holdings(connections& database) {
  std::vector<holding> result;
  for (row& each : look(database,
                        "SELECT owner, count(CASE WHEN state = 1 THEN 1 END),"
                        " count(CASE WHEN state IN (2, 4) THEN 1 END)"
                        " FROM rondo_task WHERE state IN (1, 2, 4) GROUP BY owner ORDER BY owner"))
    result.push_back({std::move(each.at(0)), std::move(each.at(1)), std::move(each.at(2))});
  return result;
}

std::int64_t waiting(connections& database) {
  return std::stoll(look(database, "SELECT count(*) FROM rondo_task WHERE state IN (0, 5, 6)").at(0).at(0));
}

}  // namespace order_timeout
