#include "scheduler/record.hpp"

namespace rondo::detail {

/// Why the state is not a row of the table; empty if it is one.
std::string record::fault_of_state(bool is_periodic) const {
  switch (state) {
    case life::free:
      break;
    case life::live:
      if (where == waits_in::nowhere && !in_progress()) return "it is pending, but waits for nothing";
      if (is_periodic) return {};
      if (running != 0) return "it runs once and is running, but is still pending";
      if (submitted > 1) return "it runs once, but " + std::to_string(submitted) + " runs are submitted";
      if (submitted == 1 && where != waits_in::nowhere)
        return "it runs once, but waits although it is submitted";
      return {};
    case life::completed:
    case life::ended:
      if (submitted != 0) return "it is over, but its runs in the executor would start";
      if (where != waits_in::nowhere) return "it is over, but waits for a run";
      return {};
  }
  return "it serves no timer";
}

std::string record::fault() const {
  if (!live()) return fault_of_state(false);  // perhaps what it owned is just being destroyed
  std::string wrong = fault_of_state(periodic());
  if (!wrong.empty() || !periodic()) return wrong;
  if (repeats->submitted.size() != submitted)
    return "the executor has " + std::to_string(submitted) + " runs of it, but " +
           std::to_string(repeats->submitted.size()) + " are known";
  if (over()) return "no run of it is to come, but it is still pending";
  if (repeats->next.runs() < submitted) return "more of its runs are submitted than have begun";
  return {};
}

}  // namespace rondo::detail
