// An answer of PostgreSQL, always in the binary format.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <libpq-fe.h>

namespace rondo::durable::detail::postgresql {

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

}  // namespace rondo::durable::detail::postgresql
