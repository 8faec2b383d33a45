#include "orders.hpp"

#include "attempts.hpp"

namespace order_timeout {
namespace {

constexpr std::chrono::seconds confirmed_after{4};  // in reality fifteen days

}  // namespace

std::string orders::place() {
  change all(database_);
  // At the price of the latest plan that has started.
  const std::string order =
      all.ask(
             "INSERT INTO shop_order (state, price) SELECT 'open', coalesce("
             "(SELECT price FROM shop_price_plan WHERE started = 1 ORDER BY starts DESC LIMIT 1), 100)"
             " RETURNING id")
          .at(0)
          .at(0);
  expect(all, order, payment_limits, limit_);
  all.commit();  // either there is an order with a limit, or none
  return order;
}

bool orders::pay(const std::string& order) {
  change all(database_);
  const std::vector<row> paid = all.ask(
      "UPDATE shop_order SET state = 'paid' WHERE id = $1 AND state = 'open' RETURNING task", {order});
  if (paid.empty()) return false;  // closed
  // False if the limit's run has begun: it will find the order paid.
  tasks_.cancel(all.handle(), std::stoll(paid[0][0]));
  expect(all, order, confirmations, confirmed_after);
  all.commit();
  return true;
}

void orders::close_unpaid(const rondo::durable::task& limit) {
  change all(database_);
  all.ask("UPDATE shop_order SET state = 'closed', task = NULL WHERE id = $1 AND state = 'open'",
          {limit.payload});
  note_attempt(all, limit);
  all.commit();
}

void orders::confirm(const rondo::durable::task& delivery) {
  change all(database_);
  all.ask("UPDATE shop_order SET state = 'confirmed', task = NULL WHERE id = $1 AND state = 'paid'",
          {delivery.payload});
  note_attempt(all, delivery);
  all.commit();
}

void orders::expect(change& all, const std::string& order, const char* queue,
                    std::chrono::milliseconds delay) {
  const std::int64_t task = tasks_.submit_after(all.handle(), delay, {.queue = queue, .payload = order});
  all.ask("UPDATE shop_order SET task = $1 WHERE id = $2", {std::to_string(task), order});
}

}  // namespace order_timeout
