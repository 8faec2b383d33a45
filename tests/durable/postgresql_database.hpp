// PostgreSQL databases on the tests' own server.
#pragma once

#include <memory>
#include <string>

#include "durable/postgresql_server.hpp"
#include "durable/sql_database.hpp"

namespace durable_test {

class postgresql_database final : public sql_database {
 public:
  explicit postgresql_database(postgresql_server& on) : server_(&on), url_(on.new_database()) {}
  ~postgresql_database() override;

  std::string url() const override { return url_; }
  std::shared_ptr<rondo::durable::detail::engine> open() override;
  std::unique_ptr<their_connection> connect() override;
  void pass(rondo::duration time) override;
  rondo::durable::wall_time now() override;
  std::string ask(const std::string& sql) override;

 protected:
  dialect speaks() const override;

 private:
  postgresql_server* server_;
  std::string url_;
  std::unique_ptr<user_connection> own_;
};

}  // namespace durable_test
