// The shop's own connection to the database of the store: what SQLite and PostgreSQL have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>

namespace order_timeout {

using row = std::vector<std::string>;

class database {
 public:
  // `store` is as for rondo::durable::store::open().
  static std::unique_ptr<database> open(const std::string& store);
  virtual ~database() = default;

  // Runs one statement. Its parameters $1, $2, … must occur in order, because SQLite numbers them as they occur.
  virtual std::vector<row> ask(const char* sql, const row& parameters = {}) = 0;

  // Begins a transaction that may write.
  virtual void begin() = 0;

  // Begins a transaction in which nobody else creates the tables.
  virtual void begin_setup() = 0;

  // The open transaction, for the calls of the store.
  virtual rondo::durable::transaction handle() = 0;

  // The type of a column whose numbers the database assigns.
  virtual const char* identity() const = 0;
};

// Return null if it is not their kind of store.
std::unique_ptr<database> open_sqlite(const std::string& store);
std::unique_ptr<database> open_postgresql(const std::string& store);

}  // namespace order_timeout
