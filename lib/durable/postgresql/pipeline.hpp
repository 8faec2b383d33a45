// Several statements sent in one round trip, in libpq's pipeline mode.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

#include "durable/postgresql/parameters.hpp"
#include "durable/postgresql/result.hpp"

namespace rondo::durable::detail::postgresql {

/// Waits until PQgetResult() would not block. Returns false if neither side could send anything for that time. (A large
/// answer over a slow line may take much longer.)
bool answer_comes(PGconn* on, std::chrono::milliseconds within) noexcept;

/// A statement that is prepared once on each connection.
struct statement {
  const char* name;
  const char* text;
};

struct call {
  const statement* what;
  parameters with;
};

/// To be used once, in this order: enter(), send() …, sync(), answers(). Members that return a bool return false if
/// libpq refuses the call.
class pipeline {
 public:
  /// `prepared` contains the statements prepared on that connection, and is kept up to date.
  pipeline(PGconn* on, std::unordered_set<const statement*>& prepared) noexcept
      : connection_(on), prepared_(prepared) {}

  bool enter() noexcept { return PQenterPipelineMode(connection_) != 0; }
  bool sync() noexcept { return PQpipelineSync(connection_) != 0; }
  /// Sends a statement without parameters, whose answer is not returned.
  bool send(const char* text);
  bool send(const statement& what, const parameters& with);

  /// Returns the answers to the calls, in order; if something went wrong, not all of them. Waits as answer_comes() does.
  /// Leaves the pipeline mode unless silent().
  std::vector<result> answers(std::chrono::milliseconds within);
  /// Whether the server stopped answering.
  bool silent() const noexcept { return silent_; }
  /// The first answer that is an error; an empty result if the connection broke and the server has not said why.
  const std::optional<result>& wrong() const noexcept { return wrong_; }
  /// Whether that came after good answers to all that was sent.
  bool wrong_at_the_end() const noexcept { return wrong_at_the_end_; }

 private:
  /// One message sent, for a call or in addition to it, in the order of the answers.
  struct sent {
    const statement* prepares = nullptr;
    bool wanted = false;
  };

  result next();
  void read_end();

  PGconn* connection_;
  std::unordered_set<const statement*>& prepared_;
  std::vector<sent> sent_;
  std::optional<result> wrong_;
  std::chrono::milliseconds within_{};
  bool silent_ = false;
  bool wrong_at_the_end_ = false;
};

}  // namespace rondo::durable::detail::postgresql
