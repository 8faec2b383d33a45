// For the messages of a simulation.
#pragma once

#include <string>

#include "durable/engine.hpp"
#include "durable/row.hpp"
#include "durable/simulated_database.hpp"

namespace durable_test {

std::string text_of(const row& r);
std::string text_of(const rondo::durable::detail::turn& t);
/// Of all rows: " 17/3 ...", id and fence.
std::string text_of_rows(const simulated_copy& all);
/// What a session has; "r" after what it runs.
std::string text_of_claims(const simulated_database& of, const std::string& owner);

}  // namespace durable_test
