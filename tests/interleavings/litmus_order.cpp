// Litmus tests of fences and of the total order of what is seq_cst: [atomics.fences] and [atomics.order] of C++20. The
// sources are those of litmus.cpp. Z6.U and the tests after it are from RC11 and P0668.
#include "interleavings/litmus.hpp"

namespace interleavings_litmus_order {

using namespace rondo::test;
using namespace rondo::test::litmus;

constexpr variable x = &world::x, y = &world::y, z = &world::z;

// Store buffering (SB): each thread stores, and looks whether the other has.

outcomes store_buffering(order stored, order loaded, const std::vector<thread>& between = {}) {
  std::vector<thread> one{store(x, 1, stored)};
  std::vector<thread> other{store(y, 1, stored)};
  for (const thread& f : between) one.push_back(f);
  for (const thread& f : between) other.push_back(f);
  one.push_back(load(0, y, loaded));
  other.push_back(load(1, x, loaded));
  return outcomes_of({in_turn(one), in_turn(other)}, registers(2));
}

TEST_CASE("litmus: SB, relaxed, or with release and acquire, everything is allowed") {
  CHECK(store_buffering(relaxed, relaxed) == all_but(2, {}));
  CHECK(store_buffering(release, acquire) == all_but(2, {}));
}

TEST_CASE("litmus: SB, seq_cst, one of the threads sees the other's store") {
  CHECK(store_buffering(seq_cst, seq_cst) == all_but(2, {"00"}));
}

TEST_CASE("litmus: SB with only the stores or only the loads seq_cst, everything is allowed") {
  CHECK(store_buffering(seq_cst, acquire) == all_but(2, {}));
  CHECK(store_buffering(release, seq_cst) == all_but(2, {}));
}

TEST_CASE("litmus: SB with seq_cst fences, one of the threads sees the other's store") {
  CHECK(store_buffering(relaxed, relaxed, {fence(seq_cst)}) == all_but(2, {"00"}));
}

TEST_CASE("litmus: SB with acq_rel fences, everything is allowed") {
  CHECK(store_buffering(relaxed, relaxed, {fence(acq_rel)}) == all_but(2, {}));
}

TEST_CASE("litmus: SB with a seq_cst fence in one thread, everything is allowed") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), fence(seq_cst), load(0, y, relaxed)}),
                                    in_turn({store(y, 1, relaxed), load(1, x, relaxed)})},
                                   registers(2));
  CHECK(all == all_but(2, {}));
}

TEST_CASE("litmus: SB with a seq_cst fence in one thread and seq_cst accesses in the other") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), fence(seq_cst), load(0, y, relaxed)}),
                                    in_turn({store(y, 1, seq_cst), load(1, x, seq_cst)})},
                                   registers(2));
  CHECK(all == all_but(2, {"00"}));
}

TEST_CASE(
    "litmus: SB with acq_rel additions to one object in between, one of the threads sees the other's store") {
  CHECK(store_buffering(relaxed, relaxed, {add(z, 0, acq_rel)}) == all_but(2, {"00"}));
  CHECK(store_buffering(relaxed, relaxed, {add(z, 0, acquire)}) == all_but(2, {}));
  CHECK(store_buffering(relaxed, relaxed, {add(z, 0, release)}) == all_but(2, {}));
}

TEST_CASE("litmus: SB of three threads, seq_cst") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, seq_cst), load(0, y, seq_cst)}),
                                    in_turn({store(y, 1, seq_cst), load(1, z, seq_cst)}),
                                    in_turn({store(z, 1, seq_cst), load(2, x, seq_cst)})},
                                   registers(3));
  CHECK(all == all_but(3, {"000"}));
}

// Independent reads of independent writes (IRIW).

outcomes independent_reads(order stored, order loaded, const std::vector<thread>& between = {}) {
  std::vector<thread> one{load(0, x, loaded)};
  std::vector<thread> other{load(2, y, loaded)};
  for (const thread& f : between) one.push_back(f);
  for (const thread& f : between) other.push_back(f);
  one.push_back(load(1, y, loaded));
  other.push_back(load(3, x, loaded));
  return outcomes_of({store(x, 1, stored), store(y, 1, stored), in_turn(one), in_turn(other)}, registers(4));
}

TEST_CASE("litmus: IRIW with release and acquire, the readers need not agree") {
  CHECK(independent_reads(release, acquire) == all_but(4, {}));
}

TEST_CASE("litmus: IRIW, seq_cst, the readers agree") {
  CHECK(independent_reads(seq_cst, seq_cst) == all_but(4, {"1010"}));
}

TEST_CASE("litmus: IRIW with seq_cst fences between the loads, the readers agree") {
  CHECK(independent_reads(relaxed, relaxed, {fence(seq_cst)}) == all_but(4, {"1010"}));
}

TEST_CASE("litmus: IRIW with seq_cst stores and acquire loads, the readers need not agree") {
  CHECK(independent_reads(seq_cst, acquire) == all_but(4, {}));
}

// Fences in the other tests.

TEST_CASE("litmus: MP with a release fence and an acquire fence, the data is there") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), fence(release), store(y, 1, relaxed)}),
                                    in_turn({load(0, y, relaxed), fence(acquire), load(1, x, relaxed)})},
                                   registers(2));
  CHECK(all == all_but(2, {"10"}));
}

TEST_CASE("litmus: MP with a fence on one side and an order on the other, the data is there") {
  const thread fenced_writer = in_turn({store(x, 1, relaxed), fence(release), store(y, 1, relaxed)});
  const thread writer = in_turn({store(x, 1, relaxed), store(y, 1, release)});
  const thread fenced_reader = in_turn({load(0, y, relaxed), fence(acquire), load(1, x, relaxed)});
  const thread reader = in_turn({load(0, y, acquire), load(1, x, relaxed)});
  CHECK(outcomes_of({fenced_writer, reader}, registers(2)) == all_but(2, {"10"}));
  CHECK(outcomes_of({writer, fenced_reader}, registers(2)) == all_but(2, {"10"}));
}

