// Payloads, short and long ones. The same tests run for each engine.
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

TEST_CASE("a claim is limited by the bytes of payloads that lie apart, too") {
  const auto db = new_database();
  const auto store = db->open_store();
  worker w(*db);
  for (int i = 0; i != 5; ++i) store->submit_after(0s, {.payload = bytes(1000)});
  CHECK(w.take({.claim_up_to = 5, .claim_bytes = 2001}).claimed.size() == 3);
}

}  // namespace durable_payloads
