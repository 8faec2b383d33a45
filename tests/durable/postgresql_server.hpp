// The tests' own PostgreSQL server. It has a temporary folder and is reached by a socket in that folder or on a free
// port of 127.0.0.1. If the tests run as root, it runs as another user, because it refuses to run as root. It ends with
// the test program, however that ends.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <libpq-fe.h>
#include <sys/types.h>

namespace durable_test {

class postgresql_server {
 public:
  /// The first call starts the server for the entire program; the main thread must make it. Returns null if PostgreSQL
  /// is not installed, and prints one line that says why.
  static postgresql_server* get();

  ~postgresql_server();
  postgresql_server(const postgresql_server&) = delete;
  postgresql_server& operator=(const postgresql_server&) = delete;

  /// The URL of a database, as a superuser.
  std::string url(const std::string& database = "postgres") const;
  /// Creates an empty database and returns its URL.
  std::string new_database();
  void drop_database(const std::string& url_of_it) noexcept;
  /// The URL of the same database, by TCP on that port of this host.
  static std::string by_tcp(const std::string& url, int port);
  int port() const noexcept { return port_; }
  /// The URL of the same database, by a new PgBouncer that pools transactions and replaces the last one. Empty if it is not
  /// installed.
  std::string by_pooler_of_transactions(const std::string& url_of_it);

  /// From now on, url() and new_database() name a role that has each setting that could change what statements mean, or
  /// how they are executed. (user_connection takes the other role.) Returns their number.
  std::size_t use_odd_settings();

  enum class how { fast, immediate };  // the modes of pg_ctl: an orderly end of all sessions; like a crash
  void stop(how);
  /// Returns when the server takes connections.
  void start();
  void restart(how h) {
    stop(h);
    start();
  }
  /// Restarts it as a standby without a primary, and promotes that: it has the same data, and the next timeline.
  void promote();

 private:
  explicit postgresql_server(std::string programs);
  void make_cluster();
  void start_pooler(const std::string& program);
  void stop_pooler() noexcept;

  std::string programs_;  // the folder
  std::string folder_;
  uid_t user_ = 0;
  gid_t group_ = 0;
  int port_ = 0;
  pid_t process_ = 0, pooler_ = 0;
  int pooler_port_ = 0;
  int databases_ = 0;
  std::string role_ = "rondo";
  std::vector<std::string> empty_;  // their URLs
};

/// A user's connection.
class user_connection {
 public:
  explicit user_connection(const std::string& url);

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
