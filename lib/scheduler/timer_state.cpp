#include "scheduler/timer_state.hpp"

namespace rondo::detail {

std::string timer_state::fault(bool periodic) const {
  // Free, waiting, or just being made by a schedule() that may be writing life_.
  if (!in_progress() && where_ == waits_in::wheel) return {};
  switch (get()) {
    case life::free:
      return "it is free, but waits or runs";
    case life::live:
      if (where_ == waits_in::nowhere && !in_progress()) return "it is pending, but waits for nothing";
      if (periodic) return {};
      if (running_ != 0) return "it runs once and is running, but is still pending";
      if (submitted_ > 1) return "it runs once, but " + std::to_string(submitted_) + " runs are submitted";
      if (submitted_ == 1 && where_ != waits_in::nowhere)
        return "it runs once, but waits although it is submitted";
      return {};
    case life::completed:
    case life::ended:
      if (submitted_ != 0) return "it is over, but its runs in the executor would start";
      if (where_ != waits_in::nowhere) return "it is over, but waits for a run";
      return {};
  }
  return "its life has no name";
}

}  // namespace rondo::detail
