// Orders: each step is one transaction, with the durable task that belongs to it.
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

  // What customers do. place() returns the order's number; pay() whether that was in time.
  std::string place();
  bool pay(const std::string& order);

  // What is due: the handlers of the two queues. Whatever runs twice finds the order's state changed.
  void close_unpaid(const rondo::durable::task&);
  void confirm(const rondo::durable::task&);

 private:
  void expect(change&, const std::string& order, const char* queue, std::chrono::milliseconds delay);

  connections& database_;
  rondo::durable::store& tasks_;
  const std::chrono::milliseconds limit_;
};

}  // namespace order_timeout
