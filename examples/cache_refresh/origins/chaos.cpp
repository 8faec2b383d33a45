// An origin that misbehaves on purpose.
#include "../origin.hpp"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <utility>

namespace cache_refresh {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

bool is_down(const chaos_options& options, rondo::duration since_calm) {
  if (since_calm < 0s) return false;
  switch (options.kind) {
    case chaos::down:
      return since_calm / 15s % 2 == 0;
    case chaos::flap:
      return since_calm / 2s % 2 == 0;
    default:
      return false;
  }
}

class chaotic_connection final : public origin_connection {
 public:
  chaotic_connection(std::unique_ptr<origin_connection> real, const chaos_options& options,
                     clock::time_point start, std::uint64_t seed)
      : real_(std::move(real)), options_(options), start_(start), random_(seed) {}

  answer load(const std::string& key, const record* held, rondo::duration limit) override {
    if (percent() < options_.fail_percent) throw origin_error("failed on purpose (--fail-percent)");
    const rondo::duration since_calm = clock::now() - start_ - options_.calm;
    if (is_down(options_, since_calm)) throw origin_error("down on purpose (--chaos)");
    if (since_calm >= 0s && options_.kind == chaos::slow && percent() < 50) take_time(limit);
    answer got = real_->load(key, held, limit);
    if (since_calm >= 0s && options_.kind == chaos::wrong && percent() < 33) spoil(got);
    return got;
  }

 private:
  unsigned percent() { return std::uniform_int_distribution<unsigned>(0, 99)(random_); }

  void take_time(rondo::duration limit) {
    const auto longer = std::chrono::milliseconds(std::uniform_int_distribution<>(100, 3000)(random_));
    std::this_thread::sleep_for(std::min<rondo::duration>(longer, limit));
    if (longer >= limit) throw origin_error("slow on purpose (--chaos)");
  }

  void spoil(answer& got) {
    if (got.changed && percent() < 50) {
      got.changed = record{};
    } else {
      got.ttl.soft = 0s;
    }
  }

  const std::unique_ptr<origin_connection> real_;
  const chaos_options options_;
  const clock::time_point start_;
  std::mt19937_64 random_;
};

class chaotic_origin final : public origin {
 public:
  chaotic_origin(origin& real, const chaos_options& options) : real_(real), options_(options) {}

  std::string name() const override { return real_.name(); }
  std::vector<std::string> keys(std::size_t most) override { return real_.keys(most); }
  std::unique_ptr<origin_editor> edit() override { return real_.edit(); }
  std::unique_ptr<origin_news> watch(std::function<void(const std::string&)> changed) override {
    return real_.watch(std::move(changed));
  }
  std::unique_ptr<origin_connection> connect() override {
    return std::make_unique<chaotic_connection>(real_.connect(), options_, start_,
                                                options_.seed + ++connections_);
  }

 private:
  origin& real_;
  const chaos_options options_;
  const clock::time_point start_ = clock::now();
  std::atomic<std::uint64_t> connections_{0};
};

}  // namespace

std::unique_ptr<origin> with_chaos(origin& real, const chaos_options& options) {
  return std::make_unique<chaotic_origin>(real, options);
}

}  // namespace cache_refresh
