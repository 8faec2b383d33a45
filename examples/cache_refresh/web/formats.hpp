// The figures as text: JSON for the page, and for Prometheus.
#pragma once

#include <string>
#include <vector>

#include "../snapshot.hpp"

namespace cache_refresh {

struct health {
  bool good = true;
  std::string line;  // "ok", or what is wrong
};

// Healthy if the share of keys that are stale or have no value does not exceed the limit. A cache without keys is
// healthy, because nobody has asked it for anything.
health judge(const key_counts&, double stale_limit);

// What the page tells at first sight.
enum class grade {
  good,
  part,   // more keys than the limit are stale, empty or failing
  outage  // at least ten loads have failed in a row, over at least five seconds
};
grade grade_of(const snapshot&, double stale_limit);

// These return JSON. The names are those of the structures; durations are in seconds, and null if there are none.
std::string state_json(const snapshot&, const wheel_picture&, double stale_limit);
std::string failing_json(const failing_keys&);
std::string late_json(const std::vector<late_reason>&);
std::string history_json(const std::vector<history::sample>&);  // an array for each field

// For Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/), in text format 0.0.4.
// Durations are in seconds. No label contains a key, so the number of series never changes.
std::string prometheus_text(const snapshot&);

}  // namespace cache_refresh
