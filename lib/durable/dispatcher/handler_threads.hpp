// The threads that run the handler.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "durable/dispatcher/begun_runs.hpp"
#include "durable/dispatcher/run.hpp"

namespace rondo::durable::detail {

/// Each takes one run after the other, until the runs are closed.
class handler_threads {
 public:
  /// `body` executes a run and notes in it how it ended; it does not throw. `runs` outlives this object.
  handler_threads(std::size_t threads, begun_runs& runs, std::function<void(run&)> body);
  ~handler_threads();
  handler_threads(const handler_threads&) = delete;
  handler_threads& operator=(const handler_threads&) = delete;

  /// After begun_runs::close(): waits for the runs in progress. Not from one of these threads.
  void join();

 private:
  void work() noexcept;

  begun_runs& runs_;
  const std::function<void(run&)> body_;
  std::vector<std::thread> threads_;
};

}  // namespace rondo::durable::detail
