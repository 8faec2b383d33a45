#include "scheduler/record.hpp"

namespace rondo::detail {

/// Why the state is not a row of the table; empty if it is one.
std::string record::fault_of_state(bool is_periodic) const {
  switch (state) {
    case life::free:
      break;
    case life::live:
      if (where == waits_in::nowhere && !in_progress()) return "it is pending, but waits for nothing";
      if (wheel != nullptr &&
          (where == waits_in::never_due || where == waits_in::no_memory || (is_submitted && !is_periodic)))
        return "it waits for nothing in the wheel, but its node is in one";
      if (is_periodic) return {};
      if (is_running) return "it runs once and is running, but is still pending";
      if (is_submitted && where != waits_in::nowhere)
        return "it runs once, but waits although it is submitted";
      return {};
    case life::completed:
    case life::ended:
      if (is_submitted) return "it is over, but its runs in the executor would start";
      if (where != waits_in::nowhere) return "it is over, but waits for a run";
      return {};
  }
  return "it serves no timer";
}

std::string record::fault() const {
  if (!live()) return fault_of_state(false);  // perhaps what it owned is just being destroyed
  if (periodic() != (has_extra() && extra->repeats != nullptr) ||
      ((plain() || owned()) && (has_extra() && extra->own != nullptr)) || (plain() && owner() != nullptr) ||
      (owned() && owner() == nullptr))
    return "its kind does not match what it has";
  std::string wrong = fault_of_state(periodic());
  if (!wrong.empty() || !periodic()) return wrong;
  const std::size_t known = repeats().submitted.size();
  if (is_submitted ? known == 0 : known != 0)
    return "the executor has " + std::string(is_submitted ? "" : "no ") + "runs of it, but " +
           std::to_string(known) + " are known";
  if (over()) return "no run of it is to come, but it is still pending";
  if (repeats().next.runs() < known) return "more of its runs are submitted than have begun";
  return {};
}

}  // namespace rondo::detail