TEST_CASE("litmus: MP with one fence, or with the wrong ones, everything is allowed") {
  const auto with = [](const thread& written, const thread& read) {
    return outcomes_of({in_turn({store(x, 1, relaxed), written, store(y, 1, relaxed)}),
                        in_turn({load(0, y, relaxed), read, load(1, x, relaxed)})},
                       registers(2));
  };
  const thread none = [](world&) {};
  CHECK(with(fence(release), none) == all_but(2, {}));
  CHECK(with(none, fence(acquire)) == all_but(2, {}));
  CHECK(with(fence(acquire), fence(release)) == all_but(2, {}));
  CHECK(with(fence(seq_cst), fence(seq_cst)) == all_but(2, {"10"}));
}

TEST_CASE("litmus: MP, a release fence has no effect on what was stored before it") {
  const outcomes all = outcomes_of({in_turn({fence(release), store(x, 1, relaxed), store(y, 1, relaxed)}),
                                    in_turn({load(0, y, acquire), load(1, x, relaxed)})},
                                   registers(2));
  CHECK(all == all_but(2, {}));
}

outcomes r_test(order stored, order loaded, const thread& between) {
  return outcomes_of({in_turn({store(x, 1, stored), between, store(y, 1, stored)}),
                      in_turn({store(y, 2, stored), between, load(0, x, loaded)})},
                     [](const world& w) {
                       return digits({w.r[0], w.y.load()});
                     });
}

TEST_CASE("litmus: R, with release and acquire everything is allowed, with seq_cst or its fences it is not") {
  const thread nothing = [](world&) {};
  CHECK(r_test(release, acquire, nothing) == outcomes{"01", "02", "11", "12"});
  CHECK(r_test(relaxed, relaxed, fence(seq_cst)) == outcomes{"01", "11", "12"});
  CHECK(r_test(seq_cst, seq_cst, nothing) == outcomes{"01", "11", "12"});
}

TEST_CASE("litmus: 2+2W with seq_cst fences, the stores have an order") {
  const auto both = [](const thread& between) {
    return outcomes_of({in_turn({store(x, 1, relaxed), between, store(y, 2, relaxed)}),
                        in_turn({store(y, 1, relaxed), between, store(x, 2, relaxed)})},
                       [](const world& w) {
                         return digits({w.x.load(), w.y.load()});
                       });
  };
  CHECK(both(fence(seq_cst)) == outcomes{"12", "21", "22"});
  CHECK(both(fence(acq_rel)) == outcomes{"11", "12", "21", "22"});
}

TEST_CASE("litmus: RWC with seq_cst fences, which C++11 allowed and C++20 forbids") {
  const auto with = [](order between) {
    return outcomes_of(
        {store(x, 1, relaxed), in_turn({load(0, x, relaxed), fence(between), load(1, y, relaxed)}),
         in_turn({store(y, 1, relaxed), fence(between), load(2, x, relaxed)})},
        registers(3));
  };
  CHECK(with(seq_cst) == all_but(3, {"100"}));
  CHECK(with(acq_rel) == all_but(3, {}));
}

TEST_CASE("litmus: WRC with acq_rel fences, causes come before effects") {
  const outcomes all =
      outcomes_of({store(x, 1, relaxed), in_turn({load(0, x, relaxed), fence(acq_rel), store(y, 1, relaxed)}),
                   in_turn({load(1, y, relaxed), fence(acquire), load(2, x, relaxed)})},
                  registers(3));
  CHECK(all == all_but(3, {"110"}));
}

// The total order need not agree with what is not seq_cst.

TEST_CASE("litmus: Z6.U, which C++11 forbade and C++20 allows") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, seq_cst), store(y, 1, release)}),
                                    in_turn({add(0, y, 1, seq_cst), load(1, y, relaxed)}),
                                    in_turn({store(y, 3, seq_cst), load(2, x, seq_cst)})},
                                   registers(3));
  CHECK(all.contains("130"));
}

TEST_CASE("litmus: the total order need not agree with relaxed loads") {
  const auto after_a_flag = [](order stored, order loaded) {
    return outcomes_of({in_turn({store(x, 1, seq_cst), store(y, 1, stored)}),
                        in_turn({load(0, y, loaded), load(1, x, seq_cst)})},
                       registers(2));
  };
  CHECK(after_a_flag(relaxed, relaxed) == all_but(2, {}));
  CHECK(after_a_flag(release, acquire) == all_but(2, {"10"}));
}

TEST_CASE("litmus: RWC, seq_cst, one of the threads sees a store") {
  const outcomes all =
      outcomes_of({store(x, 1, seq_cst), in_turn({store(y, 1, seq_cst), load(0, x, seq_cst)}),
                   in_turn({load(1, x, seq_cst), load(2, y, seq_cst)})},
                  registers(3));
  CHECK(all == all_but(3, {"010"}));
}

TEST_CASE("litmus: without stale values, memory is sequentially consistent") {
  const thread one = in_turn({store(x, 1, relaxed), load(0, y, relaxed)});
  const thread other = in_turn({store(y, 1, relaxed), load(1, x, relaxed)});
  CHECK(outcomes_of({one, other}, registers(2), 0) == all_but(2, {"00"}));
  CHECK(outcomes_of({one, other}, registers(2), 1) == all_but(2, {}));
}

}  // namespace interleavings_litmus_order
