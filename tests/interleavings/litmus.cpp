// The litmus tests of the literature: each with all outcomes that C++20 allows, so that those it forbids do not occur.
// Their names are those of Alglave, Maranget and Tautschnig, "Herding cats" (2014), table III, and of Maranget, Sarkar and
// Sewell, "A tutorial introduction to the ARM and POWER relaxed memory models" (2012). What C++20 says about them is in
// Batty, Owens, Sarkar, Sewell and Weber, "Mathematizing C++ concurrency" (2011), and Lahav, Vafeiadis, Kang, Hur and
// Dreyer, "Repairing sequential consistency in C/C++11" (2017), in short RC11; the latter is in C++20 since P0668.
#include "interleavings/litmus.hpp"

namespace interleavings_litmus {

using namespace rondo::test;
using namespace rondo::test::litmus;

constexpr variable x = &world::x, y = &world::y, z = &world::z;

// Coherence: all accesses to one object agree on the order of its values. [intro.races]/15-18

TEST_CASE("litmus: CoRR, a thread never reads an earlier value after a later one") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), store(x, 2, relaxed)}),
                                    in_turn({load(0, x, relaxed), load(1, x, relaxed)})},
                                   registers(2));
  CHECK(all == outcomes{"00", "01", "02", "11", "12", "22"});
}

TEST_CASE("litmus: CoRR with two writers, readers agree on the order") {
  const outcomes all = outcomes_of(
      {store(x, 1, relaxed), store(x, 2, relaxed), in_turn({load(0, x, relaxed), load(1, x, relaxed)}),
       in_turn({load(2, x, relaxed), load(3, x, relaxed)})},
      registers(4));
  CHECK(!all.contains("1221"));
  CHECK(!all.contains("2112"));
  outcomes
      expected;  // any two pairs of which each is in one of the orders 0 1 2 and 0 2 1, and both in the same
  for (const std::string values : {"012", "021"})
    for (std::size_t bits = 0; bits != 81; ++bits) {
      const std::array<std::size_t, 4> at{bits % 3, bits / 3 % 3, bits / 9 % 3, bits / 27};
      if (at[0] <= at[1] && at[2] <= at[3])
        expected.insert({values[at[0]], values[at[1]], values[at[2]], values[at[3]]});
    }
  CHECK(all == expected);
}

TEST_CASE("litmus: CoWR, a thread reads its own value or a later one") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), load(0, x, relaxed)}),
                                    in_turn({store(x, 2, relaxed), load(1, x, relaxed)})},
                                   registers(2));
  CHECK(all == outcomes{"11", "12", "22"});
}

TEST_CASE("litmus: CoRW, what a thread stores comes after what it has read") {
  const outcomes all = outcomes_of(
      {in_turn({load(0, x, relaxed), store(x, 1, relaxed)}), store(x, 2, relaxed)}, [](const world& w) {
        return digits({w.r[0], w.x.load()});
      });
  CHECK(all == outcomes{"01", "02", "21"});
}

TEST_CASE("litmus: CoWW, what a thread stores comes in that order") {
  const outcomes all =
      outcomes_of({in_turn({store(x, 1, relaxed), store(x, 2, relaxed)}), load(0, x, relaxed)},
                  [](const world& w) { return digits({w.x.load()}); });
  CHECK(all == outcomes{"2"});
}

// Message passing (MP): x is the data, y says that it is there.

outcomes message_passing(order stored, order loaded) {
  return outcomes_of({in_turn({store(x, 1, relaxed), store(y, 1, stored)}),
                      in_turn({load(0, y, loaded), load(1, x, relaxed)})},
                     registers(2));
}

TEST_CASE("litmus: MP, relaxed, everything is allowed") {
  CHECK(message_passing(relaxed, relaxed) == all_but(2, {}));
}

TEST_CASE("litmus: MP with release and acquire, the data is there") {
  CHECK(message_passing(release, acquire) == all_but(2, {"10"}));
  CHECK(message_passing(seq_cst, seq_cst) == all_but(2, {"10"}));
}

TEST_CASE("litmus: MP with release but without acquire, everything is allowed") {
  CHECK(message_passing(release, relaxed) == all_but(2, {}));
}

TEST_CASE("litmus: MP with acquire but without release, everything is allowed") {
  CHECK(message_passing(relaxed, acquire) == all_but(2, {}));
}

