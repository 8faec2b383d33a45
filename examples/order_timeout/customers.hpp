// The customers of this node: they place orders at random moments, and pay some of them in time. They exist only in
// this process: when it is killed, their unpaid orders stay unpaid.
#pragma once

#include <rondo/timer.hpp>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

#include "messages.hpp"
#include "options.hpp"
#include "orders.hpp"

namespace order_timeout {

class customers {
 public:
  customers(orders&, const options&, messages&);
  ~customers() { stop_placing(); }

  void stop_placing() { placing_ = {}; }
  std::uint64_t payments_to_come() const { return payments_.stats().pending; }

 private:
  void place_on(const std::stop_token&);
  void place(std::mt19937_64&);
  void pay(const std::string& order);

  orders& orders_;
  const options chosen_;
  messages& messages_;
  rondo::timer payments_;  // separate, so that a slow database delays no other timer
  std::jthread placing_;
};

}  // namespace order_timeout
