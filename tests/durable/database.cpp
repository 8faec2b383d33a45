#include "durable/database.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stdexcept>

namespace durable_test {

std::vector<claim> worker::claim_all(turn what) {
  std::vector<claim> all;
  for (bool more = true; more && what.claim_up_to != 0;) {
    turn_result done = take(what);
    more = done.may_have_more;
    what.claim_up_to -= done.claimed.size();
    const auto before = static_cast<std::ptrdiff_t>(all.size());
    std::ranges::move(done.claimed, std::back_inserter(all));
    std::ranges::inplace_merge(all, all.begin() + before, {}, [](const claim& c) { return c.what.due; });
  }
  return all;
}

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
