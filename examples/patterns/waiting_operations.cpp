// A broker answers a poll as soon as its topics have enough records, or after 30 seconds.
#include <cstddef>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <rondo/manual_timer.hpp>

#include "waiting_operations.hpp"

int main() {
  using namespace std::chrono_literals;
  rondo::manual_timer time;  // or a rondo::timer
  std::map<std::string, int> records;
  waiting_operations<std::string> polls(time);

  const auto poll = [&](const std::string& client, const std::vector<std::string>& topics, int wanted) {
    const auto has_enough = [&records, topics, wanted] {
      int sum = 0;
      for (const auto& topic : topics) sum += records[topic];
      return sum >= wanted;
    };
    polls.submit(topics, 30s, has_enough, [=](outcome how) {
      std::cout << client << (how == outcome::completed ? " gets its records" : " gets nothing") << std::endl;
    });
  };
  const auto append = [&](const std::string& topic) {
    ++records[topic];
    const std::size_t answered = polls.changed(topic);
    std::cout << topic << " answers " << answered << std::endl;
  };

  poll("Ann", {"orders", "prices"}, 2);
  poll("Bob", {"prices"}, 5);
  append("orders");
  time.advance(10s);
  append("prices");
  poll("Cleo", {"orders"}, 1);
  std::cout << "still waiting: " << polls.registrations() << std::endl;
  time.advance(20s);
  append("prices");
}
