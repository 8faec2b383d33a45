#include "durable/simulation_text.hpp"

#include <array>
#include <cstddef>

namespace durable_test {

std::string text_of(const row& r) {
  constexpr std::array names{"waiting", "held", "running", "dead", "cancelled"};
  return "row " + std::to_string(r.id) + ' ' + names.at(static_cast<std::size_t>(r.state)) + " due " +
         std::to_string(r.due) + " fence " + std::to_string(r.fence) + " attempt " +
         std::to_string(r.attempt) + " owner '" + r.owner + "' lane '" + r.lane +
         (r.next_lane ? "' next lane '" + *r.next_lane : "") + "' point " +
         std::to_string(r.point.value_or(0)) + ' ' + r.schedule + " lease " +
         std::to_string(r.lease_until.value_or(0)) + " reason '" + r.reason + '\'';
}

std::string text_of(const rondo::durable::detail::turn& t) {
  std::string text;
  const auto add = [&](const char* name, const auto& list, const auto& ticket_of) {
    if (list.empty()) return;
    text += std::string(" ") + name;
    for (const auto& each : list)
      text += ' ' + std::to_string(ticket_of(each).id) + '/' + std::to_string(ticket_of(each).fence);
  };
  const auto self = [](const rondo::durable::detail::ticket& each) { return each; };
  const auto of = [](const auto& each) { return each.of; };
  add("finished", t.finished, self);
  add("failed", t.failed, of);
  add("passed", t.passed, of);
  add("unstarted", t.unstarted, self);
  add("returned", t.returned, self);
  add("renewed", t.renewed, self);
  add("kept", t.kept, self);
  add("begun", t.begun, self);
  add("watched", t.watched, self);
  if (t.adopt) text += " adopt";
  if (t.claim_up_to != 0) text += " claim up to " + std::to_string(t.claim_up_to);
  return text;
}

std::string text_of_rows(const simulated_copy& all) {
  std::string text;
  for (const auto& [id, r] : all.rows)
    text += ' ' + std::to_string(id) + '/' + std::to_string(r.fence) + (r.runs() ? "r" : "");
  return text;
}

std::string text_of_claims(const simulated_database& of, const std::string& owner) {
  std::string text;
  of.for_each_row([&](const row& r) {
    if (r.owner == owner)
      text += ' ' + std::to_string(r.id) + '/' + std::to_string(r.fence) + (r.runs() ? "r" : "");
  });
  return text;
}

}  // namespace durable_test
