// A database in memory for simulations and for the tests that every engine passes: real transactions, a clock that the
// caller has, connections and a server that break when the caller wants. All on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/row.hpp"
#include "durable/simulated_transaction.hpp"

namespace durable_test {

/// A session's wait() does not block: it says whether there is news since the last call.
class simulated_database {
 public:
  using locking = durable_test::locking;
  using row = durable_test::row;
  /// Told of each stage of each transaction; `who` is the owner of the session, or "" for a store's call. It may run
  /// other transactions, which are then inside this one; it may call end_session() and crash(); and it may throw
  /// anything. Then the transaction is undone, unless it is `committed`, and the exception goes on to the caller.
  using observer = std::function<void(const std::string& who, stage at)>;

  /// The time is read once in each transaction.
  simulated_database(std::function<rondo::durable::wall_time()> clock, locking how)
      : data_(std::make_shared<simulated_data>(simulated_data{.clock = std::move(clock), .how = how})) {}

  /// Precondition: not called by an observer.
  void observe(observer f) { data_->observe = std::move(f); }
  /// Any number of engines, all on these data, which live as long as one of them.
  std::shared_ptr<rondo::durable::detail::engine> open();
  /// The session has lost its connection, or its process has died (which the session's destructor calls, too). What it
  /// held and had not begun is freed by the next changed() of another session, unless the session's own next call is
  /// earlier.
  void end_session(const std::string& owner) { data_->end_session(owner); }
  /// The server, or with locking::database the host, crashes. Open transactions are undone, and their calls throw
  /// store_error when their observer returns. At most the last `forget` commits of sessions are undone; none that is
  /// older than one that is durable: of a store's call and, with locking::rows, of a turn that claims or gives a task up, or of changed().
  /// With locking::database, the caller destroys all sessions.
  void crash(std::size_t forget) { data_->crash(forget); }
  ///@{
  /// As when a standby is promoted that had received what was committed until then, or a backup is restored. Open
  /// transactions are undone, and their calls throw store_error when their observer returns. All sessions lose their
  /// connections. With locking::rows, the database no longer knows the sessions that have ended.
  simulated_copy copy() const { return data_->copy(); }
  void go_back(const simulated_copy& to) { data_->go_back(to); }
  ///@}
  /// From now on, a claim may get the fence of one that is lost, as from a server that has a wrong clock and does not tell
  /// its timeline; though never that of a claim of the same session.
  void let_fences_repeat() { data_->fences_repeat = true; }
  bool fences_repeat() const noexcept { return data_->fences_repeat; }
  /// As they have been committed, in the order of their ids.
  std::vector<row> rows() const;
  /// Of sessions that live, or of whose end none has taken notice yet.
  std::vector<std::string> owners() const;
  /// As it has been committed, or null. Valid until the next call of the database.
  const row* find(std::int64_t id) const;
  /// Calls `f` with each committed row, in the order of their ids.
  template <class Function>
  void for_each_row(const Function& f) const {
    for (const auto& [id, e] : data_->entries)
      if (e.committed) f(*e.committed);
  }
  /// Whether an open transaction has changed or locked the row.
  bool is_locked(std::int64_t id) const;
  const std::set<std::string>& paused() const noexcept { return data_->paused; }
  locking how() const noexcept { return data_->how; }

 private:
  std::shared_ptr<simulated_data> data_;
};

}  // namespace durable_test
