// Statements name the states of rows.
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>

#include "durable/engine.hpp"
#include "durable/text.hpp"

namespace durable_statements {

using namespace rondo::durable;
using detail::row_state;
using detail::with_states;

std::string number_of(row_state s) { return std::to_string(static_cast<int>(s)); }

TEST_CASE("a statement has the numbers of the states that it names") {
  CHECK(with_states("{waiting}{held}{running}{dead}{cancelled}{in_lane}{behind}") == "0123456");
  CHECK(with_states("{held}") == number_of(row_state::held));
  CHECK(with_states("{dead}") == number_of(row_state::dead));
  CHECK(with_states("{behind}") == number_of(row_state::behind));
  CHECK(with_states("state in ({claimed}) and state = {running}") == "state in (1, 2, 4) and state = 2");
  CHECK(with_states("({any_waiting}) ({not_begun}) ({begun})") == "(0, 5, 6) (0, 1, 5, 6) (2, 4)");
  CHECK(with_states("select 1") == "select 1");
  CHECK(with_states("") == "");
}

TEST_CASE("a statement that names no state in braces is refused, with the name") {
  CHECK_THROWS_WITH_AS(with_states("state = {runing}"), "rondo: no state has the name runing",
                       std::logic_error);
  CHECK_THROWS_AS(with_states("state = {}"), std::logic_error);
  CHECK_THROWS_AS(with_states("state = {held"), std::logic_error);
  CHECK_THROWS_AS(with_states("{"), std::logic_error);
}

TEST_CASE("list() shows every state of a row") {
  using detail::task_state_of;
  CHECK(task_state_of(static_cast<int>(row_state::waiting)) == task_state::waiting);
  CHECK(task_state_of(static_cast<int>(row_state::held)) == task_state::held);
  CHECK(task_state_of(static_cast<int>(row_state::running)) == task_state::running);
  CHECK(task_state_of(static_cast<int>(row_state::dead)) == task_state::dead);
  CHECK(task_state_of(static_cast<int>(row_state::cancelled)) == task_state::running);
  CHECK(task_state_of(static_cast<int>(row_state::in_lane)) == task_state::waiting);
  CHECK(task_state_of(static_cast<int>(row_state::behind)) == task_state::waiting);
  CHECK_THROWS(task_state_of(7));
}

}  // namespace durable_statements
