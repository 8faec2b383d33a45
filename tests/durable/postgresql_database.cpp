#include "durable/postgresql_database.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "durable/microseconds.hpp"
#include "durable/store_access.hpp"

namespace durable_test {
namespace {

class postgresql_caller final : public their_connection {
 public:
  explicit postgresql_caller(const std::string& url) : connection_(url) {}

  rondo::durable::transaction handle() override { return connection_.get(); }
  void execute(const std::string& sql) override { connection_.run(sql); }

 private:
  user_connection connection_;
};

}  // namespace

// Who uses url_ looks for names in the test's schema first, where these functions hide the server's.
postgresql_database::postgresql_database(postgresql_server& on,
                                         std::function<rondo::durable::wall_time()> clock)
    : server_(&on),
      plain_url_(on.new_database()),
      url_(plain_url_ + "&options=-csearch_path%3Dpublic,pg_catalog"),
      clock_(std::move(clock)),
      sets_clock_(std::make_unique<user_connection>(url_)) {
  sets_clock_->run(R"sql(
    create table test_clock (shows timestamptz not null);
    insert into test_clock values ('epoch');
    create function clock_timestamp() returns timestamptz language sql stable as 'select shows from public.test_clock';
    create function statement_timestamp() returns timestamptz language sql stable
      as 'select shows from public.test_clock';
  )sql");
}

postgresql_database::~postgresql_database() {
  own_.reset();
  sets_clock_.reset();
  server_->drop_database(plain_url_);
}

std::shared_ptr<rondo::durable::detail::engine> postgresql_database::open() {
  return rondo::durable::detail::open_engine(url_);
}

std::unique_ptr<their_connection> postgresql_database::connect() {
  return std::make_unique<postgresql_caller>(url_);
}

void postgresql_database::pass(rondo::duration time) {
  const auto back =
      std::to_string(rondo::durable::detail::microseconds_of(time)) + " * interval '1 microsecond'";
  ask("update rondo_task set due = due - " + back + ", lease_until = lease_until - " + back +
      ", place = place - " + back + ", point = point - " + back);
}

rondo::durable::wall_time postgresql_database::now() {
  const auto count = ask("select (extract(epoch from clock_timestamp()) * 1000000)::bigint");
  return rondo::durable::detail::wall_time_of(std::stoll(count));
}

void postgresql_database::tell_time() {
  const std::lock_guard hold(mutex_);
  const auto shows = std::to_string(rondo::durable::detail::microseconds_of(clock_()));
  sets_clock_->run("update public.test_clock set shows = timestamptz 'epoch' + " + shows +
                   " * interval '1 microsecond'");
}

std::string postgresql_database::ask(const std::string& sql) {
  try {
    if (own_ == nullptr) own_ = std::make_unique<user_connection>(url_);
    return own_->run(sql);
  } catch (const std::runtime_error&) {
    own_ = std::make_unique<user_connection>(url_);  // the server may have been restarted
    return own_->run(sql);
  }
}

sql_database::dialect postgresql_database::speaks() const {
  return {.bytes_begin = "encode(",
          .bytes_end = ", 'hex')",
          .text_begin = "encode(convert_to(",
          .text_end = ", 'UTF8'), 'hex')",
          .time_begin = "cast(cast(extract(epoch from ",
          .time_end = ") * 1000000 as bigint) as text)",
          .list = "string_agg",
          .line_feed = "chr(10)"};
}

}  // namespace durable_test
