#include <rondo/job.hpp>

#include <utility>

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

}  // namespace rondo
