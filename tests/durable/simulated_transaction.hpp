// The data of a simulated database, and its transactions. There is one thread: what seems to happen at the same time as
// a transaction happens inside it, in the observer that it calls at each of its stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/row.hpp"

namespace durable_test {

enum class stage { begins, statement, commits, committed };  // `statement`: before each of them

enum class locking {
  /// As PostgreSQL's "read committed": each statement sees what has been committed, and the transaction's own changes.
  /// Sessions skip rows that another open transaction has changed; a store's call that needs one fails.
  rows,
  /// As SQLite: while a transaction is open that may write, no other such one begins.
  database
};

/// What a database knows of a session.
struct simulated_listener {
  std::string owner;
  std::vector<std::string> queues;
  bool connected = false;
  bool news = false;
  std::int64_t own_changes = 0;
};

/// All that was committed at some time, apart from who was connected.
struct simulated_copy {
  std::map<std::int64_t, row> rows = {};
  std::int64_t last_id = 0;
  std::set<std::string> paused = {}, owners = {};
};

class simulated_transaction;

struct simulated_data {
  /// A row as it was committed, and as the open transaction `by` has left it. (None: it does not exist.)
  struct entry {
    std::optional<row> committed = {}, pending = {};
    simulated_transaction* by = nullptr;
  };
  /// What a session's commit has replaced.
  struct undo {
    std::vector<std::pair<std::int64_t, std::optional<row>>> rows = {};
    std::vector<std::pair<std::string, bool>> owners = {};  // whether each was there
  };

  std::function<rondo::durable::wall_time()> clock;
  locking how;
  std::function<void(const std::string& who, stage at)> observe = [](const std::string&, stage) {};
  std::map<std::int64_t, entry> entries = {};
  std::int64_t last_id = 0;
  std::set<std::string> paused = {};
  std::map<std::string, bool> owners = {};  // whether each lives
  std::vector<simulated_listener*> listeners = {};
  std::int64_t changes = 0;                       // commits that changed anything
  std::vector<undo> not_durable = {};             // the commits that a crash may undo
  std::vector<simulated_transaction*> open = {};  // each inside the one before
  std::int64_t timeline = 1;                      // changes when the history goes back
  // If the fences of lost claims are given again, though to no session twice: those that have been given.
  bool fences_repeat = false;
  std::set<std::tuple<std::int64_t, std::int64_t, std::string>> given = {};  // id, fence, owner

  void notify(const std::string& queue, const simulated_listener* but);
  void end_session(const std::string& owner);
  void crash(std::size_t forget);
  simulated_copy copy() const;
  void go_back(const simulated_copy& to);
  std::int64_t fence_after(const row& r, std::int64_t now, const std::string& owner);

 private:
  void abort_all();
  void disconnect_all();
};

/// Undone unless committed.
class simulated_transaction {
 public:
  /// `self` is the session; null for a store's call. Throws store_error if another transaction is in the way.
  simulated_transaction(simulated_data& data, simulated_listener* self, bool writes);
  ~simulated_transaction();
  simulated_transaction(const simulated_transaction&) = delete;
  simulated_transaction& operator=(const simulated_transaction&) = delete;

  /// Comes before each statement. Throws store_error if the server has crashed.
  void statement() { reach(stage::statement); }
  /// What is not durable may be undone by a crash.
  void commit(bool durable);

  /// The time of the transaction in microseconds, rounded down.
  std::int64_t now() const noexcept { return now_; }
  /// Rounded up.
  std::int64_t from_now(std::int64_t microseconds) const noexcept { return now_rounded_up_ + microseconds; }
  rondo::durable::wall_time wall_now() const noexcept { return wall_now_; }

  using entry = simulated_data::entry;

  /// Null if there is no such row.
  const row* look(const entry& e) const noexcept {
    const auto& r = e.by == this ? e.pending : e.committed;
    return r ? &*r : nullptr;
  }
  /// Whether another open transaction has changed or locked it.
  bool is_locked(const entry& e) const noexcept { return e.by != nullptr && e.by != this; }
  /// Null if there is none, not even one that is not committed.
  entry* find(std::int64_t id);
  std::map<std::int64_t, entry>& all() noexcept { return data_.entries; }

  /// Keeps others from changing the row. Precondition: it is not locked.
  void lock(entry& e);
  ///@{
  /// Precondition: the row exists and is not locked.
  row& change(entry& e);
  void remove(entry& e);
  ///@}
  row& insert();

  ///@{
  /// Of a lane, as this transaction sees it. The others are those that are not `than`.
  bool has_earlier(const row& than) const noexcept;
  bool has_another_that_runs(const row& than) const noexcept;
  ///@}

  ///@{
  /// Take effect with the commit.
  void tell(const std::string& queue) { told_.insert(queue); }
  void tell_if_soon(const row& r);
  void set_paused(const std::string& queue, bool paused) {
    changed_ = true;
    pauses_[queue] = paused;
  }
  void set_owner(const std::string& owner, bool is_there) {
    changed_ = true;
    owners_[owner] = is_there;
  }
  ///@}

 private:
  friend struct simulated_data;

  void reach(stage at);
  void apply(bool durable);
  void close() noexcept;
  void tell_lane(const row& left, const row* now);

  simulated_data& data_;
  simulated_listener* const self_;
  const std::string who_;
  const bool writes_;
  enum class phase { open, over, crashed } phase_ = phase::open;
  std::int64_t now_ = 0, now_rounded_up_ = 0;
  rondo::durable::wall_time wall_now_;
  std::vector<std::int64_t> touched_;
  std::set<std::string> told_;
  std::map<std::string, bool> pauses_, owners_;
  bool changed_ = false;
};

}  // namespace durable_test
