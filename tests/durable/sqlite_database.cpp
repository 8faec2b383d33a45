#include "durable/sqlite_database.hpp"

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace durable_test {

namespace {

class sqlite_caller final : public their_connection {
 public:
  explicit sqlite_caller(const std::string& file) {
    if (sqlite3_open(file.c_str(), &handle_) != SQLITE_OK) throw std::runtime_error("cannot open " + file);
    sqlite3_busy_timeout(handle_, 10'000);  // others may read while this connection commits
  }
  ~sqlite_caller() override { sqlite3_close(handle_); }
  sqlite_caller(const sqlite_caller&) = delete;
  sqlite_caller& operator=(const sqlite_caller&) = delete;

  rondo::durable::transaction handle() override { return handle_; }
  void execute(const std::string& sql) override { first_value(sql); }

  std::string first_value(const std::string& sql) {
    std::string result;
    bool seen = false;
    auto note = std::pair(&result, &seen);
    const auto take = [](void* to, int count, char** values, char**) {
      auto [text, any] = *static_cast<decltype(note)*>(to);
      if (!std::exchange(*any, true) && count != 0 && values[0] != nullptr) *text = values[0];
      return 0;
    };
    if (sqlite3_exec(handle_, sql.c_str(), take, &note, nullptr) != SQLITE_OK)
      throw std::runtime_error(sqlite3_errmsg(handle_));
    return result;
  }

 private:
  sqlite3* handle_ = nullptr;
};

}  // namespace

temporary_folder::temporary_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "rondo-durable-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

rondo::durable::detail::sqlite::settings sqlite_database::settings() const {
  rondo::durable::detail::sqlite::settings s;
  s.clock = [clock = clock_] { return clock->load(); };
  s.connected = [](sqlite3* made) {  // for speed: these databases need not survive a power cut
    sqlite3_exec(made, "PRAGMA synchronous = OFF", nullptr, nullptr, nullptr);
  };
  if (given_ == nullptr) return s;
  s.clock = given_;
  s.patience = 200ms;  // a test of dispatchers waits for so long for a file that it has locked
  return s;
}

std::shared_ptr<rondo::durable::detail::engine> sqlite_database::open() {
  return rondo::durable::detail::sqlite::open(file(), settings());
}

std::unique_ptr<their_connection> sqlite_database::connect() {
  return std::make_unique<sqlite_caller>(file());
}

void sqlite_database::pass(rondo::duration time) { clock_->store(clock_->load() + time); }

std::string sqlite_database::ask(const std::string& sql) { return sqlite_caller(file()).first_value(sql); }

sql_database::dialect sqlite_database::speaks() const {
  return {.bytes_begin = "hex(",
          .bytes_end = ")",
          .text_begin = "hex(",
          .text_end = ")",
          .time_begin = "cast(",
          .time_end = " as text)",
          .list = "group_concat",
          .line_feed = "char(10)"};
}

std::unique_ptr<sql_database> new_sql_database() { return std::make_unique<sqlite_database>(); }

std::unique_ptr<sql_database> new_sql_database(std::function<rondo::durable::wall_time()> clock) {
  return std::make_unique<sqlite_database>(std::move(clock));
}

std::unique_ptr<database> new_database() { return new_sql_database(); }

}  // namespace durable_test
