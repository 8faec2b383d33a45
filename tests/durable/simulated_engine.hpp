// What a simulated database does for stores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/durable.hpp>

#include "durable/engine.hpp"
#include "durable/simulated_transaction.hpp"

namespace durable_test {

rondo::durable::task task_of(const row& r);

class simulated_engine final : public rondo::durable::detail::engine {
 public:
  explicit simulated_engine(std::shared_ptr<simulated_data> data) : data_(std::move(data)) {}

  using due_time = rondo::durable::detail::due_time;
  using transaction = rondo::durable::transaction;

  std::int64_t submit(const due_time& due, const rondo::durable::submission& what,
                      const transaction* in) override;
  std::vector<std::int64_t> submit_all(std::span<const rondo::durable::planned> all,
                                       const transaction* in) override;
  std::int64_t repeat(const rondo::durable::repeated& what, const transaction* in) override;
  bool cancel(std::int64_t id, const transaction* in) override;
  bool cancel(const std::string& queue, const std::string& key, const transaction* in) override;
  bool reschedule(std::int64_t id, const due_time& due, const transaction* in) override;
  bool reschedule(const std::string& queue, const std::string& key, const due_time& due,
                  const transaction* in) override;
  std::optional<rondo::durable::task> find(std::int64_t id, const transaction* in) override;
  std::optional<rondo::durable::task> find(const std::string& queue, const std::string& key,
                                           const transaction* in) override;
  void pause(const std::string& queue) override;
  void resume(const std::string& queue) override;
  bool paused(const std::string& queue) override;
  std::vector<rondo::durable::listed> list(const std::string& queue,
                                           std::optional<rondo::durable::task_state> only,
                                           std::int64_t after_id, std::size_t limit) override;
  bool retry(std::int64_t id) override;
  std::unique_ptr<rondo::durable::detail::session> connect(
      const std::string& owner, const rondo::durable::detail::claim_rules& rules) override;

 private:
  template <class Function>
  auto change(const transaction* in, Function f);
  template <class Function>
  auto read(const transaction* in, Function f);

  std::shared_ptr<simulated_data> data_;
};

}  // namespace durable_test
