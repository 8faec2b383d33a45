// PostgreSQL databases on the tests' own server.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "durable/postgresql_server.hpp"
#include "durable/sql_database.hpp"

namespace durable_test {

class postgresql_database final : public sql_database {
 public:
  explicit postgresql_database(postgresql_server& on)
      : server_(&on), plain_url_(on.new_database()), url_(plain_url_) {}
  /// The server's clock is this one for all who use the database, except in functions with a search path of their own.
  postgresql_database(postgresql_server& on, std::function<rondo::durable::wall_time()> clock);
  ~postgresql_database() override;

  std::string url() const override { return url_; }
  std::shared_ptr<rondo::durable::detail::engine> open() override;
  std::unique_ptr<their_connection> connect() override;
  void pass(rondo::duration time) override;
  rondo::durable::wall_time now() override;
  void tell_time() override;
  std::string ask(const std::string& sql) override;

 protected:
  dialect speaks() const override;

 private:
  postgresql_server* server_;
  const std::string plain_url_, url_;
  std::unique_ptr<user_connection> own_;
  const std::function<rondo::durable::wall_time()> clock_;
  std::mutex mutex_;  // of what follows
  std::unique_ptr<user_connection> sets_clock_;
};

}  // namespace durable_test
