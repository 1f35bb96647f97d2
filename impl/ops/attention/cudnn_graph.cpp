#include "impl/ops/attention/cudnn_graph.hpp"

#include <c10/util/Exception.h>

#include <utility>

namespace assay::impl::cudnn {

namespace {

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> detail{};
  cudnnGetLastErrorString(detail.data(), detail.size());
  TORCH_CHECK(false, call, " failed: ", cudnnGetErrorString(status), ". ", detail.data());
}
#define ASSAY_CUDNN_CHECK(call) check((call), #call)

constexpr cudnnBackendAttributeName_t in_memory = CUDNN_ATTR_TENSOR_DATA_TYPE;  // no attribute says so

Descriptor pointwise_mode(cudnnPointwiseMode_t mode, cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT) {
  Descriptor out(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  out.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  out.set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
  return out;
}

std::vector<Descriptor> make_all(cudnnBackendDescriptorType_t type, std::int64_t count) {
  std::vector<Descriptor> out;
  for (std::int64_t i = 0; i < count; ++i) out.emplace_back(type);
  return out;
}

/// The descriptors that attribute `name` holds, at most `most` of them.
std::vector<Descriptor> held(const Descriptor& by, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptorType_t type, std::int64_t most) {
  std::vector<Descriptor> out = make_all(type, most);
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(out.size());
  for (const Descriptor& descriptor : out) raw.push_back(descriptor.raw());
  const std::int64_t count = by.get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  while (static_cast<std::int64_t>(out.size()) > count) out.pop_back();
  return out;
}

std::string name_of(const Descriptor& candidate) {
  const auto engine = held(candidate, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
  std::int64_t value = -1;
  if (!engine.empty()) engine[0].get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &value);
  std::string name = "eng" + std::to_string(value);
  for (const Descriptor& knob : held(candidate, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                     CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    name += "_k" + std::to_string(static_cast<int>(type)) + "=" + std::to_string(value);
  }
  return name;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  ASSAY_CUDNN_CHECK(cudnnBackendCreateDescriptor(type, &made));
  handle_.reset(made);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values) {
  ASSAY_CUDNN_CHECK(cudnnBackendSetAttribute(raw(), name, type, count, values));
}
void Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  set(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  set(name, CUDNN_TYPE_INT64, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t raw = value.raw();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
}

void Descriptor::finalize() { ASSAY_CUDNN_CHECK(cudnnBackendFinalize(raw())); }

std::int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                             std::int64_t room, void* values) const {
  std::int64_t count = 0;
  ASSAY_CUDNN_CHECK(cudnnBackendGetAttribute(raw(), name, type, room, &count, values));
  return count;
}

Node Graph::make(std::int64_t uid, cudnnDataType_t type, const Extents& extents, const Extents& strides,
                 cudnnBackendAttributeName_t kind) {
  Descriptor& out = descriptors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  out.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  out.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extents.data());
  out.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  out.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
  out.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
  if (kind != in_memory) out.set(kind, true);
  out.finalize();
  return &out;
}

Node Graph::tensor(std::int64_t uid, cudnnDataType_t type, const Extents& extents, const Extents& strides) {
  return make(uid, type, extents, strides, in_memory);
}
Node Graph::scalar(std::int64_t uid) {
  return make(uid, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}
Node Graph::between(cudnnDataType_t type, const Extents& extents, const Extents& strides) {
  return make(++last_uid_, type, extents, strides, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

Node Graph::product(Node left, Node right, Node out) {
  Descriptor& mode = descriptors_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  mode.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  mode.finalize();
  Descriptor& made = operations_.emplace_back(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *left);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *right);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *out);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, mode);
  made.finalize();
  return out;
}

Node Graph::sum(Node x, Node out) {
  Descriptor& mode = descriptors_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  const cudnnReduceTensorOp_t add = CUDNN_REDUCE_TENSOR_ADD;
  mode.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  mode.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &add);
  mode.set(CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, false);
  mode.finalize();
  Descriptor& made = operations_.emplace_back(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *out);
  made.finalize();
  return out;
}

Node Graph::reshaped(Node x, Node out) {
  Descriptor& made = operations_.emplace_back(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *out);
  made.finalize();
  return out;
}

Node Graph::operation(const Descriptor& mode, Node x, Node y, Node chosen, Node out) {
  const float as_it_is = 1;
  Descriptor& made = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *out);
  if (y) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *y);
  if (chosen) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *chosen);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &as_it_is);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1, &as_it_is);
  made.finalize();
  return out;
}

Node Graph::pointwise(cudnnPointwiseMode_t mode, Node x, Node out) {
  return pointwise(mode, x, nullptr, out);
}
Node Graph::pointwise(cudnnPointwiseMode_t mode, Node x, Node y, Node out) {
  descriptors_.push_back(pointwise_mode(mode));
  descriptors_.back().finalize();
  return operation(descriptors_.back(), x, y, nullptr, out);
}
Node Graph::at_least(Node x, Node y, Node out) {
  descriptors_.push_back(pointwise_mode(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN));
  descriptors_.back().finalize();
  return operation(descriptors_.back(), x, y, nullptr, out);
}
Node Graph::select(Node x, Node y, Node chosen, Node out) {
  descriptors_.push_back(pointwise_mode(CUDNN_POINTWISE_BINARY_SELECT));
  descriptors_.back().finalize();
  return operation(descriptors_.back(), x, y, chosen, out);
}
Node Graph::index(std::int64_t axis, Node x, Node out) {
  Descriptor& mode = descriptors_.emplace_back(pointwise_mode(CUDNN_POINTWISE_GEN_INDEX));
  mode.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  mode.finalize();
  return operation(mode, x, nullptr, nullptr, out);
}

void Graph::finish(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(operations_.size());
  for (const Descriptor& operation : operations_) raw.push_back(operation.raw());
  whole_ = std::make_unique<Descriptor>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  whole_->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<std::int64_t>(raw.size()), raw.data());
  whole_->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  whole_->finalize();
  handle_ = handle;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) try {
      Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *whole_);
      heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
      heuristics.finalize();
      const std::int64_t count =
          heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
      for (Descriptor& candidate :
           held(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count))
        candidates_.push_back(std::move(candidate));
    } catch (const c10::Error& error) {
      refusal_ = error.what_without_backtrace();
    }
}

const Plan* Graph::plan(std::size_t n) {
  while (plans_.size() <= n && tried_ < candidates_.size()) try {
      const Descriptor& candidate = candidates_[tried_++];
      Plan made{Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR), name_of(candidate), 0};
      made.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, candidate);
      made.descriptor.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_);
      made.descriptor.finalize();
      made.descriptor.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                          &made.workspace_bytes);
      plans_.push_back(std::move(made));
    } catch (const c10::Error& error) {
      refusal_ = error.what_without_backtrace();
    }
  return n < plans_.size() ? &plans_[n] : nullptr;
}

void Graph::run(cudnnHandle_t handle, const Plan& plan, const std::map<std::int64_t, void*>& memory,
                void* workspace) {
  std::vector<std::int64_t> uids;
  std::vector<void*> addresses;
  for (const auto& [uid, address] : memory) uids.push_back(uid), addresses.push_back(address);
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(uids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  ASSAY_CUDNN_CHECK(cudnnBackendExecute(handle, plan.descriptor.raw(), pack.raw()));
}

}  // namespace assay::impl::cudnn
