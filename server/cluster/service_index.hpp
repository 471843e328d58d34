// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/facts.hpp"

namespace rayhook {

/// The headless Services beside which pods are cared for, by namespace. Others are not kept: a
/// cluster may have a hundred thousand. A plain value.
class CaredServices {
 public:
  /// `policy` must outlive it.
  explicit CaredServices(const Policy& policy) : policy_(&policy) {}

  /// Takes in a Service as the API server has it now: one of no concern is forgotten.
  void put(Service service);
  void remove(std::string_view ns, std::string_view name);

  [[nodiscard]] const ServiceFact* find(std::string_view ns, std::string_view name) const;
  /// All of a namespace, or nullptr.
  [[nodiscard]] const std::vector<ServiceFact>* of(std::string_view ns) const;
  /// Namespaces with a Service that Rayhook converted.
  [[nodiscard]] std::vector<std::string> converted_namespaces() const;
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  const Policy* policy_;
  std::unordered_map<std::string, std::vector<ServiceFact>> by_namespace_;
  std::size_t size_ = 0;
};

/// The same, written by the watch and read by all threads. Thread-safe.
class ServiceIndex {
 public:
  /// `policy` must outlive it.
  explicit ServiceIndex(const Policy& policy) : services_(policy) {}

  void put(Service service);
  void remove(std::string_view ns, std::string_view name);
  /// After a list: what is there is now this.
  void replace(CaredServices services);

  [[nodiscard]] std::optional<ServiceFact> find(std::string_view ns, std::string_view name) const;
  [[nodiscard]] std::vector<ServiceFact> of(std::string_view ns) const;
  [[nodiscard]] std::vector<std::string> converted_namespaces() const;
  [[nodiscard]] std::size_t size() const;

 private:
  mutable std::shared_mutex mutex_;
  CaredServices services_;
};

}  // namespace rayhook
