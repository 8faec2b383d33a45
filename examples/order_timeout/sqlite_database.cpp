#include "common/sqlite.hpp"
#include "database.hpp"

namespace order_timeout {
namespace {

constexpr std::chrono::seconds patience{10};

class sqlite_database : public database {
 public:
  explicit sqlite_database(const std::string& file) : connection_(file, patience) {}

  std::vector<row> ask(const char* sql, const row& parameters) override {
    sqlite::statement statement(connection_, sql);
    std::vector<row> answer;
    for (sqlite::rows each = statement.with(parameters); each.next();) {
      row& values = answer.emplace_back();
      for (int column = 0; column < each.columns(); ++column) values.push_back(each.text(column));
    }
    return answer;
  }

  void begin() override { connection_.execute("BEGIN IMMEDIATE"); }
  void begin_setup() override { begin(); }
  rondo::durable::transaction handle() override { return connection_.handle(); }
  const char* identity() const override { return "INTEGER PRIMARY KEY AUTOINCREMENT"; }

 private:
  sqlite::connection connection_;
};

}  // namespace

std::unique_ptr<database> open_sqlite(const std::string& store) {
  const std::string prefix = "sqlite:";
  if (!store.starts_with(prefix)) return nullptr;
  return std::make_unique<sqlite_database>(store.substr(prefix.size()));
}

}  // namespace order_timeout
