// The work of this process for the shop: a dispatcher for all queues.
#pragma once

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "messages.hpp"
#include "options.hpp"
#include "orders.hpp"
#include "price_plans.hpp"
#include "reports.hpp"

namespace order_timeout {

// Those whose tasks it runs.
struct departments {
  class orders& orders;
  price_plans& prices;
  class reports& reports;
};

class node {
 public:
  node(connections&, rondo::durable::store&, const departments&, const options&, messages&);

  void stop() { dispatcher_.stop(); }
  rondo::durable::dispatcher_statistics stats() const { return dispatcher_.stats(); }

 private:
  void handle(const rondo::durable::task&);
  void run(const rondo::durable::task&);

  connections& database_;
  const departments all_;
  const std::chrono::milliseconds work_;
  rondo::timer timer_;
  rondo::durable::dispatcher dispatcher_;
};

}  // namespace order_timeout
