// The origin, which has the true values: behind one small interface a folder of files, a database or a web server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rondo/time.hpp>

#include "refreshing_cache.hpp"

namespace cache_refresh {

// What the cache holds of a key. Two records of a key with one validator have one value: the row's version, a file's time
// and size, an ETag. Empty: the origin has none.
struct record {
  std::string value;
  std::string validator;
};

struct answer {
  std::optional<record> changed;  // none: the record that the asker holds is still the origin's
  time_to_live ttl;               // what the origin says of it
};

// One line for the user, without the origin's name.
struct origin_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Loads; one thread at a time. Connects when it is first used, and again after an error.
class origin_connection {
 public:
  virtual ~origin_connection() = default;

  // `held` may be null. Throws origin_error: there is no such key, no answer within the limit, or anything else.
  virtual answer load(const std::string& key, const record* held, rondo::duration limit) = 0;
};

// Changes values, as somebody who uses the origin would; one thread at a time.
class origin_editor {
 public:
  virtual ~origin_editor() = default;

  // Puts `mark` at the end of the value, in place of an earlier mark. `before` is called before anybody can see the change.
  // Returns the new validator. Throws origin_error: nothing was changed.
  virtual std::string change(const std::string& key, const std::string& mark,
                             const std::function<void()>& before) = 0;
};

// Tells of changes as they happen, from a thread of its own, until it is destroyed.
class origin_news {
 public:
  virtual ~origin_news() = default;
};

// Thread-safe.
class origin {
 public:
  virtual ~origin() = default;

  virtual std::string name() const = 0;  // for people: "items.db, an SQLite database"

  // At most so many; 0: all. Throws origin_error.
  virtual std::vector<std::string> keys(std::size_t most) = 0;

  virtual std::unique_ptr<origin_connection> connect() = 0;
  // Null: this program cannot change what is there.
  virtual std::unique_ptr<origin_editor> edit() { return nullptr; }
  // Null: the origin tells nothing. `changed` may be called for keys that keys() did not name; with an empty key it means
  // that anything may have changed, as news may have been lost.
  virtual std::unique_ptr<origin_news> watch(std::function<void(const std::string& key)> changed) {
    static_cast<void>(changed);
    return nullptr;
  }
};

struct origin_options {
  std::string url;  // file:DIR, sqlite:FILE, http(s)://…/, postgresql://…
  // What a new database is filled with: the fields of a package catalogue or, if `rows` is not 0, so many made-up rows.
  std::filesystem::path catalogue{};
  std::size_t rows = 0;
  std::uint64_t seed = 0;
  // For databases of the user's own: SQL that gives all keys; and that gives value, validator and, if it likes, the time
  // to live in milliseconds, of the key which is its parameter ($1, or ? for SQLite). Both or neither.
  std::string list_query{};
  std::string load_query{};
};

// Opens it, so that what is wrong with it is said at the start. Throws origin_error.
std::unique_ptr<origin> open_origin(const origin_options&);

}  // namespace cache_refresh
