#pragma once
// cuDNN's graph interface: tensors and operations are described, the library says which of its kernels
// compute them all at once, and those run as often as wanted. Only what attention_cudnn.cpp needs. [NVIDIA
// cuDNN documentation, "Graph API", "cudnn_graph Library": descriptors and their attributes]
#include <cudnn.h>

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace assay::impl::cudnn {

/// One descriptor of the library. A call that the library refuses throws c10::Error with its reason.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void finalize();
  /// Fills `values`, room for `room` of them; how many there are.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t room,
                   void* values) const;
  cudnnBackendDescriptor_t raw() const { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(void* descriptor) const { cudnnBackendDestroyDescriptor(descriptor); }
  };
  std::unique_ptr<void, Destroy> handle_;
};

/// Extents and strides [entries] of a tensor of rank 4: [B, heads, T, E] of whatever order in memory.
using Extents = std::array<std::int64_t, 4>;
/// A tensor of a graph; lives as long as the graph.
using Node = const Descriptor*;

/// A way to compute a graph, ready to run.
struct Plan {
  Descriptor descriptor;
  std::string name;              ///< "eng4_k2=1": the engine and the choices of its knobs
  std::int64_t workspace_bytes;  ///< beside the graph's own tensors
};

/// Tensors and the operations between them. Sums and everything between tensors in fp32. Data lies at
/// multiples of 16 bytes.
class Graph {
 public:
  /// Memory that the caller gives by `uid`, positive and new.
  Node tensor(std::int64_t uid, cudnnDataType_t type, const Extents& extents, const Extents& strides);
  /// One fp32 number in the host's memory.
  Node scalar(std::int64_t uid);
  /// What need not be in memory.
  Node between(cudnnDataType_t type, const Extents& extents, const Extents& strides);

  /// left right, the last two extents of each; heads of `right` serve groups of those of `left`.
  Node product(Node left, Node right, Node out);
  Node sum(Node x, Node out);       ///< over the extents of which `out` has fewer
  Node reshaped(Node x, Node out);  ///< the same numbers under other extents and strides
  Node pointwise(cudnnPointwiseMode_t mode, Node x, Node out);
  Node pointwise(cudnnPointwiseMode_t mode, Node x, Node y, Node out);
  /// x >= y
  Node at_least(Node x, Node y, Node out);
  /// `chosen` ? x : y
  Node select(Node x, Node y, Node chosen, Node out);
  /// Each entry's own index along `axis`, of the extents of `x`.
  Node index(std::int64_t axis, Node x, Node out);

  /// No operations from here on; the library's plans for it, best guess first, are looked for on the
  /// handle's device.
  void finish(cudnnHandle_t handle);
  /// The n-th plan that the library is able to prepare; null beyond the last. Preparing takes up to seconds.
  const Plan* plan(std::size_t n);
  /// Why the library took no plan, as far as it has said.
  const std::string& refusal() const { return refusal_; }
  /// Enqueues on the handle's stream. `memory`: an address for every uid; `workspace`: the plan's.
  static void run(cudnnHandle_t handle, const Plan& plan, const std::map<std::int64_t, void*>& memory,
                  void* workspace);

 private:
  Node make(std::int64_t uid, cudnnDataType_t type, const Extents& extents, const Extents& strides,
            cudnnBackendAttributeName_t kind);
  Node operation(const Descriptor& mode, Node x, Node y, Node chosen, Node out);

  std::deque<Descriptor> descriptors_;  ///< tensors and what operations refer to
  std::vector<Descriptor> operations_;
  std::int64_t last_uid_ = 1000;  ///< of tensors between
  std::unique_ptr<Descriptor> whole_;
  std::vector<Descriptor> candidates_;  ///< engines with their knobs
  std::size_t tried_ = 0;
  std::deque<Plan> plans_;
  std::string refusal_;  ///< the library's last one
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace assay::impl::cudnn
