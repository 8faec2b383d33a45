// Notes for the account: which tasks ran more than once, and whether a failure or a lease was the reason.
#pragma once

#include <rondo/durable.hpp>

#include "connections.hpp"

namespace order_timeout {

// Part of the transaction of the run, so it is noted if and only if the run did its work.
inline void note_attempt(change& all, const rondo::durable::task& what) {
  if (what.attempt == 1) return;
  all.ask(
      "INSERT INTO shop_again (task, attempt) VALUES ($1, $2)"
      " ON CONFLICT (task) DO UPDATE SET attempt = excluded.attempt",
      {std::to_string(what.id), std::to_string(what.attempt)});
}

// A failure that cannot be noted, because the database is unreachable, will look like a lease that ran out.
inline void note_failure(connections& database, const rondo::durable::task& what) try {
  change all(database);
  all.ask("INSERT INTO shop_failed (task, attempt) VALUES ($1, $2) ON CONFLICT DO NOTHING",
          {std::to_string(what.id), std::to_string(what.attempt)});
  all.commit();
} catch (const std::exception&) {
}

}  // namespace order_timeout
