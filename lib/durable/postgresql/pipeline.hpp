// Several statements that are sent at once, in libpq's pipeline mode: one round trip.
#pragma once

#include <chrono>
#include <optional>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

#include "durable/postgresql/parameters.hpp"
#include "durable/postgresql/result.hpp"

namespace rondo::durable::detail::postgresql {

/// A statement that is prepared once on each connection.
struct statement {
  const char* name;
  const char* text;
};

struct call {
  const statement* what;
  parameters with;
};

/// Once: enter(), send() …, sync(), answers(). What returns a bool is false where libpq refuses it.
class pipeline {
 public:
  /// `prepared`: what is prepared on that connection, which is kept up to date.
  pipeline(PGconn* on, std::unordered_set<const statement*>& prepared) noexcept
      : connection_(on), prepared_(prepared) {}

  bool enter() noexcept { return PQenterPipelineMode(connection_) != 0; }
  bool sync() noexcept { return PQpipelineSync(connection_) != 0; }
  /// A statement without parameters, whose answer nobody wants.
  bool send(const char* text);
  bool send(const call& what);

  /// Those of the calls, in their order; not all of them if something went wrong. Leaves the pipeline mode, unless silent().
  std::vector<result> answers(std::chrono::milliseconds within);
  /// They have not all come in that time.
  bool silent() const noexcept { return silent_; }
  /// The first answer that is an error; none but an empty one if the connection broke and the server has not said why.
  const std::optional<result>& wrong() const noexcept { return wrong_; }

 private:
  /// What is sent for a call or beside it, in the order of the answers.
  struct sent {
    const statement* prepares = nullptr;
    bool wanted = false;
  };

  bool comes() noexcept;
  result next();

  PGconn* connection_;
  std::unordered_set<const statement*>& prepared_;
  std::vector<sent> sent_;
  std::optional<result> wrong_;
  std::chrono::steady_clock::time_point until_;
  bool silent_ = false;
};

}  // namespace rondo::durable::detail::postgresql
