#include "customers.hpp"

#include "common/pacer.hpp"

namespace order_timeout {

customers::customers(orders& orders, const options& chosen, messages& messages)
    : orders_(orders), chosen_(chosen), messages_(messages) {
  if (chosen_.rate > 0) placing_ = std::jthread([this](const std::stop_token& stop) { place_on(stop); });
}

void customers::place_on(const std::stop_token& stop) {
  std::mt19937_64 random(std::random_device{}());
  common::pacer pace(chosen_.rate);
  while (pace.wait(stop, random)) place(random);
}

void customers::place(std::mt19937_64& random) try {
  const std::string order = orders_.place();
  if (random() % 100 >= chosen_.pay_percent) return;
  const double hesitation = std::uniform_real_distribution<double>(0.1, 0.95)(random);
  payments_.schedule_after(chosen_.limit * hesitation, [this, order] { pay(order); });
} catch (const std::exception& refused) {
  messages_.add(std::string("an order could not be placed: ") + refused.what());
}

void customers::pay(const std::string& order) try {
  orders_.pay(order);
} catch (const std::exception& refused) {
  messages_.add("order " + order + " could not be paid: " + refused.what());
}

}  // namespace order_timeout
