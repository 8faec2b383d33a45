// Prices that change at given times: in life at midnight, here at each full ten seconds of the wall clock.
#pragma once

#include <rondo/durable.hpp>

#include "connections.hpp"

namespace order_timeout {

inline constexpr const char* price_changes = "price changes";

class price_plans {
 public:
  price_plans(connections& database, rondo::durable::store& tasks) : database_(database), tasks_(tasks) {}

  // Makes the next plan, unless another node has.
  void plan_next();

  // The handler: the plan starts, and the next one is made, in one transaction.
  void start(const rondo::durable::task&);

 private:
  void plan_next(change&);

  connections& database_;
  rondo::durable::store& tasks_;
};

}  // namespace order_timeout
