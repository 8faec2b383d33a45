// A connection of the shop's own to the database of the store: what SQLite and PostgreSQL have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <rondo/durable.hpp>

namespace order_timeout {

using row = std::vector<std::string>;

class database {
 public:
  // As rondo::durable::store::open() takes it.
  static std::unique_ptr<database> open(const std::string& store);
  virtual ~database() = default;

  // One statement. Its parameters are $1, $2, …: SQLite numbers them as they occur, so they have to occur in order.
  virtual std::vector<row> ask(const char* sql, const row& parameters = {}) = 0;

  // Begins a transaction that may write.
  virtual void begin() = 0;

  // One in which nobody else creates the tables.
  virtual void begin_setup() = 0;

  // The transaction that is open, for the calls of the store.
  virtual rondo::durable::transaction handle() = 0;

  // The type of a column with numbers that are given out by the database.
  virtual const char* identity() const = 0;
};

// Null: this is not their kind of store.
std::unique_ptr<database> open_sqlite(const std::string& store);
std::unique_ptr<database> open_postgresql(const std::string& store);

}  // namespace order_timeout
