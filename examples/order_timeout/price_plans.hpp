// Prices that change at given times: in reality at midnight, here every full ten seconds of the wall clock.
#pragma once

#include <rondo/durable.hpp>

#include "connections.hpp"

namespace order_timeout {

inline constexpr const char* price_changes = "price changes";

class price_plans {
 public:
  price_plans(connections& database, rondo::durable::store& tasks) : database_(database), tasks_(tasks) {}

  // Creates the next plan, unless another node has done so.
  void plan_next();

  // The handler: starts the plan and creates the next one, in one transaction.
  void start(const rondo::durable::task&);

 private:
  void plan_next(change&);

  connections& database_;
  rondo::durable::store& tasks_;
};

}  // namespace order_timeout
