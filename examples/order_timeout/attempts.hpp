// Notes for the account: which tasks were run more than once, and whether that was for a failure or for a lease.
#pragma once

#include <rondo/durable.hpp>

#include "connections.hpp"

namespace order_timeout {

// In the transaction of the run, so that it is noted if and only if the run did its work.
inline void note_attempt(change& all, const rondo::durable::task& what) {
  if (what.attempt == 1) return;
  all.ask(
      "INSERT INTO shop_again (task, attempt) VALUES ($1, $2)"
      " ON CONFLICT (task) DO UPDATE SET attempt = excluded.attempt",
      {std::to_string(what.id), std::to_string(what.attempt)});
}

// What cannot be noted, as the database is out of reach, will look like a lease that ran out.
inline void note_failure(connections& database, const rondo::durable::task& what) try {
  change all(database);
  all.ask("INSERT INTO shop_failed (task, attempt) VALUES ($1, $2) ON CONFLICT DO NOTHING",
          {std::to_string(what.id), std::to_string(what.attempt)});
  all.commit();
} catch (const std::exception&) {
}

}  // namespace order_timeout
