// Several statements sent in one round trip, in libpq's pipeline mode; their parameters and answers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <libpq-fe.h>

namespace rondo::durable::detail::postgresql {

/// Parameters are added in order; the first is $1. All except bytes are sent as text, which the statement casts where
/// the type is not obvious.
class parameters {
 public:
  parameters& integer(std::int64_t value);
  parameters& boolean(bool value);
  parameters& text(std::string value);
  parameters& bytes(std::string value);
  parameters& null();
  ///@{
  /// Adds an array, as a literal.
  parameters& integers(const std::vector<std::int64_t>& values);
  parameters& integers(const std::vector<std::optional<std::int64_t>>& values);
  parameters& texts(const std::vector<std::string>& values);
  parameters& booleans(const std::vector<bool>& values);
  ///@}
  ///@{
  /// Adds an array, in the binary format, which costs least. An empty text becomes null.
  parameters& texts_or_nulls(const std::vector<std::string_view>& values);
  parameters& byte_strings(const std::vector<std::string_view>& values);
  ///@}

  int count() const noexcept { return static_cast<int>(values_.size()); }
  /// In the form that libpq takes. Valid until this object changes.
  std::vector<const char*> pointers() const;
  const std::vector<int>& lengths() const noexcept { return lengths_; }
  const std::vector<int>& formats() const noexcept { return formats_; }

 private:
  parameters& add(std::optional<std::string> value, bool is_binary);

  std::vector<std::optional<std::string>> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

class result {
 public:
  result() noexcept = default;
  explicit result(PGresult* of) noexcept : of_(of) {}

  explicit operator bool() const noexcept { return of_ != nullptr; }
  PGresult* get() const noexcept { return of_.get(); }
  bool good() const noexcept {
    const auto status = PQresultStatus(of_.get());
    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
  }
  /// The five-character SQLSTATE. Empty if the server did not send one.
  std::string state() const {
    const char* state = PQresultErrorField(of_.get(), PG_DIAG_SQLSTATE);
    return state == nullptr ? "" : state;
  }

  int rows() const noexcept { return PQntuples(of_.get()); }
  bool null(int row, int column) const noexcept { return PQgetisnull(of_.get(), row, column) != 0; }
  /// A smallint, integer or bigint.
  std::int64_t integer(int row, int column) const noexcept {
    const auto* bytes = reinterpret_cast<const unsigned char*>(PQgetvalue(of_.get(), row, column));
    const int length = PQgetlength(of_.get(), row, column);
    std::uint64_t value = length > 0 && bytes[0] >= 0x80 ? ~std::uint64_t{0} : 0;
    for (int i = 0; i < length; ++i) value = value << 8U | bytes[i];
    return static_cast<std::int64_t>(value);
  }
  bool boolean(int row, int column) const noexcept { return *PQgetvalue(of_.get(), row, column) != 0; }
  /// Text or bytes. Empty for NULL.
  std::string bytes(int row, int column) const {
    return {PQgetvalue(of_.get(), row, column),
            static_cast<std::size_t>(PQgetlength(of_.get(), row, column))};
  }
  /// A timestamp with time zone, in microseconds since 1970. (The server sends microseconds since 2000.) A value
  /// written by an operator may be extreme, such as "infinity". It is clamped, so that the difference of two does not
  /// overflow.
  std::int64_t microseconds(int row, int column) const noexcept {
    constexpr std::int64_t from_1970_to_2000 = 946'684'800'000'000;
    constexpr auto most = std::numeric_limits<std::int64_t>::max() / 2;
    return std::clamp(integer(row, column), -most, most - from_1970_to_2000) + from_1970_to_2000;
  }

 private:
  struct clear {
    void operator()(PGresult* r) const noexcept { PQclear(r); }
  };
  std::unique_ptr<PGresult, clear> of_;
};

/// Waits until PQgetResult() would not block. Returns false if neither side could send anything for that time. (A large
/// answer over a slow line may take much longer.)
bool answer_comes(PGconn* on, std::chrono::milliseconds within) noexcept;

/// A statement that is prepared once on each connection.
struct statement {
  const char* name;
  const char* text;  // see with_states()
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
