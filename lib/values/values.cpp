// What the headers of the values leave to the library: the ends of jobs, texts, and the exceptions. (Headers contain no
// `throw`, so that they compile under -fno-exceptions.)
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <rondo/detail/checks.hpp>
#include <rondo/errors.hpp>
#include <rondo/executor.hpp>
#include <rondo/job.hpp>
#include <rondo/task.hpp>
#include <rondo/time.hpp>
#include <rondo/timer_id.hpp>

#include "values/readable.hpp"

namespace rondo {

job::job(std::shared_ptr<detail::job_host> host, const detail::job_ticket& ticket) noexcept
    : host_(std::move(host)), ticket_(ticket) {}

job& job::operator=(job&& other) noexcept {
  if (this != &other) {
    drop();
    host_ = std::move(other.host_);
    ticket_ = other.ticket_;
  }
  return *this;
}

job::~job() { drop(); }

void job::operator()() noexcept {
  // The job is spent before the task runs, because the task may destroy it.
  const auto host = std::exchange(host_, nullptr);
  if (host == nullptr) return;
  const detail::job_ticket ticket = ticket_;
  host->start(ticket);
}

void job::drop() noexcept {
  const auto host = std::exchange(host_, nullptr);
  if (host != nullptr) host->drop(ticket_);
}

on::on(executor where) {
  if (!where) throw std::invalid_argument("rondo: the executor is null");
  where_ = std::make_shared<const executor>(std::move(where));
}

on::operator timer_options() const {
  return {.run_on = [shared = where_](job j) { (*shared)(std::move(j)); }};
}

std::string to_string(const timer_id& id) {
  if (id == timer_id()) return "no timer";
  const auto& [scheduler, slot, generation] = id.parts_;
  return std::to_string(scheduler) + '.' + std::to_string(slot) + '.' + std::to_string(generation);
}

namespace detail {

std::string readable(duration d) {
  struct unit {
    std::uint64_t length;
    const char* name;
  };
  static constexpr std::array<unit, 7> units{{{86'400'000'000'000, "d"},
                                              {3'600'000'000'000, "h"},
                                              {60'000'000'000, "min"},
                                              {1'000'000'000, "s"},
                                              {1'000'000, "ms"},
                                              {1'000, "µs"},
                                              {1, "ns"}}};
  const auto value = static_cast<std::uint64_t>(d.count());
  const unit* u = units.data();
  while (u->length > value && u->length != 1) ++u;
  const std::uint64_t whole = value / u->length;
  const std::uint64_t hundredths = value % u->length * 100 / u->length;
  std::string decimals = std::to_string(100 + hundredths).substr(1, whole < 10 ? 2 : whole < 100 ? 1 : 0);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return std::to_string(whole) + (decimals.empty() ? "" : '.' + decimals) + ' ' + u->name;
}

std::string readable(timer_id id, std::string_view name) {
  std::string text = "timer " + to_string(id);
  if (name.empty()) return text;
  std::string line(name);
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return text + " \"" + line + '"';
}

void die(const std::string& what) noexcept {
  static_cast<void>(std::fprintf(stderr, "rondo: %s\n", what.c_str()));
  std::abort();
}

void refuse_nan() { throw std::invalid_argument("rondo: a duration is not a number (NaN)"); }

void refuse_empty_task() { throw std::invalid_argument("rondo: the task is empty"); }

void refuse_empty_call() { throw std::bad_function_call(); }

void refuse_system(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace detail

}  // namespace rondo
