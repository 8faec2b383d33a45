// SQLite databases in a temporary folder, with a clock that the tests set.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "durable/sql_database.hpp"
#include "durable/sqlite/engine.hpp"

namespace durable_test {

/// Removed with its contents.
class temporary_folder {
 public:
  temporary_folder();
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class sqlite_database final : public sql_database {
 public:
  sqlite_database() = default;
  /// The engine's clock is this one.
  explicit sqlite_database(std::function<rondo::durable::wall_time()> clock) : given_(std::move(clock)) {}

  std::string file() const { return (folder_.path() / "tasks.db").string(); }
  std::string url() const override { return "sqlite:" + file(); }
  std::shared_ptr<rondo::durable::detail::engine> open() override;
  std::unique_ptr<their_connection> connect() override;
  void pass(rondo::duration time) override;
  rondo::durable::wall_time now() override { return clock_->load(); }
  std::string ask(const std::string& sql) override;

  /// Settings with this database's clock.
  rondo::durable::detail::sqlite::settings settings() const;

 protected:
  dialect speaks() const override;

 private:
  temporary_folder folder_;
  const std::function<rondo::durable::wall_time()> given_;
  std::shared_ptr<std::atomic<rondo::durable::wall_time>> clock_ =
      std::make_shared<std::atomic<rondo::durable::wall_time>>(
          rondo::durable::wall_time(std::chrono::hours(500'000)));
};

}  // namespace durable_test
