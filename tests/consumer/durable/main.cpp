// A small program with durable tasks in the file tasks.db of this folder. Exits with status 0 if they work.
#include <chrono>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>
#include <rondo/timer.hpp>

using namespace std::chrono_literals;
namespace durable = rondo::durable;

int main() {
  std::promise<std::string> run;
  const auto close_order = [&run](const std::string& order) { run.set_value(order); };

  const std::unique_ptr<durable::store> tasks = durable::store::open("sqlite:tasks.db");
  rondo::timer timer;
  durable::dispatcher worker(timer, *tasks, [&](const durable::task& due) { close_order(due.payload); },
                             {.queues = {"unpaid"}});

  const std::int64_t limit = tasks->submit_after(30min, {.queue = "unpaid", .payload = "order 17"});
  tasks->reschedule_after(limit, 100ms);
  tasks->submit_after(30min, {.queue = "unpaid", .payload = "order 18", .key = "18"});
  tasks->cancel("unpaid", "18");  // it has been paid
  tasks->submit_all(
      std::vector<durable::planned>{{.what = {.queue = "unpaid", .payload = "order 19"}, .when = 30min},
                                    {.what = {.queue = "unpaid", .payload = "order 20"}, .when = 30min}});

  const std::string closed = run.get_future().get();
  worker.stop();
  std::cout << closed << " is closed\n";
  return closed == "order 17" && !tasks->find(limit) ? 0 : 1;
}
