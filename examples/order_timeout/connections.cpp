#include "connections.hpp"

#include <stdexcept>

namespace order_timeout {

std::unique_ptr<database> database::open(const std::string& store) {
  std::unique_ptr<database> opened = open_sqlite(store);
#ifdef WITH_POSTGRESQL
  if (opened == nullptr) opened = open_postgresql(store);
#endif
  if (opened == nullptr)
    throw std::runtime_error("this program was built without support for this kind of --store");
  return opened;
}

std::unique_ptr<database> connections::take() {
  {
    const std::lock_guard guard(lock_);
    if (!free_.empty()) {
      std::unique_ptr<database> last = std::move(free_.back());
      free_.pop_back();
      return last;
    }
  }
  return database::open(store_);
}

void connections::give_back(std::unique_ptr<database> used) {
  const std::lock_guard guard(lock_);
  free_.push_back(std::move(used));
}

}  // namespace order_timeout
