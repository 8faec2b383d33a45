// For the messages of a simulation.
#pragma once

#include <string>

#include "durable/engine.hpp"
#include "durable/row.hpp"
#include "durable/simulated_database.hpp"

namespace durable_test {

std::string text_of(const row& r);
std::string text_of(const rondo::durable::detail::turn& t);
/// What a session has; "r" after what it runs.
std::string text_of_claims(const simulated_database& of, const std::string& owner);

}  // namespace durable_test
