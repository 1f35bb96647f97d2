// A project that knows nothing of assay but its package: counts a model's parameters.
#include <iostream>

#include "spec/model/inventory.hpp"
#include "spec/model/model_spec.hpp"

int main() {
  std::cout << assay::spec::inventory(assay::spec::find_model("llama3-8b")).parameter_count().to_string()
            << "\n";
}
