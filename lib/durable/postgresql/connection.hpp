// A connection to a PostgreSQL server that reconnects after it broke.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

#include <rondo/durable.hpp>

#include "durable/postgresql/parameters.hpp"
#include "durable/postgresql/pipeline.hpp"
#include "durable/postgresql/result.hpp"

namespace rondo::durable::detail::postgresql {

enum class commit { durable, soon };

/// How long nothing may be sent or received before a server counts as hanging.
inline constexpr std::chrono::milliseconds usual_patience = std::chrono::seconds(15);

/// Used by one thread at a time. All members except the constructor and those marked noexcept may throw store_error.
/// The error's perhaps_done() is true if the connection broke after something was sent and before the server answered;
/// what the server refused has not been done.
class connection {
 public:
  /// Connects when it is first used. Throws store_error if the URL is malformed. `greeting` contains statements for each
  /// new connection, in addition to this class's own. A call gives up when nothing has been sent or received for
  /// `answers_within`. (If the network is broken, it waits for no longer than usual_patience.)
  explicit connection(std::string url, std::string greeting = "",
                      std::chrono::milliseconds answers_within = usual_patience);
  ~connection() = default;
  connection(const connection&) = delete;  // libpq keeps a pointer to it
  connection& operator=(const connection&) = delete;

  /// Connects unless the connection is up, as far as this side can see. Returns true if it connected.
  bool make();
  /// Executes one statement in its own transaction.
  result run(const statement& what, const parameters& with);
  /// Executes all calls in one transaction and one round trip. Returns the answers in the same order. Does not call
  /// make(): the caller must do so first, as it has to know about a new connection.
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
  std::vector<result> run_together(const std::vector<call>& calls, commit how);
  store_error error_of(const result& answer, doubt may_be_done = doubt::unless_answered);
  [[noreturn]] void fail(const result& answer, doubt may_be_done = doubt::unless_answered);

  std::string url_;
  std::string greeting_;
  std::chrono::milliseconds answers_within_;
  bool given_notice_ = false;  // the server is about to end the connection
  bool begun_ = false;         // a transaction is neither committed nor rolled back
  std::unique_ptr<PGconn, finish> connected_;
  std::unordered_set<const statement*> prepared_;
};

/// Executes one statement on the caller's connection, as part of the caller's transaction if there is one. Throws
/// store_error. As always after an error, the server has then aborted the transaction. perhaps_done() may be true only
/// if there was no transaction.
result run_on(PGconn* callers, const std::string& what, const parameters& with);

}  // namespace rondo::durable::detail::postgresql
