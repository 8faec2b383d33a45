// Declares a job of a crontab in the file tasks.db of this folder. Exits with status 0 if that works.
#include <exception>
#include <iostream>

#include <rondo/durable.hpp>

namespace durable = rondo::durable;

int main() {
  try {
    const auto tasks = durable::store::open("sqlite:tasks.db");
    const auto report = tasks->repeat(
        {.key = "report", .when = durable::schedule::cron("30 2 * * mon-fri", "Europe/Berlin")});
    std::cout << "task " << report << " is repeated\n";
    return tasks->cancel(report) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cout << e.what() << '\n';
    return 1;
  }
}
