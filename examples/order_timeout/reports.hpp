// A report on each night: in reality once a day, here every three seconds.
#pragma once

#include <rondo/durable.hpp>

#include "connections.hpp"

namespace order_timeout {

inline constexpr const char* nightly_reports = "nightly reports";
inline constexpr const char* mails = "mails";

class reports {
 public:
  reports(connections& database, rondo::durable::store& tasks) : database_(database), tasks_(tasks) {}

  // Each node says what is to be repeated; the first one to say so starts it.
  void declare();

  // The handlers: counts the orders, for the night that has just ended; mails a report to the owner of the shop. The
  // mails are in a lane, so that they arrive in the order of the nights.
  void write(const rondo::durable::task&);
  void send(const rondo::durable::task&);

 private:
  connections& database_;
  rondo::durable::store& tasks_;
};

}  // namespace order_timeout
