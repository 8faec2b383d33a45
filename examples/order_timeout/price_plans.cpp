#include "price_plans.hpp"

#include <chrono>
#include <string>

#include "attempts.hpp"

namespace order_timeout {
namespace {

using std::chrono::seconds;
constexpr seconds day{10};

}  // namespace

void price_plans::plan_next() {
  change all(database_);
  plan_next(all);
  all.commit();
}

void price_plans::start(const rondo::durable::task& plan) {
  change all(database_);
  all.ask("UPDATE shop_price_plan SET started = 1 WHERE starts = $1", {plan.payload});
  plan_next(all);
  note_attempt(all, plan);
  all.commit();
}

void price_plans::plan_next(change& all) {
  const auto now = std::chrono::system_clock::now();
  const seconds days =
      std::chrono::duration_cast<seconds>(now.time_since_epoch()) / day.count() * day.count();
  const seconds midnight = days + day;
  const std::string starts = std::to_string(midnight.count());
  const std::string price = std::to_string(100 + midnight / day % 7);
  const std::vector<row> made = all.ask(
      "INSERT INTO shop_price_plan (starts, price, started) VALUES ($1, $2, 0)"
      " ON CONFLICT DO NOTHING RETURNING starts",
      {starts, price});
  if (made.empty()) return;
  tasks_.submit_at(all.handle(), rondo::durable::wall_time(midnight),
                   {.queue = price_changes, .payload = starts});
}

}  // namespace order_timeout
