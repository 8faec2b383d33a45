#include "node.hpp"

#include <thread>

#include "attempts.hpp"

namespace order_timeout {
namespace {

rondo::durable::dispatcher_options dispatching(const options& chosen, messages& messages) {
  rondo::durable::dispatcher_options result;
  result.queues = {payment_limits, confirmations, price_changes, nightly_reports, mails};
  result.window =
      std::chrono::seconds(1);  // a dead node withholds at most one second's tasks from the others
  result.lease = chosen.lease;
  result.threads = chosen.threads;
  result.on_error = [&messages](const std::string& line) { messages.add(line); };
  return result;
}

}  // namespace

node::node(connections& database, rondo::durable::store& tasks, const departments& all, const options& chosen,
           messages& messages)
    : database_(database),
      all_(all),
      work_(chosen.work),
      dispatcher_(
          timer_, tasks, [this](const rondo::durable::task& due) { handle(due); },
          dispatching(chosen, messages)) {}

void node::handle(const rondo::durable::task& due) {
  try {
    std::this_thread::sleep_for(work_);  // in reality: asks the bank once more, sends an email
    run(due);
  } catch (...) {
    note_failure(database_, due);
    throw;  // so that it is retried
  }
}

void node::run(const rondo::durable::task& due) {
  if (due.queue == payment_limits) return all_.orders.close_unpaid(due);
  if (due.queue == confirmations) return all_.orders.confirm(due);
  if (due.queue == nightly_reports) return all_.reports.write(due);
  if (due.queue == mails) return all_.reports.send(due);
  all_.prices.start(due);
}

}  // namespace order_timeout
