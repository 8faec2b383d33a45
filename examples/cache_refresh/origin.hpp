// The origin, which has the true values: a folder of files, a database or a web server, behind one small interface.
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

// What the cache holds for a key. Two records of a key with the same validator have the same value. A validator is, for
// example, a row's version, a file's time and size, or an ETag. It is empty if the origin has none.
struct record {
  std::string value;
  std::string validator;
};

struct answer {
  std::optional<record> changed;  // none if the caller's record is still current
  time_to_live ttl;               // as the origin gives it
};

// The message is one line for the user, without the name of the origin.
struct origin_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Loads values, for one thread at a time. Connects at its first use, and again after an error.
class origin_connection {
 public:
  virtual ~origin_connection() = default;

  // `held` may be null. Throws origin_error if there is no such key, no answer within the limit, or any other problem.
  virtual answer load(const std::string& key, const record* held, rondo::duration limit) = 0;
};

// Changes values, as a user of the origin would; for one thread at a time.
class origin_editor {
 public:
  virtual ~origin_editor() = default;

  // Appends `mark` to the value, replacing an earlier mark. Calls `before` before anybody can see the change. Returns
  // the new validator. Throws origin_error. If `before` has been called by then, the change may have been made.
  virtual std::string change(const std::string& key, const std::string& mark,
                             const std::function<void()>& before) = 0;
};

// Reports changes as they happen, on a thread of its own, until it is destroyed.
class origin_news {
 public:
  virtual ~origin_news() = default;
};

// Thread-safe.
class origin {
 public:
  virtual ~origin() = default;

  virtual std::string name() const = 0;  // for users: "items.db, an SQLite database"

  // Returns at most `most` keys, or all if it is 0. Throws origin_error.
  virtual std::vector<std::string> keys(std::size_t most) = 0;

  virtual std::unique_ptr<origin_connection> connect() = 0;
  // Returns null if this program cannot change the values.
  virtual std::unique_ptr<origin_editor> edit() { return nullptr; }
  // Returns null if the origin does not report changes. `changed` may be called for keys that keys() did not return. An
  // empty key means that anything may have changed, because reports may have been lost.
  virtual std::unique_ptr<origin_news> watch(std::function<void(const std::string& key)> changed) {
    static_cast<void>(changed);
    return nullptr;
  }
};

struct origin_options {
  std::string url;  // file:DIR, sqlite:FILE, http(s)://…/, postgresql://…
  // What a new database is filled with: the fields of a package catalogue or, if `rows` is not 0, that many made-up
  // rows.
  std::filesystem::path catalogue{};
  std::size_t rows = 0;
  std::uint64_t seed = 0;
  // For databases of the user's own. One query returns all keys. The other returns the value, the validator and,
  // optionally, the time to live in milliseconds of the key that is its parameter ($1, or ? for SQLite). Set both or
  // neither.
  std::string list_query{};
  std::string load_query{};
};

// Opens the origin, so that problems are reported at the start. Throws origin_error.
std::unique_ptr<origin> open_origin(const origin_options&);

// How an origin misbehaves on purpose.
enum class chaos {
  none,
  slow,  // about half of the loads, at random, take 0.1 to 3 s longer
  down,  // for 15 s, then up for 15 s, and so on
  flap,  // as down, but for 2 s at a time
  wrong  // about a third of the answers, at random, are impossible: no text, or a time to live of 0
};

struct chaos_options {
  chaos kind = chaos::none;
  unsigned fail_percent = 0;                       // percentage of failing loads, whatever the kind
  rondo::duration calm = std::chrono::seconds(5);  // how long after the start `kind` has no effect yet
  std::uint64_t seed = 0;
};

// Loads through the returned origin misbehave. Everything else goes to the real origin, which must outlive it.
std::unique_ptr<origin> with_chaos(origin& real, const chaos_options&);

}  // namespace cache_refresh
