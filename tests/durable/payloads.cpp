// Payloads, short ones in the row of their task and long ones apart from it. The same tests run for each engine.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "durable/database.hpp"

namespace durable_payloads {

using namespace durable_test;
using rondo::durable::detail::longest_inline_payload;

std::string bytes(std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i != count; ++i) result += static_cast<char>(i % 251);
  return result;
}

std::string apart(database& db) { return db.ask("SELECT count(*) FROM rondo_payload"); }

TEST_CASE("a payload of any length is found, claimed and adopted as it was submitted") {
  for (const std::size_t size :
       {std::size_t{0}, longest_inline_payload, longest_inline_payload + 1, std::size_t{1'000'000}}) {
    CAPTURE(size);
    const auto db = new_database();
    const auto store = db->open_store();
    worker w(*db);
    const std::int64_t id = store->submit_after(0s, {.payload = bytes(size)});
    CHECK((store->find(id)->payload == bytes(size)));
    CHECK((w.claim_one().what.payload == bytes(size)));
    const std::vector<claim> adopted = w.take({.adopt = true}).claimed;
    REQUIRE(adopted.size() == 1);
    CHECK((adopted[0].what.payload == bytes(size)));
  }
}

TEST_CASE("a long payload lies apart, with a key or without") {
  for (const char* key : {"", "k"}) {
    CAPTURE(key);
    const auto db = new_database();
    const auto store = db->open_store();
    store->submit_after(1h, {.payload = bytes(longest_inline_payload), .key = key});
    CHECK(apart(*db) == "0");
    store->submit_after(1h, {.payload = bytes(longest_inline_payload + 1), .key = key, .replace = true});
    CHECK(apart(*db) == "1");
    CHECK(db->ask("SELECT payload_apart FROM rondo_task ORDER BY id DESC") ==
          std::to_string(longest_inline_payload + 1));
  }
}

TEST_CASE("a payload that lies apart goes with its task") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  const rondo::durable::submission large{.payload = bytes(1000), .key = "k"};
  const auto in = [&](state s) { return task_in(s, *store, w, large); };
  CHECK(store->cancel(in(state::waiting)));
  CHECK(apart(*db) == "0");
  CHECK(store->cancel(in(state::held)));
  CHECK(apart(*db) == "0");
  in(state::done);
  CHECK(apart(*db) == "0");
  const std::int64_t dead = in(state::dead);
  CHECK(apart(*db) == "1");
  db->ask("DELETE FROM rondo_task WHERE id = " + std::to_string(dead));  // as an operator would
  CHECK(apart(*db) == "0");
  in(state::waiting);
  store->submit_after(1h, {.key = "k", .replace = true});
  CHECK(apart(*db) == "0");
}

TEST_CASE("a submission that is refused or rolled back leaves no payload") {
  const auto db = new_database();
  const auto store = db->open_store();
  store->submit_after(1h, {.key = "k"});
  CHECK_THROWS_AS(store->submit_after(1h, {.payload = bytes(1000), .key = "k"}), rondo::durable::key_taken);
  CHECK(apart(*db) == "0");
  const auto mine = db->connect();
  mine->execute("BEGIN");
  store->submit_after(mine->handle(), 1h, {.payload = bytes(1000)});
  mine->execute("ROLLBACK");
  CHECK(apart(*db) == "0");
}

TEST_CASE("a claim is limited by the bytes of payloads that lie apart, too") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  for (int i = 0; i != 5; ++i) store->submit_after(0s, {.payload = bytes(1000)});
  CHECK(w.take({.claim_up_to = 5, .claim_bytes = 2001}).claimed.size() == 3);
}

}  // namespace durable_payloads
