// A pool of connections, and changes: a change is a transaction on one of them.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "database.hpp"

namespace order_timeout {

class connections {
 public:
  explicit connections(std::string store) : store_(std::move(store)) {}

  // Returns a connection that nobody else uses.
  std::unique_ptr<database> take();
  void give_back(std::unique_ptr<database>);

 private:
  const std::string store_;
  std::mutex lock_;
  std::vector<std::unique_ptr<database>> free_;
};

// Rolled back unless committed. The connection is then closed, because it may be what failed.
class change {
 public:
  explicit change(connections& from) : from_(from), open_(from.take()) { open_->begin(); }

  std::vector<row> ask(const char* sql, const row& parameters = {}) { return open_->ask(sql, parameters); }
  rondo::durable::transaction handle() { return open_->handle(); }

  void commit() {
    open_->ask("COMMIT");
    from_.give_back(std::move(open_));
  }

 private:
  connections& from_;
  std::unique_ptr<database> open_;
};

}  // namespace order_timeout
