#include "durable/postgresql/pipeline.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <poll.h>

#include "durable/text.hpp"

namespace rondo::durable::detail::postgresql {

namespace {

std::string quoted(const std::string& text) {
  std::string in_quotes = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') in_quotes += '\\';
    in_quotes += c;
  }
  return in_quotes + '"';
}

template <class Values, class ToText>
std::string array(const Values& values, ToText to_text) {
  std::string literal = "{";
  for (const auto& value : values) {
    if (literal.size() > 1) literal += ',';
    literal += to_text(value);
  }
  return literal + '}';
}

template <class Integer>
void add_big_endian(std::string& to, Integer value) {
  for (int shift = 8 * int{sizeof(value)} - 8; shift >= 0; shift -= 8)
    to += static_cast<char>(static_cast<std::make_unsigned_t<Integer>>(value) >> shift);
}

/// `element` is the number of the elements' type.
std::string binary_array(std::int32_t element, const std::vector<std::string_view>& values,
                         bool empty_is_null) {
  std::string bytes;
  const auto count = static_cast<std::int32_t>(values.size());
  constexpr std::int32_t dimensions = 1;
  constexpr std::int32_t first_subscript = 1;
  const std::int32_t may_have_nulls = empty_is_null ? 1 : 0;
  for (const std::int32_t part : {dimensions, may_have_nulls, element, count, first_subscript})
    add_big_endian(bytes, part);
  for (const std::string_view value : values) {
    const bool null = empty_is_null && value.empty();
    add_big_endian(bytes, null ? -1 : static_cast<std::int32_t>(value.size()));
    bytes += value;
  }
  return bytes;
}

}  // namespace

parameters& parameters::integer(std::int64_t value) { return add(std::to_string(value), false); }
parameters& parameters::boolean(bool value) { return add(value ? "t" : "f", false); }
parameters& parameters::text(std::string value) { return add(std::move(value), false); }
parameters& parameters::bytes(std::string value) { return add(std::move(value), true); }
parameters& parameters::null() { return add(std::nullopt, false); }

parameters& parameters::integers(const std::vector<std::int64_t>& values) {
  return text(array(values, [](std::int64_t value) { return std::to_string(value); }));
}

// A server with array_nulls = off takes NULL in the text of an array for a value. 20 is bigint, in every server.
parameters& parameters::integers(const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<std::string> bytes(values.size());
  for (std::size_t i = 0; i != values.size(); ++i)
    if (values[i]) add_big_endian(bytes[i], *values[i]);
  return add(binary_array(20, {bytes.begin(), bytes.end()}, true), true);
}

parameters& parameters::texts(const std::vector<std::string>& values) { return text(array(values, quoted)); }

parameters& parameters::booleans(const std::vector<bool>& values) {
  return text(array(values, [](bool value) { return std::string(value ? "t" : "f"); }));
}

// 25 is text and 17 is bytea, in every server.
parameters& parameters::texts_or_nulls(const std::vector<std::string_view>& values) {
  return add(binary_array(25, values, true), true);
}
parameters& parameters::byte_strings(const std::vector<std::string_view>& values) {
  return add(binary_array(17, values, false), true);
}

std::vector<const char*> parameters::pointers() const {
  std::vector<const char*> all;
  all.reserve(values_.size());
  for (const auto& value : values_) all.push_back(value.has_value() ? value->c_str() : nullptr);
  return all;
}

parameters& parameters::add(std::optional<std::string> value, bool is_binary) {
  lengths_.push_back(value.has_value() ? static_cast<int>(value->size()) : 0);
  formats_.push_back(is_binary ? 1 : 0);
  values_.push_back(std::move(value));
  return *this;
}

bool pipeline::send(const char* text) {
  sent_.push_back({});
  return PQsendQueryParams(connection_, text, 0, nullptr, nullptr, nullptr, nullptr, 1) != 0;
}

bool pipeline::send(const statement& what, const parameters& with) {
  const auto being_prepared = [&](const sent& s) { return s.prepares == &what; };
  if (!prepared_.contains(&what) && std::none_of(sent_.begin(), sent_.end(), being_prepared)) {
    sent_.push_back({.prepares = &what});
    if (PQsendPrepare(connection_, what.name, with_states(what.text).c_str(), 0, nullptr) == 0) return false;
  }
  sent_.push_back({.wanted = true});
  const auto values = with.pointers();
  return PQsendQueryPrepared(connection_, what.name, with.count(), values.data(), with.lengths().data(),
                             with.formats().data(), 1) != 0;
}

bool answer_comes(PGconn* on, std::chrono::milliseconds within) noexcept {
  auto until = std::chrono::steady_clock::now() + within;
  while (PQisBusy(on) != 0) {
    const short writing = PQflush(on) == 1 ? POLLOUT : 0;
    pollfd socket{.fd = PQsocket(on), .events = static_cast<short>(POLLIN | writing), .revents = 0};
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (rest.count() <= 0) return false;
    if (::poll(&socket, 1, static_cast<int>(rest.count())) <= 0) continue;
    until = std::chrono::steady_clock::now() + within;  // data flows
    if ((socket.revents & ~POLLOUT) != 0 && PQconsumeInput(on) == 0)
      return true;  // PQgetResult() reports what is wrong
  }
  return true;
}

/// libpq marks the end of each answer with a null result.
result pipeline::next() {
  const auto one = [&] {
    if (!silent_ && !answer_comes(connection_, within_)) silent_ = true;
    return silent_ ? result() : result(PQgetResult(connection_));
  };
  result answer = one();
  while (answer && PQstatus(connection_) == CONNECTION_OK && one()) {
  }
  return answer;
}

std::vector<result> pipeline::answers(std::chrono::milliseconds within) {
  within_ = within;
  std::vector<result> wanted;
  for (const auto& each : sent_) {
    auto answer = next();
    if (silent_) return wanted;
    if (!answer.good()) {
      // After an error the server skips the rest, and libpq reports that in place of each answer.
      if (!wrong_.has_value()) wrong_ = std::move(answer);
      if (PQstatus(connection_) != CONNECTION_OK) return wanted;
    } else if (each.wanted) {
      wanted.push_back(std::move(answer));
    } else if (each.prepares != nullptr) {
      prepared_.insert(each.prepares);
    }
  }
  const bool good = !wrong_.has_value();
  read_end();
  wrong_at_the_end_ = good && wrong_.has_value();
  return wanted;
}

/// The transaction is committed at the end of the pipeline, so an error that comes now is one of the commit.
void pipeline::read_end() {
  for (int results = 0; results != 4; ++results) {  // the error, the null after it, the end
    if (!answer_comes(connection_, within_)) {
      silent_ = true;
      return;
    }
    result one(PQgetResult(connection_));
    if (PQresultStatus(one.get()) == PGRES_PIPELINE_SYNC) break;
    if (one && !wrong_.has_value()) wrong_ = std::move(one);
  }
  if (PQexitPipelineMode(connection_) == 0 && !wrong_.has_value()) wrong_.emplace();
}

}  // namespace rondo::durable::detail::postgresql
