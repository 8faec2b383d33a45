// A connection to a PostgreSQL server, made again when it broke.
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

/// Used by one thread at a time. All members but the first throw store_error. Its perhaps_done() says that the connection
/// broke after something was sent and before the server has answered; what the server refused has not been done.
class connection {
 public:
  /// Connects when it is first used. `greeting`: statements for each new connection, besides this class's own.
  /// `answers_within`: how long run_all() waits for a server that hangs. (Where only the network is broken, it is as long.)
  explicit connection(std::string url, std::string greeting = "",
                      std::chrono::milliseconds answers_within = std::chrono::seconds(15));
  ~connection() = default;
  connection(const connection&) = delete;  // libpq keeps a pointer to it
  connection& operator=(const connection&) = delete;

  /// Connects unless the connection stands, as far as this side can see. True if it did.
  bool make();
  /// One statement, a transaction by itself.
  result run(const statement& what, const parameters& with);
  /// All of them in one transaction and one round trip. The answers, in the same order. After make(), which this does not
  /// do: the caller has to know of a new connection.
  std::vector<result> run_all(const std::vector<call>& calls, commit how);
  /// One statement without parameters, which is not prepared.
  result run_plain(const char* what);
  /// Statements without parameters, separated by semicolons, as far as they go.
  void run_script(const char* what);
  ///@{
  /// A transaction of several calls. It ends if the connection breaks, which the next call then says.
  void begin();
  void commit_all();
  void roll_back() noexcept;  ///< if there is one
  ///@}

  /// Null before the first use, and after the connection broke.
  PGconn* get() const noexcept { return connected_.get(); }

 private:
  struct finish {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
  };

  /// Whether what was asked for may have been done, although the server has not said so.
  enum class doubt { never, unless_answered };

  static void hear(void* self, const PGresult* notice) noexcept;
  bool broken() noexcept;
  void connect();
  void prepare(const statement& what);
  std::vector<result> run_together(const std::vector<call>& calls, commit how);
  store_error error_of(const result& answer, doubt may_be_done = doubt::unless_answered);
  [[noreturn]] void fail(const result& answer, doubt may_be_done = doubt::unless_answered);

  std::string url_;
  std::string greeting_;
  std::chrono::milliseconds answers_within_;
  bool given_notice_ = false;  // the server is about to end the connection
  bool begun_ = false;         // and neither committed nor rolled back
  std::unique_ptr<PGconn, finish> connected_;
  std::unordered_set<const statement*> prepared_;
};

/// One statement on the caller's connection, as a part of the caller's transaction if there is one. Throws store_error; a
/// transaction is aborted by then, as always after an error, and only where there was none perhaps_done() may be true.
result run_on(PGconn* callers, const std::string& what, const parameters& with);

}  // namespace rondo::durable::detail::postgresql
