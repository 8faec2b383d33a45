#include "durable/database.hpp"

#include <stdexcept>

namespace durable_test {

claim worker::claim_one() {
  const std::vector<claim> claims = claim_up_to(2);
  if (claims.size() != 1) throw std::logic_error("not one task but " + std::to_string(claims.size()));
  return claims.front();
}

std::int64_t task_in(state s, rondo::durable::store& in, worker& at, const rondo::durable::submission& what) {
  const std::int64_t id = in.submit_after(0s, what);
  if (s == state::waiting) return id;
  const ticket t = ticket_of(at.claim_one());
  if (s == state::held) return id;
  const auto require = [](bool worked) {
    if (!worked) throw std::logic_error("the task cannot be brought into this state");
  };
  require(t.id == id && at.begin(t));
  if (s == state::retried) require(at.retry(t, 1h));
  if (s == state::dead) require(at.give_up(t, "no use"));
  if (s == state::cancelled_while_running) require(!in.cancel(id));
  if (s == state::done) require(at.finish(t));
  return id;
}

}  // namespace durable_test
