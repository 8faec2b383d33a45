// Orders. Each step is one transaction, which includes the durable task that belongs to it.
#pragma once

#include <rondo/durable.hpp>

#include <chrono>
#include <cstdint>
#include <string>

#include "connections.hpp"

namespace order_timeout {

inline constexpr const char* payment_limits = "payment limits";
inline constexpr const char* confirmations = "confirmations";

class orders {
 public:
  orders(connections& database, rondo::durable::store& tasks, std::chrono::milliseconds limit)
      : database_(database), tasks_(tasks), limit_(limit) {}

  // Called by customers. place() returns the order's number; pay() returns whether it was in time.
  std::string place();
  bool pay(const std::string& order);

  // The handlers of the two queues. A handler that runs twice finds the order's state already changed.
  void close_unpaid(const rondo::durable::task&);
  void confirm(const rondo::durable::task&);

 private:
  void expect(change&, const std::string& order, const char* queue, std::chrono::milliseconds delay);

  connections& database_;
  rondo::durable::store& tasks_;
  const std::chrono::milliseconds limit_;
};

}  // namespace order_timeout
