// A connection to a PostgreSQL server that reconnects after it broke.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

#include <rondo/durable.hpp>

#include "durable/postgresql/pipeline.hpp"

namespace rondo::durable::detail::postgresql {

enum class commit { durable, soon };

/// How long a connection waits for a locked table: as long as the server's or the role's settings say, or for a second.
enum class lock_wait { as_configured, one_second };

/// What is said when connection::pooled_by_transactions().
inline constexpr const char* pools_transactions =
    "rondo: PostgreSQL: a pooler of transactions lies between this process and the server: notifications are "
    "lost, and a dispatcher's end is not noticed. It must pool sessions (PgBouncer: pool_mode = session)";

/// The SQLSTATE at the end of the message of an error that this component throws; empty if the server sent none.
std::string_view state_of(const store_error& error);

/// How long nothing may be sent or received before a server counts as hanging.
inline constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(15);

/// Used by one thread at a time. It leaves no settings behind: each transaction brings its own. So a pooler may hand the
/// server's session on to others between two transactions, and no setting of a role or a database changes what the
/// statements mean.
///
/// All members except the constructor and those marked noexcept may throw store_error.
/// The error's perhaps_done() is true if the connection broke after something was sent and before the server answered;
/// what the server refused has not been done.
class connection {
 public:
  /// Connects when it is first used. Throws store_error if the URL is malformed. A call gives up when nothing has been
  /// sent or received for `answers_within`. (If the network is broken, it waits for no longer than usual_patience.)
  explicit connection(std::string url, lock_wait waits = lock_wait::as_configured,
                      std::chrono::milliseconds answers_within = usual_patience);
  ~connection() = default;
  connection(const connection&) = delete;  // libpq keeps a pointer to it
  connection& operator=(const connection&) = delete;

  /// Connects unless the connection is up, as far as this side can see.
  void make();
  /// The number of the connection, counted from 1; 0 before the first. With another one, the server has forgotten what it keeps for
  /// a session: LISTEN and locks.
  std::uint64_t number() const noexcept { return number_; }
  /// Executes one statement in its own transaction.
  result run(const statement& what, const parameters& with);
  /// Executes all calls in one transaction and one round trip. Returns the answers in the same order. Does not call
  /// make(), as the others do: the caller must do so first, as it has to know about a new connection.
  std::vector<result> run_all(const std::vector<call>& calls, commit how);
  /// Executes one statement without parameters, and does not prepare it.
  result run_plain(const char* what);
  /// Executes statements without parameters, separated by semicolons, up to the first that fails.
  void run_script(const char* what);
  ///@{
  /// A transaction of several calls. It ends if the connection breaks; the next call then throws.
  void begin();
  void commit_all();
  void roll_back() noexcept;  ///< does nothing without a transaction
  ///@}

  /// Null before the first use, and after the connection broke.
  PGconn* get() const noexcept { return connected_.get(); }
  /// The process of the server that has executed the last statements, except those of run_plain() and run_script(). (libpq
  /// knows a number of the pooler, if there is one.)
  std::int64_t server_process() const noexcept { return process_; }
  /// Whether two transactions of one connection were executed by different processes, or may have been. Stays true.
  bool pooled_by_transactions() const noexcept { return pooled_; }

 private:
  struct finish {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
  };

  /// Whether a request may have been executed although the server has not answered.
  enum class doubt { never, unless_answered };

  static void hear(void* self, const PGresult* notice) noexcept;
  bool broken() noexcept;
  void connect();
  result answer_to(PGconn* on, int sent, doubt may_be_done);
  void prepare(const statement& what);
  template <class Send>
  std::vector<result> in_one_round_trip(commit how, Send send_calls);
  template <class Send>
  std::vector<result> together(commit how, Send send_calls);
  parameters settings_for(commit how) const;
  const char* beginning() const noexcept;
  void note_process(const result& answer) noexcept;
  store_error error_of(const result& answer, doubt may_be_done = doubt::unless_answered);
  [[noreturn]] void fail(const result& answer, doubt may_be_done = doubt::unless_answered);

  std::string url_;
  lock_wait waits_;
  std::chrono::milliseconds answers_within_;
  bool given_notice_ = false;  // the server is about to end the connection
  bool begun_ = false;         // a transaction is neither committed nor rolled back
  bool odd_defaults_ = false;  // of new transactions: another isolation than "read committed", or "read only"
  bool pooled_ = false;
  std::int64_t process_ = 0;
  std::uint64_t number_ = 0;
  std::unique_ptr<PGconn, finish> connected_;
  std::unordered_set<const statement*> prepared_;
};

/// Executes one statement on the caller's connection, as part of the caller's transaction if there is one. Throws
/// store_error. As always after an error, the server has then aborted the transaction. perhaps_done() may be true only
/// if there was no transaction.
result run_on(PGconn* callers, const std::string& what, const parameters& with);

}  // namespace rondo::durable::detail::postgresql