TEST_CASE("litmus: MP, a read-modify-write that only acquires does not release, nor the other way round") {
  const auto by_adding = [](order adds, order found) {
    return outcomes_of({in_turn({store(x, 1, relaxed), add(y, 1, adds)}),
                        in_turn({add(0, y, 0, found), load(1, x, relaxed)})},
                       registers(2));
  };
  CHECK(by_adding(acquire, acquire) == all_but(2, {}));
  CHECK(by_adding(release, release) == all_but(2, {}));
  CHECK(by_adding(release, acquire) == all_but(2, {"10"}));
}

TEST_CASE("litmus: MP by a lock, the data is there") {
  CHECK(outcomes_of({in_turn({store(x, 1, relaxed), locked(store(y, 1, relaxed))}),
                     in_turn({locked(load(0, y, relaxed)), load(1, x, relaxed)})},
                    registers(2)) == all_but(2, {"10"}));
}

// Release sequences: [intro.races]/5, as changed by P0982 in C++20.

TEST_CASE("litmus: a read-modify-write of another thread continues a release sequence") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), store(y, 1, release)}), add(y, 1, relaxed),
                                    in_turn({load(0, y, acquire), load(1, x, relaxed)})},
                                   registers(2));
  // y is 1 after the addition alone or after the store alone
  CHECK(all == outcomes{"00", "01", "10", "11", "21"});
}

TEST_CASE("litmus: a later relaxed store of the same thread begins no release sequence") {
  const outcomes all =
      outcomes_of({in_turn({store(x, 1, relaxed), store(y, 1, release), store(y, 2, relaxed)}),
                   in_turn({load(0, y, acquire), load(1, x, relaxed)})},
                  registers(2));
  CHECK(all == outcomes{"00", "01", "11", "20", "21"});
}

TEST_CASE("litmus: a store of another thread ends a release sequence") {
  const outcomes all =
      outcomes_of({in_turn({store(x, 1, relaxed), store(y, 1, release)}), store(y, 2, relaxed),
                   in_turn({load(0, y, acquire), load(1, x, relaxed)})},
                  registers(2));
  CHECK(all == outcomes{"00", "01", "11", "20", "21"});
}

TEST_CASE("litmus: a chain of read-modify-writes hands over what each has released") {
  const outcomes all = outcomes_of({in_turn({store(x, 1, relaxed), add(y, 1, release)}),
                                    in_turn({store(z, 1, relaxed), add(y, 1, release)}),
                                    in_turn({load(0, y, acquire), load(1, x, relaxed), load(2, z, relaxed)})},
                                   registers(3));
  CHECK(all == outcomes{"000", "001", "010", "011", "101", "110", "111", "211"});
}

// Atomicity of read-modify-writes: [atomics.order]/10

TEST_CASE("litmus: no relaxed addition is lost") {
  const outcomes all =
      outcomes_of({add(0, x, 1, relaxed), add(1, x, 1, relaxed), add(2, x, 1, relaxed)}, [](const world& w) {
        return digits({w.r[0] + w.r[1] + w.r[2], w.x.load()});
      });
  CHECK(all == outcomes{"33"});  // 0 + 1 + 2
}

TEST_CASE("litmus: of two relaxed compare-and-exchanges one succeeds, and the other finds its value") {
  const auto try_it = [](std::size_t thread, int value) {
    return [=](world& w) {
      int found = 0;
      w.r[2 * thread] = w.x.compare_exchange_strong(found, value, relaxed, relaxed) ? 1 : 0;
      w.r[2 * thread + 1] = found;
    };
  };
  CHECK(outcomes_of({try_it(0, 1), try_it(1, 2)}, registers(4)) == outcomes{"1001", "0210"});
}

TEST_CASE("litmus: a store comes before or after a read-modify-write, not between what it reads and writes") {
  const outcomes all = outcomes_of({add(0, x, 1, relaxed), store(x, 4, relaxed)}, [](const world& w) {
    return digits({w.r[0], w.x.load()});
  });
  CHECK(all == outcomes{"04", "45"});
}

TEST_CASE("litmus: a compare-and-exchange that fails has its own order") {
  const auto message = [](order failure) {
    const thread fail = [=](world& w) {
      int expected = 7;
      w.y.compare_exchange_strong(expected, 8, relaxed, failure);
      w.r[0] = expected;
    };
    return outcomes_of(
        {in_turn({store(x, 1, relaxed), store(y, 1, release)}), in_turn({fail, load(1, x, relaxed)})},
        registers(2));
  };
  CHECK(message(acquire) == all_but(2, {"10"}));
  CHECK(message(relaxed) == all_but(2, {}));
}

