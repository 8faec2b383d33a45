// Which rows and indices the statements for PostgreSQL read: only those that they need, among many far-off tasks.
#include <doctest/doctest.h>

#include <regex>
#include <string>

#include "durable/postgresql/connection.hpp"
#include "durable/postgresql/statements.hpp"
#include "durable/postgresql_database.hpp"
#include "durable/text.hpp"

namespace durable_postgresql_plans {

using namespace durable_test;
namespace postgresql = rondo::durable::detail::postgresql;

/// 20,000 far-off tasks, 300 due, and 60 whose lease has run out, in three queues; the statistics know none of them.
struct crowd {
  postgresql_database db{*postgresql_server::get()};
  postgresql::connection own{db.url()};

  crowd() {
    db.open();
    db.ask(
        "insert into rondo_task (queue, key, inline_payload, due, state, attempt, owner, lease_until) "
        "select (array['a', 'b', 'c'])[1 + i % 3], i::text, '', now() + case when i <= 20000 then interval "
        "'1 day' "
        "else interval '-1 day' end, case when i > 20300 then 2 else 0 end, 1, case when i > 20300 then "
        "'gone' end, "
        "case when i > 20300 then now() - interval '1 hour' end from generate_series(1, 20360) i");
  }

  /// The server's report of how it executed the statement.
  std::string explained(const std::string& execute) {
    std::string text;
    own.begin();  // with the settings of our statements
    const auto lines = own.run_plain(("explain (analyze, costs off, timing off) execute " + execute).c_str());
    own.commit_all();
    for (int row = 0; row < lines.rows(); ++row) text += lines.bytes(row, 0) + '\n';
    return text;
  }
};

/// The number of rows that scans of the table have returned or skipped. (Since version 18 the report has averages.)
double rows_read(const std::string& plan) {
  static const std::regex scan(
      R"(Scan using rondo_task_\w+ on rondo_task\b.*\brows=(\d+(?:\.\d+)?) loops=(\d+))");
  static const std::regex passed(R"(Rows Removed by Filter: (\d+(?:\.\d+)?))");
  double rows = 0;
  for (std::sregex_iterator i(plan.begin(), plan.end(), scan), end; i != end; ++i)
    rows += std::stod((*i)[1]) * std::stod((*i)[2]);
  for (std::sregex_iterator i(plan.begin(), plan.end(), passed), end; i != end; ++i)
    rows += std::stod((*i)[1]);
  return rows;
}

TEST_CASE("a claim reads at most the rows that it may claim from each queue, by the indices") {
  crowd x;
  postgresql::parameters none;
  none.texts({"none"}).integer(1).integer(1).integer(1).text("x").integer(1000000).texts({}).integer(0);
  x.own.run(postgresql::claim_waiting, none);
  x.own.run(postgresql::claim_all, none.integer(3));
  for (const bool all : {false, true}) {
    const auto plan = x.explained(
        all ? "rondo_claim_all('{a,b,c}', 10, 5000000, 30000000, 'all', 1000000, '{}', 0, 3)"
            : "rondo_claim_waiting('{a,b,c}', 10, 5000000, 30000000, 'waiting', 1000000, '{}', 0)");
    INFO(plan);
    CHECK(plan.find("Seq Scan on rondo_task") == std::string::npos);
    CHECK(plan.find("Index Scan using rondo_task_due") != std::string::npos);
    CHECK(plan.find("rondo_task_lease on rondo_task") != std::string::npos);
    // From each queue, ten that wait and, of those whose lease has run out, ten or one.
    CHECK(rows_read(plan) >= (all ? 60 : 31));
    CHECK(rows_read(plan) <= (all ? 150 : 60));  // claimed rows are read again, and passed from part to part
  }
  CHECK(x.db.ask("select count(*) from rondo_task where owner = 'waiting'") == "10");
  CHECK(x.db.ask("select count(*) from rondo_task where owner = 'all'") == "10");
}

TEST_CASE("submissions, cancellations and adoptions read their rows by the indices") {
  crowd x;
  const auto check = [&](const postgresql::statement& what, const postgresql::parameters& with,
                         const std::string& execute, long most) {
    x.own.run(what, with);
    const auto plan = x.explained(execute);
    INFO(plan);
    CHECK(plan.find("Seq Scan") == std::string::npos);
    CHECK(rows_read(plan) <= most);
  };
  const auto new_task = [](bool replace) {
    postgresql::parameters p;
    p.text("a")
        .text("new")
        .bytes("")
        .boolean(true)
        .integer(1'000'000'000)
        .boolean(replace)
        .integer(0)
        .integer(0)
        .null()
        .integer(0)
        .null();
    return p;
  };
  check(postgresql::submit, new_task(false),
        "rondo_submit('a', 'new', '', true, 1000000000, false, 0, 0, null, 0, null)", 1);
  check(postgresql::submit, new_task(true),
        "rondo_submit('a', 'new', '', true, 1000000000, true, 0, 0, null, 0, null)", 3);
  check(postgresql::cancel_key, postgresql::parameters().text("a").text("new"), "rondo_cancel_key('a', '3')",
        3);
  check(postgresql::submit_many,
        postgresql::parameters()
            .texts_or_nulls({"a"})
            .texts_or_nulls({"new2"})
            .byte_strings({""})
            .integers(std::vector<std::int64_t>{0})
            .booleans({true})
            .integers(std::vector<std::int64_t>{1'000'000'000})
            .booleans({true})
            .integer(0)
            .integers(std::vector<std::int64_t>{0})
            .texts_or_nulls({""}),
        "rondo_submit_many('{a,b}', '{new3,5}', '{a,b}', '{0,0}', '{t,t}', '{1000000000,1000000000}', "
        "'{t,t}', 0, '{0,0}', '{x,null}')",
        3);
  check(postgresql::find_key, postgresql::parameters().text("a").text("new"), "rondo_find_key('a', '6')", 1);
  postgresql::parameters move;
  move.text("a").text("new").boolean(true).integer(1'000'000'000).integer(0);
  check(postgresql::reschedule_key, move, "rondo_reschedule_key('a', '6', true, 1000000000, 0)", 1);
  check(postgresql::list_dead, postgresql::parameters().text("a").integer(0).integer(10),
        "rondo_list_dead('a', 0, 10)", 0);
  check(postgresql::retry, postgresql::parameters().integer(0), "rondo_retry(9)", 1);
  check(postgresql::cancel_id, postgresql::parameters().integer(1), "rondo_cancel_id(2)", 3);
  postgresql::parameters declared;
  declared.text("a").text("new3").text("every 1s").integer(0).null().bytes("");
  check(postgresql::find_repeated, declared, "rondo_find_repeated('a', '12', 'every 1s', 0, null, '')", 2);
  declared.boolean(false).integer(1'000'000'000'000'000).integer(0).null();
  check(postgresql::repeat, declared,
        "rondo_repeat('a', 'new4', 'every 1s', 0, null, '', false, 1000000000000000, 0, null)", 2);
  check(postgresql::repeat, declared,
        "rondo_repeat('a', 'new4', 'every 2s', 0, null, '', false, 1000000000000000, 0, null)", 4);
  check(postgresql::adopt, postgresql::parameters().texts({"a"}).text("x").integer(1),
        "rondo_adopt('{a,b,c}', 'gone', 1)", 60);
}

/// Checks what the statements about tickets read among 2,000 tasks that the statistics do not know.
void check_statements_about_tickets(crowd& x) {
  x.db.ask(
      "insert into rondo_task (queue, inline_payload, due, state, attempt, fence, owner, lease_until) "
      "select 'a', '', now(), 1 + i % 2, 1, 1, 'me', now() + interval '1 hour' from generate_series(1, 2000) "
      "i");
  const auto tickets = [&](int state) {
    const auto of = " from (select id from rondo_task where state = " + std::to_string(state) + " limit 5) t";
    return "'{" + x.db.ask("select string_agg(id::text, ',')" + of) + "}', '{1,1,1,1,1}'";
  };
  const auto check = [&](const postgresql::statement& what, const std::string& execute, long least = 5,
                         long most = 20) {
    x.own.run_plain(
        (std::string("prepare ") + what.name + " as " + rondo::durable::detail::with_states(what.text))
            .c_str());
    const auto plan = x.explained(execute);
    INFO(plan);
    CHECK(plan.find("Scan using rondo_task_lease") == std::string::npos);
    CHECK(rows_read(plan) >= least);
    CHECK(rows_read(plan) <= most);
  };
  check(postgresql::lock_in_lanes, "rondo_lock_in_lanes(" + tickets(1) + ", 'me')");
  check(postgresql::begin, "rondo_begin(" + tickets(1) +
                               ", 1000, 'me', '{null,null,0,null,null}', '{null,null,0,null,null}', '{}')");
  check(postgresql::renew, "rondo_renew(" + tickets(2) + ", 1000, false, 'me')");
  check(postgresql::finish, "rondo_finish(" + tickets(2) + ", 'me')");
  check(postgresql::give_back, "rondo_give_back(" + tickets(1) + ", 'me')");
  // These two may read for each ticket the rows of those before it.
  check(postgresql::fail,
        "rondo_fail(" + tickets(2) + ", '{0,0,0,0,0}', '{a,a,a,a,a}', 1000, '{t,t,t,t,t}', 'me')", 5, 35);
  check(postgresql::pass,
        "rondo_pass(" + tickets(2) +
            ", '{0,0,0,0,0}', '{t,t,t,t,t}', '{a,a,a,a,a}', 1000, 'me', '{0,0,0,0,0}')",
        5, 35);
  check(postgresql::watch, "rondo_watch(" + tickets(2) + ", 'me')");
  check(postgresql::take_back, "rondo_take_back(" + tickets(2) + ", 'me')");
}

TEST_CASE("statements about tickets read only their rows, even if the statistics know no held task") {
  crowd x;
  x.db.ask("delete from rondo_task where state = 2");
  x.db.ask("analyze rondo_task");
  check_statements_about_tickets(x);
}

TEST_CASE("statements about tickets read only their rows, even if the statistics know an empty table") {
  crowd x;
  x.db.ask("delete from rondo_task");
  x.db.ask("vacuum analyze rondo_task");
  check_statements_about_tickets(x);
}

}  // namespace durable_postgresql_plans
