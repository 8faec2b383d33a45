#include "reports.hpp"

#include <chrono>
#include <string>

#include "attempts.hpp"

namespace order_timeout {
namespace {

constexpr std::chrono::seconds night{3};

}  // namespace

void reports::declare() {
  tasks_.repeat({.queue = nightly_reports,
                 .key = "orders",
                 // In reality schedule::cron("30 2 * * *", "Europe/Berlin").
                 .when = rondo::durable::schedule::every(night)});
}

void reports::write(const rondo::durable::task& due) {
  using std::chrono::microseconds;
  const auto point = std::chrono::duration_cast<microseconds>(due.point->time_since_epoch()).count();
  change all(database_);
  const std::vector<row> made = all.ask(
      "INSERT INTO shop_report (night, orders, closed)"
      " SELECT CAST($1 AS BIGINT), count(*), count(CASE WHEN state = 'closed' THEN 1 END) FROM shop_order "
      "WHERE true"
      " ON CONFLICT DO NOTHING RETURNING night",
      {std::to_string(point)});
  // A second run finds the report, and its mail.
  if (!made.empty())
    tasks_.submit_after(all.handle(), {}, {.queue = mails, .payload = made[0][0], .lane = "to the owner"});
  all.commit();
}

void reports::send(const rondo::durable::task& mail) {
  change all(database_);
  all.ask(
      "UPDATE shop_report SET sent = (SELECT coalesce(max(sent), 0) + 1 FROM shop_report)"
      " WHERE night = $1 AND sent IS NULL",
      {mail.payload});
  note_attempt(all, mail);
  all.commit();
}

}  // namespace order_timeout
