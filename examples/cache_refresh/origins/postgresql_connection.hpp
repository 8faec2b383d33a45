// libpq with a time limit on every call: nobody waits longer for a server that does not answer.
//
// If a URL has a host name, libpq also waits for the name service. resolv.conf limits that time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <libpq-fe.h>

#include "../origin.hpp"

namespace cache_refresh {

class stop_event;

class postgresql_connection {
 public:
  // The rows that a statement returned.
  class result {
   public:
    explicit result(PGresult* rows) noexcept : rows_(rows) {}
    PGresult* get() const noexcept { return rows_.get(); }
    int rows() const noexcept { return PQntuples(get()); }
    int columns() const noexcept { return PQnfields(get()); }
    int parameters() const noexcept { return PQnparams(get()); }  // of describe()
    bool null(int row, int column) const noexcept { return PQgetisnull(get(), row, column) != 0; }
    std::string text(int row, int column) const {
      return {PQgetvalue(get(), row, column), static_cast<std::size_t>(PQgetlength(get(), row, column))};
    }

   private:
    struct cleaner {
      void operator()(PGresult* rows) const noexcept { PQclear(rows); }
    };
    std::unique_ptr<PGresult, cleaner> rows_;
  };

  // `stop`, if not null, ends a wait, as the limit does. All functions throw origin_error.
  postgresql_connection(const std::string& url, rondo::duration limit, const stop_event* stop = nullptr);

  // Limits each of the following calls. postgresql_loader also sets statement_timeout, so that the server does not
  // work on what nobody waits for: PQcancel() could hang too.
  void limit_each(rondo::duration limit) { limit_ = limit; }

  result execute(const char* sql, const std::vector<std::optional<std::string>>& parameters = {});
  void prepare(const char* name, const std::string& sql);
  result describe(const char* name);
  result execute_prepared(const char* name, const std::vector<std::optional<std::string>>& parameters);

  // COPY … FROM STDIN, then any number of pieces, then the end.
  void begin_copy(const char* sql);
  void copy(const std::string& piece);
  void end_copy();

  PGconn* handle() const noexcept { return connection_.get(); }

 private:
  void connect(const std::string& url);
  void wait_for(short events);
  void flush();
  result finish(bool sent);
  [[noreturn]] void fail();

  struct closer {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  std::unique_ptr<PGconn, closer> connection_;
  const stop_event* const stop_;
  rondo::duration limit_;
  rondo::time_point until_;
};

// Returns the first line of the message: libpq's messages have several.
std::string one_line(const char* message);

}  // namespace cache_refresh