// More threads: write-to-read causality (WRC), ISA2, and two writes that meet a read (S).

outcomes causality(order stored, order loaded) {
  return outcomes_of({store(x, 1, relaxed), in_turn({load(0, x, loaded), store(y, 1, stored)}),
                      in_turn({load(1, y, loaded), load(2, x, relaxed)})},
                     registers(3));
}

TEST_CASE("litmus: WRC, relaxed, everything is allowed") {
  CHECK(causality(relaxed, relaxed) == all_but(3, {}));
}

TEST_CASE("litmus: WRC with release and acquire, causes come before effects") {
  CHECK(causality(release, acquire) == all_but(3, {"110"}));
}

outcomes isa2(order stored, order loaded) {
  return outcomes_of({in_turn({store(x, 1, relaxed), store(y, 1, stored)}),
                      in_turn({load(0, y, loaded), store(z, 1, stored)}),
                      in_turn({load(1, z, loaded), load(2, x, relaxed)})},
                     registers(3));
}

TEST_CASE("litmus: ISA2, relaxed, everything is allowed") { CHECK(isa2(relaxed, relaxed) == all_but(3, {})); }

TEST_CASE("litmus: ISA2 with release and acquire, a message passes through a thread") {
  CHECK(isa2(release, acquire) == all_but(3, {"110"}));
}

outcomes s_test(order stored, order loaded) {
  return outcomes_of({in_turn({store(x, 2, relaxed), store(y, 1, stored)}),
                      in_turn({load(0, y, loaded), store(x, 1, relaxed)})},
                     [](const world& w) {
                       return digits({w.r[0], w.x.load()});
                     });
}

TEST_CASE("litmus: S, relaxed, a store may come before one whose message was read") {
  CHECK(s_test(relaxed, relaxed) == outcomes{"01", "02", "11", "12"});
}

TEST_CASE("litmus: S with release and acquire, it comes after") {
  CHECK(s_test(release, acquire) == outcomes{"01", "02", "11"});
}

// Load buffering (LB).

outcomes load_buffering(order stored, order loaded) {
  return outcomes_of({in_turn({load(0, x, loaded), store(y, 1, stored)}),
                      in_turn({load(1, y, loaded), store(x, 1, stored)})},
                     registers(2));
}

TEST_CASE("litmus: LB with release and acquire, not both loads read what comes later") {
  CHECK(load_buffering(release, relaxed) == all_but(2, {"11"}));
  CHECK(load_buffering(relaxed, acquire) == all_but(2, {"11"}));
}

/// C++20 also allows "11" here. This is the outcome that the model leaves out, as RC11 does.
TEST_CASE("litmus: LB, relaxed, the model leaves out that both loads read what comes later") {
  CHECK(load_buffering(relaxed, relaxed) == all_but(2, {"11"}));
}

TEST_CASE("litmus: LB with dependencies, no value comes out of thin air") {
  const auto copy = [](std::size_t into, variable from, variable to) {
    return [=](world& w) { (w.*to).store(w.r[into] = (w.*from).load(relaxed), relaxed); };
  };
  CHECK(outcomes_of({copy(0, x, y), copy(1, y, x)}, registers(2)) == outcomes{"00"});
}

// Two writes each (2+2W): the outcome 1, 1 is that each object has the value that was stored to it first.

outcomes two_plus_two_writes(order stored) {
  return outcomes_of({in_turn({store(x, 1, stored), store(y, 2, stored)}),
                      in_turn({store(y, 1, stored), store(x, 2, stored)})},
                     [](const world& w) {
                       return digits({w.x.load(), w.y.load()});
                     });
}

TEST_CASE("litmus: 2+2W, relaxed or released, everything is allowed") {
  CHECK(two_plus_two_writes(relaxed) == outcomes{"11", "12", "21", "22"});
  CHECK(two_plus_two_writes(release) == outcomes{"11", "12", "21", "22"});
}

TEST_CASE("litmus: 2+2W, seq_cst, the stores have an order") {
  CHECK(two_plus_two_writes(seq_cst) == outcomes{"12", "21", "22"});
}

}  // namespace interleavings_litmus
