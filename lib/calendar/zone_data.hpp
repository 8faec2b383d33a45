// Time zones by name: the system's zone data, in the state that this process uses.
#pragma once

#include <atomic>
#include <functional>
#include <istream>
#include <memory>
#include <string>

#include "calendar/zone_offsets.hpp"

namespace rondo::detail {

/// A zone that calendars use, which lives as long as the process. So do the offsets that it once had: a call that uses them
/// may be in progress, and timers ask later what they were.
class zone {
 public:
  explicit zone(const zone_offsets& o) noexcept : offsets_(&o) {}

  const zone_offsets& offsets() const noexcept { return *offsets_.load(std::memory_order_acquire); }
  void change(const zone_offsets& to) noexcept { offsets_.store(&to, std::memory_order_release); }

 private:
  std::atomic<const zone_offsets*> offsets_;
};

const zone& utc();

/// Reads the data of all zones, if the process has not. Throws as daily() does.
const zone& find_zone(const std::string& name);

/// Registers a listener for refresh_zone_data(), as wall_clock::on_step() does.
std::shared_ptr<void> on_new_zone_data(std::function<void()> taken_over);

/// Returns the name that has replaced an old one, as the database's text, tzdata.zi, says. Returns an empty string if the
/// text does not say so.
std::string newer_name(std::istream& text, const std::string& old);

/// The version that the database's text says in its first line; empty if that says none.
std::string version_in(std::istream& text);

/// The zone that a value of the environment variable TZ names. Throws std::runtime_error if it names none.
std::string zone_in(const std::string& tz);

}  // namespace rondo::detail
