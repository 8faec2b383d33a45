#include <rondo/detail/wheel_core.hpp>

#include <stdexcept>
#include <string>

namespace rondo::detail {

std::size_t checked_buckets(std::size_t buckets) {
  if (buckets == 0 || buckets > max_buckets)
    throw std::invalid_argument("rondo: buckets must be 1 … " + std::to_string(max_buckets) + ", not " +
                                std::to_string(buckets));
  return std::bit_ceil(buckets);
}

}  // namespace rondo::detail
