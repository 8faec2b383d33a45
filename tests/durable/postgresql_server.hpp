// A PostgreSQL server of the tests' own: in a temporary folder, of another user where the tests run as root (it refuses to),
// reached by a socket in that folder and on a free port of 127.0.0.1. It ends with the test program, however that ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <libpq-fe.h>
#include <sys/types.h>

namespace durable_test {

class postgresql_server {
 public:
  /// Started by the first call, for the whole program, which must be made by the main thread. Null, and one line says why:
  /// PostgreSQL is not installed.
  static postgresql_server* get();

  ~postgresql_server();
  postgresql_server(const postgresql_server&) = delete;
  postgresql_server& operator=(const postgresql_server&) = delete;

  /// As a superuser.
  std::string url(const std::string& database = "postgres") const;
  /// The URL of an empty one.
  std::string new_database();
  void drop_database(const std::string& url_of_it) noexcept;
  /// The same, by TCP on that port of this host.
  static std::string by_tcp(const std::string& url, int port);
  int port() const noexcept { return port_; }

  enum class how { fast, immediate };  // as pg_ctl says it: sessions are ended in good order; as in a crash
  void stop(how);
  /// Returns when it takes connections.
  void start();
  void restart(how h) {
    stop(h);
    start();
  }

 private:
  explicit postgresql_server(std::string programs);
  void make_cluster();

  std::string programs_;  // the folder
  std::string folder_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  int port_ = 0;
  pid_t process_ = 0;
  int databases_ = 0;
  std::vector<std::string> empty_;  // their URLs
};

/// A connection as a user has one.
class user_connection {
 public:
  explicit user_connection(const std::string& url) : connection_(PQconnectdb(url.c_str())) {
    PQsetNoticeProcessor(
        get(), [](void*, const char*) {}, nullptr);
  }

  PGconn* get() const noexcept { return connection_.get(); }
  /// The first column of the first row, or "". Throws std::runtime_error.
  std::string run(const std::string& sql);

 private:
  struct finish {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
  };
  std::unique_ptr<PGconn, finish> connection_;
};

}  // namespace durable_test
