// The work of this process for the shop: a dispatcher for all three queues.
#pragma once

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

#include "messages.hpp"
#include "options.hpp"
#include "orders.hpp"
#include "price_plans.hpp"

namespace order_timeout {

class node {
 public:
  node(connections&, rondo::durable::store&, orders&, price_plans&, const options&, messages&);

  void stop() { dispatcher_.stop(); }
  rondo::durable::dispatcher_statistics stats() const { return dispatcher_.stats(); }

 private:
  void handle(const rondo::durable::task&);
  void run(const rondo::durable::task&);

  connections& database_;
  orders& orders_;
  price_plans& prices_;
  const std::chrono::milliseconds work_;
  rondo::timer timer_;
  rondo::durable::dispatcher dispatcher_;
};

}  // namespace order_timeout
